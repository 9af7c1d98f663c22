//! Which slot generates a session's next ID: its own, or in bulk the one that all sessions share.

use std::num::NonZeroU32;

use crate::layout::Layout;
use crate::slot::{Allowance, Answer, Borrow, Run, Slot};
use crate::time::Tick;

/// The number of the shared slot. Within a tick, IDs of all other slots are greater, so a session
/// that comes from one of them starts here in the following tick.
const SHARED_SLOT: u32 = 0;

/// The number, within a tick, of the ID with which a session starts to generate in bulk.
const BULK_FROM_NTH_ID: u32 = 4;

/// The number of ticks without an ID after which a session in bulk returns to its own slot.
const QUIET_TICKS: u64 = 10;

/// Sessions that found the shared slot used up try it again after this number of ticks, a power of
/// two.
const RETRY_SHARED_TICKS: u64 = 16;

/// The rule by which a session moves between its own slot, the shared slot and the others.
///
/// A session generates single IDs in its own slot. With its fourth ID within a tick it starts to
/// generate **in bulk**, and moves to slot 0, the shared slot of all such sessions. There they get
/// their numbers in the order in which they call, as from a sequence, so that the rows of several
/// writers enter an index at its end. In slots of their own, each writer's rows of a tick would
/// enter below those of writers with a greater backend number, and split full pages.
///
/// The backend number is above the sequence, so an ID of slot 0 is greater than those of other
/// slots from the following tick on. If that tick has not come yet, it is borrowed. When a tick of
/// the shared slot is used up, a session continues in its own slot **in the same tick**, and tries
/// the shared one again a little later. So many writers on many processors share one slot only for
/// the numbers of one slot. From its own slot it continues in those above it, and when none of them
/// has anything left, in the following tick. Only when nothing more may be borrowed does it wait.
/// After ten ticks without an ID it returns to its own slot.
///
/// If the layout has no backend numbers, or has them below the sequence (where a greater number is
/// no greater ID), a session stays in its slot.
#[derive(Clone, Copy, Debug)]
pub struct SlotWalk<'a> {
    slots: &'a [Slot],
    sequence_bits: u32,
    home: u32,
    moves: bool,
}

/// Where a session is: the slot and the tick of its last ID, and how long it may stay there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    slot: u32,
    /// 0 before the first ID.
    tick: Tick,
    stay: Stay,
}

/// What a session does in the slot in which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    /// It is in its own slot, and has this number of IDs of the tick.
    Single(u32),
    /// It is in the shared slot.
    Bulk,
    /// It generates in bulk, but the shared slot was used up.
    Beside,
    /// It generates in bulk, but may not borrow the tick in which it could move to the shared slot.
    Waiting,
    /// The layout has no other slot for it.
    Always,
}

impl Position {
    /// The position of a session that never leaves this slot.
    pub const fn pinned(slot: u32) -> Self {
        Self {
            slot,
            tick: Tick::new(0),
            stay: Stay::Always,
        }
    }

    /// The slot of the session's last ID; before the first, its own.
    #[inline]
    pub const fn slot(&self) -> u32 {
        self.slot
    }

    /// Whether the session's next ID may be of that slot, without [`SlotWalk::next_run`].
    #[inline]
    pub const fn may_stay(&self, now: Tick) -> bool {
        let (now, tick) = (now.get(), self.tick.get());
        match self.stay {
            Stay::Single(already) => already + 1 < BULK_FROM_NTH_ID || now > tick,
            Stay::Bulk => now <= tick + QUIET_TICKS,
            Stay::Beside => now / RETRY_SHARED_TICKS <= tick / RETRY_SHARED_TICKS,
            Stay::Waiting => now <= tick,
            Stay::Always => true,
        }
    }

    /// The position after this run of that slot.
    #[inline]
    pub const fn after(self, run: Run) -> Self {
        let stay = match self.stay {
            Stay::Single(already) if run.tick.get() == self.tick.get() => {
                Stay::Single(already + run.count)
            }
            Stay::Single(_) => Stay::Single(run.count),
            in_bulk => in_bulk,
        };
        Self {
            slot: self.slot,
            tick: run.tick,
            stay,
        }
    }

