//! Which slot generates a session's next ID: its own, or in bulk the one that all sessions share.

use std::num::NonZeroU32;

use crate::layout::Layout;
use crate::slot::{Answer, Horizon, Run, Slot};
use crate::time::Tick;

/// The slot that sessions in bulk share. IDs of all other slots are greater within a tick, so a session that comes from
/// one of them starts here in the following tick.
const COMMON: u32 = 0;

/// The number, within a tick, of the ID with which a session starts to generate in bulk.
const BULK: u32 = 4;

/// The number of ticks without an ID after which a session in bulk returns to its own slot.
const QUIET: u64 = 10;

/// Sessions that found the common slot used up try it again after this number of ticks, a power of two.
const AGAIN: u64 = 16;

/// A session's way through the slots of its server.
///
/// A session generates single IDs in its own slot. With its fourth ID within a tick it starts to generate **in bulk**,
/// and moves to slot 0, which all such sessions share. There they get their numbers in the order in which they call, as
/// from a sequence, so that the rows of several writers enter an index at its end. In slots of their own, each writer's
/// rows of a tick would enter below those of writers with a greater backend number, and split full pages.
///
/// The backend number is above the sequence, so an ID of slot 0 is greater than those of other slots from the following
/// tick on. If that tick has not come yet, it is borrowed. When a tick of the common slot is used up, a session continues
/// in its own slot **in the same tick**, and tries the common one again a little later. So many writers on many
/// processors share one slot only for the numbers of one slot. From its own slot it continues in those above it, and
/// when none of them has anything left, in the following tick. Only when nothing more may be borrowed does it wait. After
/// ten ticks without an ID it returns to its own slot.
///
/// If the layout has no backend numbers, or has them below the sequence (where a greater number is no greater ID), a
/// session stays in its slot.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    slots: &'a [Slot],
    sequence_bits: u32,
    home: u32,
    moves: bool,
}

/// Where a session is: the slot and the tick of its last ID, and how long it may stay there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
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
    /// It is in the common slot.
    Bulk,
    /// It generates in bulk, but the common slot was used up.
    Beside,
    /// It generates in bulk, but may not borrow the tick in which it could move to the common slot.
    Waiting,
    /// The layout has no other slot for it.
    Always,
}

impl Place {
    /// That of a session that never leaves this slot.
    pub const fn fixed(slot: u32) -> Self {
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

    /// Whether the session's next ID may come from that slot, without [`Session::next_run`].
    #[inline]
    pub const fn stays(&self, now: Tick) -> bool {
        let (now, tick) = (now.get(), self.tick.get());
        match self.stay {
            Stay::Single(already) => already + 1 < BULK || now > tick,
            Stay::Bulk => now <= tick + QUIET,
            Stay::Beside => now / AGAIN <= tick / AGAIN,
            Stay::Waiting => now <= tick,
            Stay::Always => true,
        }
    }

    /// The place after these numbers of that slot.
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

    /// As two words, for [`Place::from_words`].
    #[inline]
    pub const fn words(self) -> [u64; 2] {
        let stay = match self.stay {
            Stay::Single(already) => already,
            Stay::Bulk => Self::IN_BULK,
            Stay::Beside => Self::IN_BULK + 1,
            Stay::Waiting => Self::IN_BULK + 2,
            Stay::Always => Self::IN_BULK + 3,
        };
        [self.tick.get(), (self.slot as u64) << 32 | stay as u64]
    }

    /// The place that these words stand for.
    #[inline]
    pub const fn from_words([tick, rest]: [u64; 2]) -> Self {
        let stay = match rest as u32 {
            already if already < Self::IN_BULK => Stay::Single(already),
            Self::IN_BULK => Stay::Bulk,
            stay if stay == Self::IN_BULK + 1 => Stay::Beside,
            stay if stay == Self::IN_BULK + 2 => Stay::Waiting,
            _ => Stay::Always,
        };
        Self {
            slot: (rest >> 32) as u32,
            tick: Tick::new(tick),
            stay,
        }
    }

    const IN_BULK: u32 = 1 << 31;
}

impl<'a> Session<'a> {
    /// The way of a session whose own slot is number `home`. `slots` has one for each backend number of the layout.
    ///
    /// # Panics
    ///
    /// If `home` is none of them.
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

    /// Where a session begins.
    pub const fn begin(&self) -> Place {
        let place = Place::fixed(self.home);
        if !self.moves {
            return place;
        }
        Place {
            stay: Stay::Single(0),
            ..place
        }
    }

