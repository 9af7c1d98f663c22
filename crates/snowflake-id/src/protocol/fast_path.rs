//! What a session needs for an ID when nothing else has to be done.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};

use super::Reservation;
use crate::{Allowance, Position, Tick, WallTime};

/// What changes in a session, for the way to an ID.
///
/// A process has one thread, so these are plain loads and stores. They are atomics to be shared
/// statics without a lock, whose two locked instructions would take as long as the slot's swap.
#[derive(Debug)]
pub struct FastPath {
    /// The session's [`Position`]: its slot, the tick of its last ID.
    position: [AtomicU64; 2],
    /// The tick from which on the slow path has to be taken: the reservation is half used up, or (0)
    /// something has to be resolved first.
    slow_from: AtomicU64,
    /// How many ticks a slot may borrow.
    max_borrow: AtomicU64,
    /// The highest time that the wall clock has shown when an ID was generated.
    highest_wall: AtomicI64,
}

impl FastPath {
    /// Of a session without IDs.
    pub const fn new() -> Self {
        FastPath {
            position: [AtomicU64::new(0), AtomicU64::new(0)],
            slow_from: AtomicU64::new(0),
            max_borrow: AtomicU64::new(0),
            highest_wall: AtomicI64::new(i64::MIN),
        }
    }

    /// Where the session is.
    #[inline]
    pub fn position(&self) -> Position {
        let [tick, rest] = &self.position;
        Position::from_words([tick.load(Relaxed), rest.load(Relaxed)])
    }

    /// Keeps where the session is.
    #[inline]
    pub fn set_position(&self, position: Position) {
        let [tick, rest] = position.words();
        self.position[0].store(tick, Relaxed);
        self.position[1].store(rest, Relaxed);
    }

    /// What a slot may use without the slow path. It is given the middle of the reservation as its
    /// end. So the one comparison that it makes anyway also finds the moment to reserve more.
    #[inline]
    pub fn allowance(&self, now: Tick) -> Allowance {
        Allowance {
            now,
            max_borrow: self.max_borrow.load(Relaxed),
            reserved: Tick::new(self.slow_from.load(Relaxed)),
        }
    }

    /// Until more has to be reserved, the next IDs need no slow path.
    pub fn open(&self, reservation: Reservation) {
        self.max_borrow.store(reservation.max_borrow(), Relaxed);
        self.slow_from
            .store(reservation.extend_from().get(), Relaxed);
    }

    /// The next ID takes the slow path.
    pub fn close(&self) {
        self.slow_from.store(0, Relaxed);
    }

    /// Keeps the time with which an ID was generated.
    #[inline]
    pub fn observe(&self, wall: WallTime) {
        if wall.unix_micros() > self.highest_wall.load(Relaxed) {
            self.highest_wall.store(wall.unix_micros(), Relaxed);
        }
    }

    /// The highest time with which this process has generated an ID.
    pub fn highest_wall(&self) -> WallTime {
        WallTime::from_unix_micros(self.highest_wall.load(Relaxed))
    }
}

impl Default for FastPath {
    fn default() -> Self {
        Self::new()
    }
}