    /// As two words, for [`Position::from_words`].
    #[inline]
    pub const fn words(self) -> [u64; 2] {
        let stay = match self.stay {
            Stay::Single(already) => already,
            Stay::Bulk => Self::FIRST_BULK_CODE,
            Stay::Beside => Self::FIRST_BULK_CODE + 1,
            Stay::Waiting => Self::FIRST_BULK_CODE + 2,
            Stay::Always => Self::FIRST_BULK_CODE + 3,
        };
        [self.tick.get(), (self.slot as u64) << 32 | stay as u64]
    }

    /// The position that these words stand for.
    #[inline]
    pub const fn from_words([tick, rest]: [u64; 2]) -> Self {
        let stay = match rest as u32 {
            already if already < Self::FIRST_BULK_CODE => Stay::Single(already),
            Self::FIRST_BULK_CODE => Stay::Bulk,
            stay if stay == Self::FIRST_BULK_CODE + 1 => Stay::Beside,
            stay if stay == Self::FIRST_BULK_CODE + 2 => Stay::Waiting,
            _ => Stay::Always,
        };
        Self {
            slot: (rest >> 32) as u32,
            tick: Tick::new(tick),
            stay,
        }
    }

    /// The first code of a [`Stay`] in bulk; smaller ones are numbers of single IDs.
    const FIRST_BULK_CODE: u32 = 1 << 31;
}

impl<'a> SlotWalk<'a> {
    /// The walk of a session whose own slot is number `home`. `slots` has one for each backend
    /// number of the layout.
    ///
    /// # Panics
    ///
    /// If there is no such slot.
    pub fn new(layout: &Layout, slots: &'a [Slot], home: u32) -> Self {
        assert!((home as usize) < slots.len(), "slot {home} does not exist");
        Self {
            slots,
            sequence_bits: layout.sequence_bits(),
            home,
            moves: slots.len() > 1 && layout.backend_is_above_sequence(),
        }
    }

    /// The session's own slot.
    pub const fn home(&self) -> u32 {
        self.home
    }

    /// The position of a session before its first ID.
    pub const fn start(&self) -> Position {
        let position = Position::pinned(self.home);
        if !self.moves {
            return position;
        }
        Position {
            stay: Stay::Single(0),
            ..position
        }
    }

    /// Issues up to `count` sequence numbers of one tick, and returns the session's new position,
    /// to be passed the next time: the numbers are of its slot. The IDs are greater than any that
    /// the session got before.
    ///
    /// # Panics
    ///
    /// If the position's slot does not exist.
    pub fn next_run(
        &self,
        position: Position,
        allowance: Allowance,
        count: NonZeroU32,
    ) -> (Position, Answer) {
        let (slot, stay, answer) = self
            .in_own_slot(position, allowance, count)
            .or_else(|| self.in_bulk(position, allowance, count))
            .unwrap_or_else(|| self.borrow(position, allowance, count));
        match answer {
            Answer::Issued(run) => (
                Position {
                    slot,
                    stay,
                    ..position
                }
                .after(run),
                answer,
            ),
            // A slot that issued nothing may be behind the session's last ID: the session must not
            // continue there.
            Answer::Wait { .. } | Answer::Reserve { .. } | Answer::Closed => (position, answer),
        }
    }

    /// In the session's own slot; `None` if it generates in bulk, or if others have used the tick
    /// up.
    fn in_own_slot(
        &self,
        position: Position,
        allowance: Allowance,
        count: NonZeroU32,
    ) -> Option<SlotAnswer> {
        let already = match position.stay {
            Stay::Always => {
                let answer = self.borrow_in(position.slot, allowance, count);
                return Some((position.slot, position.stay, answer));
            }
            Stay::Single(already) if allowance.now <= position.tick => already,
            Stay::Single(_) => 0,
            _ if allowance.now.get() > position.tick.get() + QUIET_TICKS => 0,
            _ => return None,
        };
        if count.get() >= BULK_FROM_NTH_ID - already.min(BULK_FROM_NTH_ID) {
            return None;
        }
        let answer = self.try_slot(self.home, allowance, count)?;
        Some((self.home, Stay::Single(already), answer))
    }

