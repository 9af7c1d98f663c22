//! Where a session goes on that asks for more IDs than its slot makes.

use std::num::NonZeroU32;

use crate::layout::Layout;
use crate::slot::{Answer, Horizon, Slot};
use crate::time::Tick;

/// A session's way through the slots of its server.
///
/// A session makes its IDs in its own slot, and borrows the ticks that follow when one is used up. One that has borrowed
/// a tenth of what it may has come to stay, and goes on in the slots above, **in the same tick**: as the backend number
/// stands above the sequence, its IDs still increase. Above the topmost slot it goes on in the following tick, from the
/// middle of those below its own: not all from slot 0, where bursts would meet. Only where all of them have used up what
/// they may borrow does it wait. When time has gone on beyond the session's last tick it returns to its own slot.
///
/// Not at once, so that the backend number of what is asked for now and then is that of its session; and not only when it
/// would have to wait, because a slot that a burst has visited is where the burst was, and its own sessions' IDs are as
/// far ahead of time.
///
/// Where the layout has no backend numbers, or has them below the sequence (a greater number there is no greater ID),
/// a session stays in its slot.
#[derive(Clone, Copy, Debug)]
pub struct Burst<'a> {
    slots: &'a [Slot],
    sequence_bits: u32,
    home: u32,
    spreads: bool,
}

impl<'a> Burst<'a> {
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
            spreads: slots.len() > 1 && layout.backend_is_above_sequence(),
        }
    }

    /// The session's own slot.
    pub const fn home(&self) -> u32 {
        self.home
    }

    /// Asks for up to `count` sequence numbers of one tick, for a session whose last ID came from slot number `current`.
    /// Answers with the slot that the session's last ID is of then, to be passed the next time: that of the numbers, or
    /// where there are none, `current`. The IDs are greater than any that the session got before.
    ///
    /// # Panics
    ///
    /// If there is no slot `current`.
    pub fn next_run(&self, current: u32, horizon: Horizon, count: NonZeroU32) -> (u32, Answer) {
        let (number, answer) = if self.spreads {
            self.spread(current, horizon, count)
        } else {
            let slot = self.slot(current);
            (current, slot.next_run(self.sequence_bits, horizon, count))
        };
        match answer {
            Answer::Issued(_) => (number, answer),
            // A slot that gave nothing may be behind the session's last ID: it must not go on from there.
            Answer::Wait { .. } | Answer::Reserve { .. } => (current, answer),
        }
    }

    /// The same where there are slots to go to, with the slot that was asked last.
    fn spread(&self, current: u32, horizon: Horizon, count: NonZeroU32) -> (u32, Answer) {
        // At or above the tick of the session's last ID.
        let (last, _) = self.slot(current).last(self.sequence_bits);
        let start = if horizon.now > last {
            self.home
        } else {
            current
        };
        let ask = |number: u32, horizon: Horizon| {
            let answer = self
                .slot(number)
                .next_run_within(self.sequence_bits, horizon, count);
            (!matches!(answer, Answer::Wait { .. })).then_some((number, answer))
        };

        ask(start, horizon)
            .or_else(|| {
                let near = Horizon {
                    max_borrow: horizon.max_borrow / 10,
                    ..horizon
                };
                let answer = self.slot(start).next_run(self.sequence_bits, near, count);
                (!matches!(answer, Answer::Wait { .. })).then_some((start, answer))
            })
            .or_else(|| {
                let same_tick = horizon.from(last)?;
                (start + 1..self.count()).find_map(|number| ask(number, same_tick))
            })
            .or_else(|| {
                let next = Tick::new(last.max(horizon.now).get() + 1);
                let next_tick = horizon.from(next)?;
                (self.home / 2..self.count()).find_map(|number| ask(number, next_tick))
            })
            .unwrap_or_else(|| {
                let answer = self
                    .slot(start)
                    .next_run(self.sequence_bits, horizon, count);
                (start, answer)
            })
    }

    fn slot(&self, number: u32) -> &'a Slot {
        &self.slots[number as usize]
    }

    fn count(&self) -> u32 {
        self.slots.len() as u32
    }
}

impl Horizon {
    /// The same limits for IDs that are of `tick` at least; `None` where that is too far ahead.
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

