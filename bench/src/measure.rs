//! Rounds of measurements, and their medians, ranges and ratios.

use anyhow::Result;

/// The measurements of one quantity, one for each round, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds the measurement of a round.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// How many rounds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The median; of an even number, the mean of the middle two. NaN if there is none.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        }
    }

    /// The smallest.
    pub fn low(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    /// The largest.
    pub fn high(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }

    /// The measurements in another unit.
    pub fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        Self(self.0.iter().copied().map(change).collect())
    }

    /// Adds other measurements.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// This divided by the other, round by round. What affects a whole round (other
    /// work on the machine, its temperature) cancels out. A round without one of them
    /// has no ratio.
    pub fn ratio_to(&self, other: &Self) -> Self {
        let pairs = self.0.iter().zip(&other.0);
        Self(pairs.map(|(this, other)| this / other).collect())
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Measures every contender under every condition, in rounds. Within a round, all
/// contenders are measured under one condition before the next, so that compared
/// measurements are close in time. Each round starts with another contender, so that
/// none always follows the same one.
///
/// `rounds` returns how many rounds a contender takes part in, from the first on.
/// The results of `warm_ups` are discarded; `measure` can see which those are. NaN is
/// no measurement and is not kept. The result has a row for each condition and a
/// column for each contender.
pub fn in_turn<K: Copy, C: Copy>(
    conditions: &[K],
    contenders: &[C],
    warm_ups: usize,
    rounds: impl Fn(C) -> usize,
    mut measure: impl FnMut(K, C, Turn) -> Result<f64>,
) -> Result<Vec<Vec<Samples>>> {
    let mut samples = vec![vec![Samples::default(); contenders.len()]; conditions.len()];
    let last = contenders.iter().map(|&c| rounds(c)).max().unwrap_or(0);
    for number in 0..warm_ups + last {
        let turn = Turn {
            round: (number + 1).saturating_sub(warm_ups),
            of: last,
        };
        for (row, &condition) in samples.iter_mut().zip(conditions) {
            for place in 0..contenders.len() {
                let which = (number + place) % contenders.len();
                let contender = contenders[which];
                if turn.round > rounds(contender) {
                    continue;
                }
                let value = measure(condition, contender, turn)?;
                if turn.counts() && !value.is_nan() {
                    row[which].push(value);
                }
            }
        }
    }
    Ok(samples)
}

/// Which round it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// From 1 on; 0 for a warm-up.
    round: usize,
    of: usize,
}

impl Turn {
    /// Whether the measurement is kept.
    pub fn counts(self) -> bool {
        self.round > 0
    }
}

impl std::fmt::Display for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.round {
            0 => write!(f, "warming up"),
            round => write!(f, "round {round} of {}", self.of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        values.iter().copied().collect()
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(samples(&[3.0, 1.0, 100.0]).median(), 3.0);
        assert_eq!(samples(&[4.0, 1.0, 2.0, 100.0]).median(), 3.0);
        assert!(samples(&[]).median().is_nan());
        assert_eq!(samples(&[3.0, 1.0, 2.0]).low(), 1.0);
        assert_eq!(samples(&[3.0, 1.0, 2.0]).high(), 3.0);
    }

    #[test]
    fn a_ratio_is_within_rounds() {
        let ratio = samples(&[1.0, 20.0, 3.0]).ratio_to(&samples(&[2.0, 40.0]));
        assert_eq!(ratio, samples(&[0.5, 0.5]));
    }

    #[test]
    fn rounds_start_with_another_contender_and_warm_ups_do_not_count() {
        let mut seen = Vec::new();
        let rounds = |contender| if contender == 'c' { 1 } else { 2 };
        let measured = in_turn(&[1, 2], &['a', 'b', 'c'], 1, rounds, |key, who, turn| {
            seen.push((turn.round, key, who));
            Ok(f64::from(key * 10) + turn.round as f64)
        })
        .unwrap();
        let order = |round, key| -> String {
            let of_round = seen.iter().filter(|&&(r, k, _)| (r, k) == (round, key));
            of_round.map(|&(_, _, who)| who).collect()
        };
        assert_eq!(
            [order(0, 1), order(1, 1), order(2, 1), order(2, 2)],
            ["abc", "bca", "ab", "ab"]
        );
        assert_eq!(measured[0][0], samples(&[11.0, 12.0]));
        assert_eq!(measured[1][2], samples(&[21.0]));
    }
}