    /// In the shared slot, or in another in the same tick or the following one; `None` if none has
    /// anything left.
    fn in_bulk(
        &self,
        position: Position,
        allowance: Allowance,
        count: NonZeroU32,
    ) -> Option<SlotAnswer> {
        let stays = match position.stay {
            Stay::Bulk => true,
            Stay::Beside => position.may_stay(allowance.now),
            _ => position.slot == SHARED_SLOT,
        };
        let (start, from, beside) = if stays {
            (position.slot, allowance, Stay::Beside)
        } else if allowance.now > position.tick {
            (SHARED_SLOT, allowance, Stay::Beside)
        } else if let Some(following) = allowance.from(position.tick.following()) {
            (SHARED_SLOT, following, Stay::Beside)
        } else {
            (position.slot, allowance, Stay::Waiting)
        };
        let stay = |slot: u32| match slot {
            SHARED_SLOT => Stay::Bulk,
            _ => beside,
        };
        if let Some(answer) = self.try_slot(start, from, count) {
            return Some((start, stay(start), answer));
        }
        let (last, _) = self.slot(start).last(self.sequence_bits);
        let tick = last.max(from.now);
        let same = self.beyond(start, self.near(tick, allowance));
        let following = tick.following();
        let next = [SHARED_SLOT]
            .into_iter()
            .chain(self.beyond(SHARED_SLOT, self.near(following, allowance)));
        let (slot, answer) = self
            .first_of(same, allowance.from(tick), count)
            .or_else(|| self.first_of(next, allowance.from(following), count))?;
        Some((slot, stay(slot), answer))
    }

    /// The first slot to try for numbers of this tick: the session's own, so that sessions spread.
    /// Further ahead of the clock it is the lowest, because a session with one of the topmost slots
    /// would leave most of each tick unused.
    fn near(&self, tick: Tick, allowance: Allowance) -> u32 {
        const NEAR_TICKS: u64 = 1;
        if tick.get() > allowance.now.get() + NEAR_TICKS {
            SHARED_SLOT
        } else {
            self.home
        }
    }

    /// The slots above `start`, those from `near` on first.
    fn beyond(&self, start: u32, near: u32) -> impl Iterator<Item = u32> + use<> {
        let (next, all) = (start + 1, self.slots.len() as u32);
        let near = near.max(next);
        (near..all).chain(next..near)
    }

    /// The first of these slots that has something.
    fn first_of(
        &self,
        mut slots: impl Iterator<Item = u32>,
        allowance: Option<Allowance>,
        count: NonZeroU32,
    ) -> Option<(u32, Answer)> {
        let allowance = allowance?;
        slots.find_map(|slot| Some((slot, self.try_slot(slot, allowance, count)?)))
    }

    /// If all slots are used up: as far ahead as is allowed, else the answer is to wait.
    fn borrow(&self, position: Position, allowance: Allowance, count: NonZeroU32) -> SlotAnswer {
        let slot = if allowance.now > position.tick {
            self.home
        } else {
            position.slot
        };
        let stay = match slot {
            SHARED_SLOT => Stay::Bulk,
            _ => Stay::Beside,
        };
        (slot, stay, self.borrow_in(slot, allowance, count))
    }

    fn borrow_in(&self, slot: u32, allowance: Allowance, count: NonZeroU32) -> Answer {
        self.slot(slot)
            .next_run(self.sequence_bits, allowance, count, Borrow::Yes)
    }

    /// Numbers of the slot's tick; `None` if it is used up or too far ahead.
    fn try_slot(&self, slot: u32, allowance: Allowance, count: NonZeroU32) -> Option<Answer> {
        let answer = self
            .slot(slot)
            .next_run(self.sequence_bits, allowance, count, Borrow::No);
        (!matches!(answer, Answer::Wait { .. })).then_some(answer)
    }

    fn slot(&self, number: u32) -> &'a Slot {
        &self.slots[number as usize]
    }
}

/// A slot, what the session does there, and the slot's answer.
type SlotAnswer = (u32, Stay, Answer);

