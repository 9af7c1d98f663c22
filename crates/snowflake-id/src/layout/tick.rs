//! The length of a tick.

use std::hint::cold_path;

/// The length of a tick in microseconds, with the reciprocal for dividing by it. Every ID needs
/// that division, between the clock and the compare-and-swap, and a multiplication takes a fraction
/// of its time.
///
/// With `d` microseconds and `s = floor(log2 d)`, the reciprocal is `m = ceil(2^(63+s) / d)`, and
/// `floor(n / d) = floor(2n × m / 2^(64+s))` for all `n` below 2^62. The reason: `m` is too large
/// by less than 1, so `n × m / 2^(63+s)` is too large by less than `n / 2^(63+s)`. That is less
/// than `1/d`, because `d` is less than `2^(s+1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TickLength {
    /// At most 2^63.
    reciprocal: u64,
    micros: u32,
    /// `s`, at most 31.
    shift: u8,
}

impl TickLength {
    /// Only times below this can be divided by the reciprocal: 146,000 years.
    const RECIPROCAL_END_MICROS: u64 = 1 << 62;

    /// # Panics
    ///
    /// If `micros` is 0.
    pub(super) const fn from_micros(micros: u32) -> Self {
        let shift = micros.ilog2();
        let power = 1_u128 << (63 + shift);
        Self {
            reciprocal: power.div_ceil(micros as u128) as u64,
            micros,
            shift: shift as u8,
        }
    }

    pub(super) const fn micros(self) -> u32 {
        self.micros
    }

    /// Whole ticks in `micros` microseconds.
    #[inline]
    pub(super) fn ticks_in(self, micros: u64) -> u64 {
        if micros >= Self::RECIPROCAL_END_MICROS {
            cold_path();
            return micros / self.micros as u64;
        }
        let product = (2 * micros) as u128 * self.reciprocal as u128;
        (product >> 64) as u64 >> self.shift
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// At both sides of multiples, where a reciprocal that is slightly wrong would show.
    #[test]
    fn divides_exactly_around_multiples() {
        let powers = (0..32).map(|shift| 1_u32 << shift);
        let around = powers.flat_map(|power| [power - 1, power, power.saturating_add(1)]);
        let usual = [10, 1_000, 10_000, 1_000_000, 60_000_000, u32::MAX];
        for micros in around.chain(usual).filter(|&micros| micros > 0) {
            let (length, divisor) = (TickLength::from_micros(micros), u64::from(micros));
            assert_eq!(length.micros(), micros);
            let largest = (TickLength::RECIPROCAL_END_MICROS - 1) / divisor;
            for multiple in [0, 1, 2, largest / 3, largest / 2, largest - 1, largest] {
                let first = multiple * divisor;
                for time in [first.saturating_sub(1), first, first + divisor - 1] {
                    let time = time.min(TickLength::RECIPROCAL_END_MICROS - 1);
                    assert_eq!(length.ticks_in(time), time / divisor, "{time} / {micros}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn divides_exactly(micros in 1..=u32::MAX, time in any::<u64>()) {
            let length = TickLength::from_micros(micros);
            prop_assert_eq!(length.ticks_in(time), time / u64::from(micros));
        }
    }
}