    /// Asks for up to `count` sequence numbers of one tick. Answers with the session's place then, to be passed the next
    /// time: the numbers are of its slot. The IDs are greater than any that the session got before.
    ///
    /// # Panics
    ///
    /// If the place's slot does not exist.
    pub fn next_run(&self, place: Place, horizon: Horizon, count: NonZeroU32) -> (Place, Answer) {
        let (slot, stay, answer) = self
            .alone(place, horizon, count)
            .or_else(|| self.in_bulk(place, horizon, count))
            .unwrap_or_else(|| self.borrow(place, horizon, count));
        match answer {
            Answer::Issued(run) => (
                Place {
                    slot,
                    stay,
                    ..place
                }
                .after(run),
                answer,
            ),
            // A slot that gave nothing may be behind the session's last ID: it must not continue from there.
            Answer::Wait { .. } | Answer::Reserve { .. } => (place, answer),
        }
    }

    /// In the session's own slot; `None` if it generates in bulk, or if others have used the tick up.
    fn alone(&self, place: Place, horizon: Horizon, count: NonZeroU32) -> Option<Found> {
        let already = match place.stay {
            Stay::Always => {
                let answer = self.borrow_in(place.slot, horizon, count);
                return Some((place.slot, place.stay, answer));
            }
            Stay::Single(already) if horizon.now <= place.tick => already,
            Stay::Single(_) => 0,
            _ if horizon.now.get() > place.tick.get() + QUIET => 0,
            _ => return None,
        };
        if count.get() >= BULK - already.min(BULK) {
            return None;
        }
        let answer = self.ask(self.home, horizon, count)?;
        Some((self.home, Stay::Single(already), answer))
    }

    /// In the common slot, or in another in the same tick or the following one; `None` if none has anything left.
    fn in_bulk(&self, place: Place, horizon: Horizon, count: NonZeroU32) -> Option<Found> {
        let stays = match place.stay {
            Stay::Bulk => true,
            Stay::Beside => place.stays(horizon.now),
            _ => place.slot == COMMON,
        };
        let (start, from, beside) = if stays {
            (place.slot, horizon, Stay::Beside)
        } else if horizon.now > place.tick {
            (COMMON, horizon, Stay::Beside)
        } else if let Some(following) = horizon.from(place.tick.following()) {
            (COMMON, following, Stay::Beside)
        } else {
            (place.slot, horizon, Stay::Waiting)
        };
        let stay = |slot: u32| match slot {
            COMMON => Stay::Bulk,
            _ => beside,
        };
        if let Some(answer) = self.ask(start, from, count) {
            return Some((start, stay(start), answer));
        }
        let (last, _) = self.slot(start).last(self.sequence_bits);
        let tick = last.max(from.now);
        let same = self.beyond(start, self.near(tick, horizon));
        let following = tick.following();
        let next = [COMMON]
            .into_iter()
            .chain(self.beyond(COMMON, self.near(following, horizon)));
        let (slot, answer) = self
            .first_of(same, horizon.from(tick), count)
            .or_else(|| self.first_of(next, horizon.from(following), count))?;
        Some((slot, stay(slot), answer))
    }

