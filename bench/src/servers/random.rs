//! Random numbers that are the same in every run.

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0xD1B5_4A32_D192_ED03));
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// The time until the next event, of independent ones with this mean distance.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // From 2^-53 to 1, because 0 has no logarithm.
        let uniform = ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -uniform.ln() * mean
    }

    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_as_asked_for() {
        let mut random = Random::new(1);
        let count = 100_000;
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / f64::from(count);
        let below = mean((0..count).map(|_| random.below(101) as f64).collect());
        let between = mean((0..count).map(|_| random.exponential(50.0)).collect());
        assert!((49.0..51.0).contains(&below), "{below}");
        assert!((49.0..51.0).contains(&between), "{between}");
    }
}