    /// The slot and the tick of each ID that a session gets one by one, until it has to wait.
    fn until_it_waits(burst: &Burst, horizon: Horizon) -> Vec<(u32, u64)> {
        let mut current = burst.home();
        let mut issued = Vec::new();
        loop {
            match burst.next_run(current, horizon, ONE) {
                (number, Answer::Issued(run)) => {
                    issued.push((number, run.tick.get()));
                    current = number;
                }
                (_, Answer::Wait { .. }) => return issued,
                (_, Answer::Reserve { .. }) => unreachable!(),
            }
        }
    }

    #[test]
    fn a_short_burst_stays_in_its_slot() {
        let layout = layout("timestamp:41 backend:2 sequence:1");
        let slots = slots(4);
        let issued = until_it_waits(&Burst::new(&layout, &slots, 2), horizon(100, 20));
        let two = |number: u32, tick: u64| [(number, tick); 2];
        let begins = [
            two(2, 100),
            two(2, 101),
            two(2, 102),
            two(3, 102),
            two(1, 103),
        ]
        .concat();
        assert_eq!(issued[..begins.len()], begins);
        // In the end all that may be borrowed was used, above the middle of what is below.
        let last: Vec<u64> = slots.iter().map(|slot| slot.last(1).0.get()).collect();
        assert_eq!(last, [0, 120, 120, 120]);
    }

    /// Two numbers a tick, which begin with 0: the way is easy to read.
    #[test]
    fn the_way() {
        let layout = layout("timestamp:41 backend:2 sequence:1");
        let slots = slots(4);
        let two = |number: u32, tick: u64| [(number, tick); 2];
        // Nothing may be borrowed: the rest of the tick, upwards.
        let burst = Burst::new(&layout, &slots, 2);
        assert_eq!(
            until_it_waits(&burst, horizon(100, 0)),
            [two(2, 100), two(3, 100)].concat()
        );
        // A tick may: after the topmost slot it goes on from the middle of those below its own.
        let burst = Burst::new(&layout, &slots, 3);
        assert_eq!(
            until_it_waits(&burst, horizon(200, 1)),
            [two(3, 200), two(1, 201), two(2, 201), two(3, 201)].concat()
        );
        // Slot 0 is not on that way.
        assert_eq!(slots[0].last(1), (Tick::new(0), 0));
    }

    #[test]
    fn it_returns_when_time_has_gone_on() {
        let layout = layout("timestamp:41 backend:2 sequence:1");
        let slots = slots(4);
        let burst = Burst::new(&layout, &slots, 1);
        slots[2].next(1, horizon(100, 0));
        let (number, _) = burst.next_run(2, horizon(100, 0), ONE);
        assert_eq!(number, 2, "the session has an ID of slot 2 in this tick");
        let (number, _) = burst.next_run(2, horizon(101, 0), ONE);
        assert_eq!(number, 1);
    }

    #[test]
    fn it_stays_where_a_greater_backend_number_is_no_greater_id() {
        for text in [
            "timestamp:41 sequence:1 backend:2",
            "timestamp:41 sequence:1 node:3 backend:2",
        ] {
            let layout = layout(text);
            let slots = slots(4);
            let burst = Burst::new(&layout, &slots, 1);
            let issued = until_it_waits(&burst, horizon(100, 1));
            assert_eq!(issued, [(1, 100), (1, 100), (1, 101), (1, 101)], "{text}");
        }
        let layout = layout("timestamp:41 node:4 sequence:1");
        let one = slots(1);
        let burst = Burst::new(&layout, &one, 0);
        assert_eq!(until_it_waits(&burst, horizon(100, 0)).len(), 2);
    }

    /// It is slot 0 that would go on in the next tick. As that has given nothing, and may be behind the session's last ID,
    /// the session stays in slot 1.
    #[test]
    fn it_stays_where_it_is_while_the_next_tick_is_not_reserved() {
        let layout = layout("timestamp:41 backend:1 sequence:1");
        let slots = slots(2);
        let burst = Burst::new(&layout, &slots, 0);
        let horizon = Horizon {
            reserved: Tick::new(101),
            ..horizon(100, 5)
        };
        let mut current = 0;
        for expected in [0, 0, 1, 1] {
            current = burst.next_run(current, horizon, ONE).0;
            assert_eq!(current, expected);
        }
        let tick = Tick::new(101);
        assert_eq!(
            burst.next_run(current, horizon, ONE),
            (1, Answer::Reserve { tick })
        );
    }

    #[test]
    #[should_panic = "slot 4 does not exist"]
    fn a_slot_that_does_not_exist() {
        Burst::new(&layout("timestamp:41 backend:2 sequence:1"), &slots(4), 4);
    }
}