    /// The first slot to try for numbers of this tick: the session's own, so that sessions spread. Further ahead of the
    /// clock it is the lowest, because a session with one of the topmost slots would leave most of each tick unused.
    fn near(&self, tick: Tick, horizon: Horizon) -> u32 {
        const AHEAD: u64 = 1;
        if tick.get() > horizon.now.get() + AHEAD {
            COMMON
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
        horizon: Option<Horizon>,
        count: NonZeroU32,
    ) -> Option<(u32, Answer)> {
        let horizon = horizon?;
        slots.find_map(|slot| Some((slot, self.ask(slot, horizon, count)?)))
    }

    /// If all slots are used up: as far ahead as is allowed, else the answer is to wait.
    fn borrow(&self, place: Place, horizon: Horizon, count: NonZeroU32) -> Found {
        let slot = if horizon.now > place.tick {
            self.home
        } else {
            place.slot
        };
        let stay = match slot {
            COMMON => Stay::Bulk,
            _ => Stay::Beside,
        };
        (slot, stay, self.borrow_in(slot, horizon, count))
    }

    fn borrow_in(&self, slot: u32, horizon: Horizon, count: NonZeroU32) -> Answer {
        self.slot(slot).next_run(self.sequence_bits, horizon, count)
    }

    /// Numbers of the slot's tick; `None` if it is used up or too far ahead.
    fn ask(&self, slot: u32, horizon: Horizon, count: NonZeroU32) -> Option<Answer> {
        let answer = self
            .slot(slot)
            .next_run_within(self.sequence_bits, horizon, count);
        (!matches!(answer, Answer::Wait { .. })).then_some(answer)
    }

    fn slot(&self, number: u32) -> &'a Slot {
        &self.slots[number as usize]
    }
}

/// The slot that was asked, what the session does there, and the answer.
type Found = (u32, Stay, Answer);

impl Tick {
    const fn following(self) -> Self {
        Self::new(self.get() + 1)
    }
}

impl Horizon {
    /// The same limits for IDs that are of `tick` at least; `None` if that is too far ahead.
    fn from(self, tick: Tick) -> Option<Self> {
        let ahead = tick.get().saturating_sub(self.now.get());
        Some(Self {
            now: self.now.max(tick),
            max_borrow: self.max_borrow.checked_sub(ahead)?,
            ..self
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ONE: NonZeroU32 = NonZeroU32::MIN;

    fn horizon(now: u64, max_borrow: u64) -> Horizon {
        Horizon {
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

    /// A session that is asked as the extension asks: in its slot as long as it may stay, then [`Session::next_run`].
    struct Asked<'a> {
        session: Session<'a>,
        place: Place,
    }

    impl<'a> Asked<'a> {
        fn new(layout: &Layout, slots: &'a [Slot], home: u32) -> Self {
            let session = Session::new(layout, slots, home);
            let place = session.begin();
            Self { session, place }
        }

        /// The slot and the tick of the next ID; `None` where it has to wait.
        fn next(&mut self, horizon: Horizon) -> Option<(u32, u64)> {
            if self.place.stays(horizon.now) {
                let slot = self.session.slot(self.place.slot);
                let answer = slot.next_within(self.session.sequence_bits, horizon);
                if let Answer::Issued(run) = answer {
                    self.place = self.place.after(run);
                    return Some((self.place.slot, run.tick.get()));
                }
            }
            let (place, answer) = self.session.next_run(self.place, horizon, ONE);
            self.place = place;
            match answer {
                Answer::Issued(run) => Some((place.slot, run.tick.get())),
                Answer::Wait { .. } => None,
                Answer::Reserve { .. } => unreachable!(),
            }
        }

        fn take(&mut self, ids: usize, horizon: Horizon) -> Vec<(u32, u64)> {
            (0..ids).map_while(|_| self.next(horizon)).collect()
        }
    }

    fn times(ids: usize, slot: u32, tick: u64) -> Vec<(u32, u64)> {
        vec![(slot, tick); ids]
    }

    #[test]
    fn the_fourth_id_within_a_tick_is_of_the_common_slot() {
        let layout = layout("timestamp:41 backend:2 sequence:8");
        let slots = slots(4);
        let mut session = Asked::new(&layout, &slots, 2);
        // Three in each of two ticks are not in bulk.
        assert_eq!(session.take(3, horizon(100, 20)), times(3, 2, 100));
        assert_eq!(session.take(3, horizon(101, 20)), times(3, 2, 101));
        assert_eq!(session.take(2, horizon(101, 20)), times(2, 0, 102));
        // Two sessions, in the order in which they ask.
        let mut other = Asked::new(&layout, &slots, 1);
        assert_eq!(other.take(3, horizon(102, 20)), times(3, 1, 102));
        assert_eq!(other.take(1, horizon(102, 20)), times(1, 0, 103));
        assert_eq!(session.take(1, horizon(102, 20)), times(1, 0, 103));
        let (first, last) = (103, slots[0].last(8).1);
        assert_eq!(session.take(2, horizon(102, 20)), times(2, 0, first));
        assert_eq!(slots[0].last(8), (Tick::new(first), last + 2));
    }

    #[test]
    fn a_run_is_in_bulk_at_once() {
        let layout = layout("timestamp:41 backend:2 sequence:8");
        let slots = slots(4);
        let session = Session::new(&layout, &slots, 2);
        let run = |place, count| {
            let count = NonZeroU32::new(count).unwrap();
            session.next_run(place, horizon(100, 20), count).0
        };
        let three = run(session.begin(), 3);
        assert_eq!((three.slot, three.stay), (2, Stay::Single(3)));
        assert_eq!(run(session.begin(), 4).slot, 0);
        assert_eq!(run(three, 1).slot, 0);
    }

    #[test]
    fn it_returns_when_it_has_been_quiet() {
        let layout = layout("timestamp:41 backend:2 sequence:8");
        let slots = slots(4);
        let mut session = Asked::new(&layout, &slots, 2);
        session.take(4, horizon(100, 20));
        assert_eq!(session.place.tick, Tick::new(101));
        for now in [101, 103, 113, 123] {
            assert_eq!(session.next(horizon(now, 20)), Some((0, now)));
        }
        assert_eq!(session.next(horizon(134, 20)), Some((2, 134)));
        assert_eq!(session.place.stay, Stay::Single(1));
    }

    #[test]
    fn if_nothing_may_be_borrowed_it_moves_to_the_common_slot_later() {
        let layout = layout("timestamp:41 backend:2 sequence:4");
        let slots = slots(4);
        let mut session = Asked::new(&layout, &slots, 2);
        let of_one_tick = [times(16, 2, 100), times(16, 3, 100)].concat();
        assert_eq!(session.take(100, horizon(100, 0)), of_one_tick);
        assert_eq!(session.next(horizon(101, 0)), Some((0, 101)));
    }

    /// Two numbers a tick, which begin with 0: the way is easy to read.
    #[test]
    fn the_way_of_a_tick() {
        let layout = layout("timestamp:41 backend:2 sequence:1");
        let way = |home: u32, now: u64, max_borrow: u64| {
            let slots = slots(4);
            let mut session = Asked::new(&layout, &slots, home);
            session.take(2, horizon(99, 0));
            session.take(100, horizon(now, max_borrow))
        };
        let tick = |slots: &[u32], tick| {
            let each = slots.iter().map(|&slot| times(2, slot, tick));
            each.collect::<Vec<_>>().concat()
        };
        // The common slot, its own, those above it; only then the following tick, further ahead from the lowest on.
        assert_eq!(
            way(2, 99, 2),
            [tick(&[0, 2, 3], 100), tick(&[0, 1, 2, 3], 101)].concat()
        );
        assert_eq!(
            way(3, 99, 3),
            [
                tick(&[0, 3], 100),
                tick(&[0, 1, 2, 3], 101),
                tick(&[0, 1, 2, 3], 102)
            ]
            .concat()
        );
        // That tick has come: nothing is borrowed.
        assert_eq!(way(2, 100, 0), tick(&[2, 3], 100));
        assert_eq!(
            way(0, 99, 1),
            [tick(&[1, 2, 3], 99), tick(&[0, 1, 2, 3], 100)].concat()
        );
    }

    /// Many sessions use up every slot of a tick before one of them continues in the next.
    #[test]
    fn all_slots_of_a_tick_are_used() {
        let layout = layout("timestamp:41 backend:2 sequence:1");
        let slots = slots(4);
        let mut sessions: Vec<_> = (0..4)
            .map(|home| Asked::new(&layout, &slots, home))
            .collect();
        let mut issued = Vec::new();
        while let Some(id) = (0..4).find_map(|who| sessions[who].next(horizon(100, 0))) {
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
    fn beside_the_common_slot_it_tries_that_again_later() {
        let layout = layout("timestamp:41 backend:2 sequence:2");
        let slots = slots(4);
        let mut session = Asked::new(&layout, &slots, 2);
        // In bulk, and others have used the common slot up.
        session.take(4, horizon(99, 1));
        slots[0].raise_to(2, Tick::new(101));
        assert_eq!(session.next(horizon(100, 1)), Some((2, 100)));
        // As long as the ticks are of the same sixteen.
        for now in [101, 105, 111] {
            assert_eq!(session.next(horizon(now, 1)), Some((2, now)));
        }
        assert_eq!(session.next(horizon(112, 1)), Some((0, 112)));
        assert_eq!(session.place.stay, Stay::Bulk);
    }

    #[test]
    fn it_stays_where_a_greater_backend_number_is_no_greater_id() {
        for text in [
            "timestamp:41 sequence:1 backend:2",
            "timestamp:41 sequence:1 node:3 backend:2",
        ] {
            let layout = layout(text);
            let slots = slots(4);
            let mut session = Asked::new(&layout, &slots, 1);
            let issued = session.take(100, horizon(100, 1));
            assert_eq!(
                issued,
                [times(2, 1, 100), times(2, 1, 101)].concat(),
                "{text}"
            );
        }
        let layout = layout("timestamp:41 node:4 sequence:1");
        let one = slots(1);
        let mut session = Asked::new(&layout, &one, 0);
        assert_eq!(session.take(100, horizon(100, 0)).len(), 2);
    }

    /// Slot 0 would be the one in the next tick. As it has given nothing, and may be behind the session's last ID, the
    /// session stays in slot 1.
    #[test]
    fn it_stays_where_it_is_while_the_next_tick_is_not_reserved() {
        let layout = layout("timestamp:41 backend:1 sequence:1");
        let slots = slots(2);
        let session = Session::new(&layout, &slots, 1);
        let horizon = Horizon {
            reserved: Tick::new(101),
            ..horizon(100, 5)
        };
        let mut place = session.begin();
        for _ in 0..2 {
            place = session.next_run(place, horizon, ONE).0;
            assert_eq!((place.slot, place.tick), (1, Tick::new(100)));
        }
        let tick = Tick::new(101);
        assert_eq!(
            session.next_run(place, horizon, ONE),
            (place, Answer::Reserve { tick })
        );
    }

    #[test]
    #[should_panic = "slot 4 does not exist"]
    fn a_slot_that_does_not_exist() {
        Session::new(&layout("timestamp:41 backend:2 sequence:1"), &slots(4), 4);
    }
}
