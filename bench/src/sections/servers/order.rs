//! How far keys are from ascending, in the order in which they were inserted.

/// The rows below a key that was inserted before them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disorder {
    /// Their share of all rows.
    pub share: f64,
    /// By how much the key is below the greatest one before, in units of `distance`.
    pub distance: Quantiles,
    /// How many rows with a greater key were inserted before.
    pub rows: Quantiles,
}

/// Of the rows out of order; NaN if there are none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiles {
    pub median: f64,
    /// 99 of 100 are not above this.
    pub p99: f64,
}

impl Quantiles {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| {
            let index = (values.len() as f64 * part).ceil() as usize;
            values.get(index.max(1) - 1).copied().unwrap_or(f64::NAN)
        };
        Self {
            median: at(0.5),
            p99: at(0.99),
        }
    }
}

/// `distance` returns how far the second key is below the first.
pub fn disorder(keys: &[i64], distance: impl Fn(i64, i64) -> f64) -> Disorder {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    let mut inserted = Counts::new(keys.len());
    let (mut distances, mut rows) = (Vec::new(), Vec::new());
    let mut greatest = i64::MIN;
    for (before, &key) in keys.iter().enumerate() {
        let rank = sorted.partition_point(|&other| other < key);
        if key < greatest {
            distances.push(distance(greatest, key));
            rows.push((before - inserted.up_to(rank)) as f64);
        }
        greatest = greatest.max(key);
        inserted.add(rank);
    }
    Disorder {
        share: rows.len() as f64 / keys.len().max(1) as f64,
        distance: Quantiles::of(distances),
        rows: Quantiles::of(rows),
    }
}

/// How many values each rank has, and all ranks up to one: a Fenwick tree.
struct Counts(Vec<usize>);

impl Counts {
    fn new(ranks: usize) -> Self {
        Self(vec![0; ranks + 1])
    }

    fn add(&mut self, rank: usize) {
        let mut index = rank + 1;
        while index < self.0.len() {
            self.0[index] += 1;
            index += index & index.wrapping_neg();
        }
    }

    fn up_to(&self, rank: usize) -> usize {
        let mut index = rank + 1;
        let mut sum = 0;
        while index > 0 {
            sum += self.0[index];
            index &= index - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(keys: &[i64]) -> Disorder {
        disorder(keys, |greatest, key| (greatest - key) as f64)
    }

    #[test]
    fn ascending_keys_are_in_order() {
        let seen = of(&[1, 2, 30, 40]);
        assert_eq!(seen.share, 0.0);
        assert!(seen.rows.median.is_nan() && seen.distance.p99.is_nan());
    }

    #[test]
    fn a_late_key_counts_the_greater_ones_before_it() {
        let seen = of(&[10, 20, 40, 30, 5]);
        assert_eq!(seen.share, 0.4);
        // 30 came after 40; 5 came after all four.
        assert_eq!((seen.distance.median, seen.distance.p99), (10.0, 35.0));
        assert_eq!((seen.rows.median, seen.rows.p99), (1.0, 4.0));
    }

    #[test]
    fn counts_are_those_of_a_search_through_all() {
        let mut random = super::super::random::Random::new(3);
        let keys: Vec<i64> = (0..500).map(|_| random.below(1 << 40) as i64).collect();
        let mut expected = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let greater = keys[..index].iter().filter(|other| *other > key).count();
            if greater > 0 {
                expected.push(greater as f64);
            }
        }
        let seen = of(&keys);
        assert_eq!(seen.share, expected.len() as f64 / 500.0);
        assert_eq!(seen.rows, Quantiles::of(expected));
    }
}
