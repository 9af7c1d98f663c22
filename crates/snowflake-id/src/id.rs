//! The ID itself.

use std::fmt;

/// A 64-bit ID. Never negative, so that it sorts the same as a signed and as an unsigned number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnowflakeId(i64);

impl SnowflakeId {
    /// The smallest possible ID.
    pub const ZERO: Self = Self(0);
    /// The largest possible ID of any layout.
    pub const MAX: Self = Self(i64::MAX);

    /// `None` for a negative number.
    pub const fn new(id: i64) -> Option<Self> {
        if id >= 0 { Some(Self(id)) } else { None }
    }

    /// The ID as a `bigint`.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The ID with these bits. The caller makes sure that the sign bit is not set.
    pub(crate) const fn from_bits(bits: u64) -> Self {
        debug_assert!(bits <= i64::MAX as u64);
        Self(bits as i64)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0 as u64
    }
}

impl From<SnowflakeId> for i64 {
    fn from(id: SnowflakeId) -> Self {
        id.0
    }
}

impl fmt::Display for SnowflakeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
