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

/// Measures every contender under every condition, in rounds. Within a round, all contenders are
/// measured under one condition before the next, so that compared measurements are close in time.
/// Each round starts with another contender, so that none always follows the same one.
///
/// `rounds` has the number of rounds of each contender, which takes part from the first on. The
/// results of `warm_ups` are discarded. `measure` gets the numbers of the condition and of the
/// contender, and returns a figure for each quantity. The result is indexed by condition,
/// contender and quantity.
pub fn in_turn(
    conditions: usize,
    rounds: &[usize],
    warm_ups: usize,
    mut measure: impl FnMut(usize, usize, usize) -> Result<Vec<f64>>,
) -> Result<Vec<Vec<Vec<Samples>>>> {
    let mut samples = vec![vec![Vec::new(); rounds.len()]; conditions];
    let last = rounds.iter().copied().max().unwrap_or(0);
    for number in 0..warm_ups + last {
        // From 1 on; 0 for a warm-up.
        let round = (number + 1).saturating_sub(warm_ups);
        for (condition, row) in samples.iter_mut().enumerate() {
            for place in 0..rounds.len() {
                let which = (number + place) % rounds.len();
                if round > rounds[which] {
                    continue;
                }
                let figures = measure(condition, which, round)?;
                if round == 0 {
                    continue;
                }
                let kept: &mut Vec<Samples> = &mut row[which];
                kept.resize(figures.len(), Samples::default());
                for (samples, figure) in kept.iter_mut().zip(figures) {
                    samples.push(figure);
                }
            }
        }
    }
    Ok(samples)
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
        let measured = in_turn(2, &[2, 2, 1], 1, |condition, which, round| {
            seen.push((round, condition, which));
            Ok(vec![condition as f64 * 10.0 + round as f64, 7.0])
        })
        .unwrap();
        let order = |round, condition| -> Vec<usize> {
            let of_round = seen
                .iter()
                .filter(|&&(r, c, _)| (r, c) == (round, condition));
            of_round.map(|&(_, _, which)| which).collect()
        };
        assert_eq!(order(0, 0), [0, 1, 2]);
        assert_eq!(order(1, 0), [1, 2, 0]);
        assert_eq!(order(2, 0), [0, 1]);
        assert_eq!(order(2, 1), [0, 1]);
        assert_eq!(measured[0][0], [samples(&[1.0, 2.0]), samples(&[7.0, 7.0])]);
        assert_eq!(measured[1][2], [samples(&[11.0]), samples(&[7.0])]);
    }
}