impl Tick {
    const fn following(self) -> Self {
        Self::new(self.get() + 1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ONE: NonZeroU32 = NonZeroU32::MIN;

    fn allowance(now: u64, max_borrow: u64) -> Allowance {
        Allowance {
            now: Tick::new(now),
            max_borrow,
            reserved: Tick::new(1 << 40),
        }
    }

    fn layout(text: &str) -> Layout {
        text.parse().unwrap()
    }

    fn slots(count: usize) -> Vec<Slot> {
        (0..count).map(|_| Slot::new()).collect()
    }

    /// A session that generates as in the extension: in its slot as long as it may stay, then by
    /// [`SlotWalk::next_run`].
    struct Session<'a> {
        walk: SlotWalk<'a>,
        position: Position,
    }

    impl<'a> Session<'a> {
        fn new(layout: &Layout, slots: &'a [Slot], home: u32) -> Self {
            let walk = SlotWalk::new(layout, slots, home);
            let position = walk.start();
            Self { walk, position }
        }

        /// The slot and the tick of the next ID; `None` if it has to wait.
        fn next(&mut self, allowance: Allowance) -> Option<(u32, u64)> {
            if self.position.may_stay(allowance.now) {
                let slot = self.walk.slot(self.position.slot);
                let bits = self.walk.sequence_bits;
                let answer = slot.next_run(bits, allowance, ONE, Borrow::No);
                if let Answer::Issued(run) = answer {
                    self.position = self.position.after(run);
                    return Some((self.position.slot, run.tick.get()));
                }
            }
            let (position, answer) = self.walk.next_run(self.position, allowance, ONE);
            self.position = position;
            match answer {
                Answer::Issued(run) => Some((position.slot, run.tick.get())),
                Answer::Wait { .. } => None,
                Answer::Reserve { .. } | Answer::Closed => unreachable!(),
            }
        }

        fn take(&mut self, ids: usize, allowance: Allowance) -> Vec<(u32, u64)> {
            (0..ids).map_while(|_| self.next(allowance)).collect()
        }
    }

    fn times(ids: usize, slot: u32, tick: u64) -> Vec<(u32, u64)> {
        vec![(slot, tick); ids]
    }

    #[test]
    fn the_fourth_id_within_a_tick_is_of_the_shared_slot() {
        let layout = layout("timestamp:41 backend:2 sequence:8");
        let slots = slots(4);
        let mut session = Session::new(&layout, &slots, 2);
        // Three in each of two ticks are not in bulk.
        assert_eq!(session.take(3, allowance(100, 20)), times(3, 2, 100));
        assert_eq!(session.take(3, allowance(101, 20)), times(3, 2, 101));
        assert_eq!(session.take(2, allowance(101, 20)), times(2, 0, 102));
        // Two sessions, in the order in which they ask.
        let mut other = Session::new(&layout, &slots, 1);
        assert_eq!(other.take(3, allowance(102, 20)), times(3, 1, 102));
        assert_eq!(other.take(1, allowance(102, 20)), times(1, 0, 103));
        assert_eq!(session.take(1, allowance(102, 20)), times(1, 0, 103));
        let (first, last) = (103, slots[0].last(8).1);
        assert_eq!(session.take(2, allowance(102, 20)), times(2, 0, first));
        assert_eq!(slots[0].last(8), (Tick::new(first), last + 2));
    }

    #[test]
    fn a_run_of_four_is_in_bulk_at_once() {
        let layout = layout("timestamp:41 backend:2 sequence:8");
        let slots = slots(4);
        let walk = SlotWalk::new(&layout, &slots, 2);
        let run = |position, count| {
            let count = NonZeroU32::new(count).unwrap();
            walk.next_run(position, allowance(100, 20), count).0
        };
        let three = run(walk.start(), 3);
        assert_eq!((three.slot, three.stay), (2, Stay::Single(3)));
        assert_eq!(run(walk.start(), 4).slot, 0);
        assert_eq!(run(three, 1).slot, 0);
    }

    #[test]
    fn a_session_returns_to_its_own_slot_after_quiet_ticks() {
        let layout = layout("timestamp:41 backend:2 sequence:8");
        let slots = slots(4);
        let mut session = Session::new(&layout, &slots, 2);
        session.take(4, allowance(100, 20));
        assert_eq!(session.position.tick, Tick::new(101));
        for now in [101, 103, 113, 123] {
            assert_eq!(session.next(allowance(now, 20)), Some((0, now)));
        }
        assert_eq!(session.next(allowance(134, 20)), Some((2, 134)));
        assert_eq!(session.position.stay, Stay::Single(1));
    }

    #[test]
    fn a_session_that_may_not_borrow_moves_to_the_shared_slot_later() {
        let layout = layout("timestamp:41 backend:2 sequence:4");
        let slots = slots(4);
        let mut session = Session::new(&layout, &slots, 2);
        let of_one_tick = [times(16, 2, 100), times(16, 3, 100)].concat();
        assert_eq!(session.take(100, allowance(100, 0)), of_one_tick);
        assert_eq!(session.next(allowance(101, 0)), Some((0, 101)));
    }

    /// Two numbers a tick, which begin with 0, make the walk easy to read.
    #[test]
    fn a_session_walks_over_all_slots_of_a_tick() {
        let layout = layout("timestamp:41 backend:2 sequence:1");
        let walk = |home: u32, now: u64, max_borrow: u64| {
            let slots = slots(4);
            let mut session = Session::new(&layout, &slots, home);
            session.take(2, allowance(99, 0));
            session.take(100, allowance(now, max_borrow))
        };
        let tick = |slots: &[u32], tick| {
            let each = slots.iter().map(|&slot| times(2, slot, tick));
            each.collect::<Vec<_>>().concat()
        };
        // The shared slot, its own, those above it; only then the following tick, further ahead
        // from the lowest on.
        assert_eq!(
            walk(2, 99, 2),
            [tick(&[0, 2, 3], 100), tick(&[0, 1, 2, 3], 101)].concat()
        );
        assert_eq!(
            walk(3, 99, 3),
            [
                tick(&[0, 3], 100),
                tick(&[0, 1, 2, 3], 101),
                tick(&[0, 1, 2, 3], 102)
            ]
            .concat()
        );
        // That tick has come: nothing is borrowed.
        assert_eq!(walk(2, 100, 0), tick(&[2, 3], 100));
        assert_eq!(
            walk(0, 99, 1),
            [tick(&[1, 2, 3], 99), tick(&[0, 1, 2, 3], 100)].concat()
        );
    }

    #[test]
    fn sessions_use_up_every_slot_of_a_tick_before_one_waits() {
        let layout = layout("timestamp:41 backend:2 sequence:1");
        let slots = slots(4);
        let mut sessions: Vec<_> = (0..4)
            .map(|home| Session::new(&layout, &slots, home))
            .collect();
        let mut issued = Vec::new();
        while let Some(id) = (0..4).find_map(|who| sessions[who].next(allowance(100, 0))) {
            issued.push(id);
        }
        issued.sort_unstable();
        assert_eq!(
            issued,
            (0..4)
                .flat_map(|slot| times(2, slot, 100))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_session_beside_the_shared_slot_tries_that_again_later() {
        let layout = layout("timestamp:41 backend:2 sequence:2");
        let slots = slots(4);
        let mut session = Session::new(&layout, &slots, 2);
        // In bulk, and others have used the shared slot up.
        session.take(4, allowance(99, 1));
        slots[0].raise_to(2, Tick::new(101));
        assert_eq!(session.next(allowance(100, 1)), Some((2, 100)));
        // As long as the ticks are of the same sixteen.
        for now in [101, 105, 111] {
            assert_eq!(session.next(allowance(now, 1)), Some((2, now)));
        }
        assert_eq!(session.next(allowance(112, 1)), Some((0, 112)));
        assert_eq!(session.position.stay, Stay::Bulk);
    }

    #[test]
    fn a_session_stays_if_a_greater_backend_number_is_no_greater_id() {
        for text in [
            "timestamp:41 sequence:1 backend:2",
            "timestamp:41 sequence:1 node:3 backend:2",
        ] {
            let layout = layout(text);
            let slots = slots(4);
            let mut session = Session::new(&layout, &slots, 1);
            let issued = session.take(100, allowance(100, 1));
            assert_eq!(
                issued,
                [times(2, 1, 100), times(2, 1, 101)].concat(),
                "{text}"
            );
        }
        let layout = layout("timestamp:41 node:4 sequence:1");
        let one = slots(1);
        let mut session = Session::new(&layout, &one, 0);
        assert_eq!(session.take(100, allowance(100, 0)).len(), 2);
    }

    /// Slot 0 would be the one in the next tick. It has issued nothing, and may be behind the
    /// session's last ID, so the session stays in slot 1.
    #[test]
    fn a_session_stays_while_the_next_tick_is_not_reserved() {
        let layout = layout("timestamp:41 backend:1 sequence:1");
        let slots = slots(2);
        let walk = SlotWalk::new(&layout, &slots, 1);
        let allowance = Allowance {
            reserved: Tick::new(101),
            ..allowance(100, 5)
        };
        let mut position = walk.start();
        for _ in 0..2 {
            position = walk.next_run(position, allowance, ONE).0;
            assert_eq!((position.slot, position.tick), (1, Tick::new(100)));
        }
        let tick = Tick::new(101);
        assert_eq!(
            walk.next_run(position, allowance, ONE),
            (position, Answer::Reserve { tick })
        );
    }

    #[test]
    #[should_panic = "slot 4 does not exist"]
    fn a_slot_that_does_not_exist_is_refused() {
        SlotWalk::new(&layout("timestamp:41 backend:2 sequence:1"), &slots(4), 4);
    }
}
