//! Where sequence numbers come from: one atomic word for each backend number.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};

use std::hint::cold_path;
use std::num::NonZeroU32;

use crate::time::Tick;

/// The issuer of one backend number's sequence numbers: the last tick and sequence number that were
/// issued.
///
/// Any number of processes may use a slot at the same time; sharing makes it slower, never wrong.
/// All bytes zero is a valid slot that was never used, so it may live in zeroed shared memory. It
/// has a cache line of its own: other backends write to its neighbours, and would otherwise take
/// the line away all the time.
///
/// The word is `tick << sequence_bits | sequence`, the last one issued. `sequence_bits` is an
/// argument of every method (it is fixed while a server runs); all callers of a slot must pass the
/// same one.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slot {
    /// With `limit = now + max_borrow` and `start = (sequence + 1) mod (range / 16)`:
    ///
    /// | word before | word after | answer |
    /// |---|---|---|
    /// | tick > limit | the same | `Wait` |
    /// | tick < now | now, start | `Issued` |
    /// | now ≤ tick ≤ limit, sequence not used up | tick, sequence + 1 | `Issued` |
    /// | now ≤ tick < limit, sequence used up | tick + 1, 0 (which is start) | `Issued` |
    /// | tick = limit, sequence used up | the same | `Wait` |
    /// | now ≤ tick, sequence used up, `Borrow::No` | the same | `Wait` for the next tick |
    /// | any whose next tick is not reserved | the same | `Reserve` |
    /// | closed | the same | `Closed` |
    /// | any, `raise_to(t)` | max of it and (t - 1, sequence used up), as closed as before | |
    ///
    /// `start` continues from the last sequence number within the lowest sixteenth of the range. If
    /// it were always 0, IDs issued at a low rate would all end in the same bits, and `id % n`
    /// would not spread them. It is 0 if the sequence has fewer than 4 bits.
    ///
    /// In the rows without `tick < now`, the word after is `word + 1`: if the sequence is used up,
    /// that carries into the tick and leaves a sequence of 0. So the word only ever grows, whatever
    /// `now` does.
    ///
    /// The top bit is set while the slot is closed. No layout uses it, because its fields take 63
    /// bits. So one atomic operation ends the issuing in all processes. The way to an ID finds it
    /// with the comparison that finds the last word: neither has a valid one after it.
    ///
    /// # Memory ordering
    ///
    /// `Relaxed` throughout. No word may be issued twice, nor after a higher one. Both follow from
    /// the one modification order that every atomic has by itself: a compare-and-swap succeeds only
    /// against the newest word and only replaces it by a greater one, `fetch_max` never lowers it,
    /// and a stale first load merely makes the swap fail. Stronger orderings order *other* memory
    /// relative to the word, and no other memory is published through it: `now` and `reserved` are
    /// arguments, and using an older `reserved` is safe because that bound only grows. A caller
    /// that announces raised slots uses a flag of its own, written with `Release` after
    /// [`Slot::raise_to`] and read with `Acquire`. What happened before then stays before in this
    /// word's order too (coherence).
    state: AtomicU64,
}

/// What a slot may use at a moment: the clock's tick, how far it may borrow, how far time is
/// reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The clock's tick.
    pub now: Tick,
    /// How many ticks ahead of `now` a slot may borrow.
    pub max_borrow: u64,
    /// The first tick that is not reserved: no ID of it or of a later tick is issued. At most one
    /// past the layout's last tick, so that no ID is later than that.
    pub reserved: Tick,
}

impl Allowance {
    /// The same limits for IDs that are of `tick` at least; `None` if that is too far ahead.
    #[inline]
    pub fn from(self, tick: Tick) -> Option<Self> {
        let ahead = tick.get().saturating_sub(self.now.get());
        Some(Self {
            now: self.now.max(tick),
            max_borrow: self.max_borrow.checked_sub(ahead)?,
            ..self
        })
    }
}

/// Whether a slot may borrow a further tick when its sequence is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Borrow {
    /// It may, within its [`Allowance`].
    Yes,
    /// The answer is to wait for the following tick. A session with other slots tries those first
    /// ([`SlotWalk`](crate::SlotWalk)).
    No,
}

/// Consecutive sequence numbers of one tick: `count` of them from `first` on, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The tick of all of them.
    pub tick: Tick,
    /// The first sequence number.
    pub first: u32,
    /// How many there are.
    pub count: u32,
}

/// What a slot returns to a call for sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// These belong to the caller. They are never issued again.
    Issued(Run),
    /// The slot is as far ahead of the clock as it may be. Nothing has changed.
    Wait {
        /// The earliest `now` at which the slot, as it is, can issue again.
        until: Tick,
    },
    /// Time has to be reserved first. Nothing has changed.
    Reserve {
        /// The tick that the slot would have used.
        tick: Tick,
    },
    /// The slot is closed. Nothing has changed.
    Closed,
}

/// The bit of a closed slot's word.
const CLOSED_BIT: u64 = 1 << 63;

/// The greatest word of a slot that is not closed.
const MAX_WORD: u64 = CLOSED_BIT - 1;

impl Slot {
    /// A slot that was never used: the same as all bytes zero.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
        }
    }

    /// A slot that was never used. Not `const`, because loom's atomics are not.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
        }
    }

    /// Issues one sequence number; it may borrow a further tick.
    #[inline]
    pub fn next(&self, sequence_bits: u32, allowance: Allowance) -> Answer {
        self.next_run(sequence_bits, allowance, NonZeroU32::MIN, Borrow::Yes)
    }

    /// Issues up to `count` sequence numbers of one tick. There are fewer if the tick has fewer
    /// left; the caller calls again for the rest.
    ///
    /// One load and one compare-and-swap, repeated only if another caller came first.
    ///
    /// # Cost
    ///
    /// With a `count` of 1 on x86-64, 35 instructions within a tick, 47 with
    /// [`Identity::id`](crate::Identity::id) (callgrind over the group `given_time` of
    /// bench/benches/one_id). Most of the time goes into one of them, the locked compare-and-swap:
    /// it waits for everything before it, stores too, and what follows waits for it. So what can be
    /// wrong with a tick is found by branches that are predicted, before the swap, and nothing is
    /// stored there. A caller that reads the system's clock for every ID pays about ten times as
    /// much for that as for all of the rest (the groups `clock_alone` and `clock_1us`).
    // Always inlined: `count` and `borrow` are constants on the way to an ID.
    #[inline(always)]
    pub fn next_run(
        &self,
        sequence_bits: u32,
        allowance: Allowance,
        count: NonZeroU32,
        borrow: Borrow,
    ) -> Answer {
        let max_sequence = max_sequence(sequence_bits);
        // What remains of `following` is `(sequence + 1) mod (range / 16)`, and 0 below 4 bits.
        let start_mask = max_sequence >> 4;
        let now = allowance.now.get();

        let mut state = self.state.load(Relaxed);
        loop {
            let following = state.wrapping_add(1);
            // The last word has none, and neither has one of a closed slot.
            if following as i64 <= 0 {
                return without_following(state, sequence_bits, allowance);
            }
            let mut first = following;
            let mut tick = following >> sequence_bits;
            if tick < now {
                // Not rare, but a branch that is predicted well. The compiler prefers conditional
                // moves: then every swap waits for all of this, and an ID takes a quarter more time
                // (bench/benches/one_id).
                cold_path();
                let start = now << sequence_bits;
                if (start as i64) >> sequence_bits != now as i64 {
                    // The shift has lost bits, or reached the top one.
                    return refusal(now, allowance);
                }
                tick = now;
                first = start | following & start_mask;
            } else if borrow == Borrow::No && following & max_sequence == 0 && tick > now {
                return Answer::Wait {
                    until: Tick::new(tick),
                };
            }
            if tick - now > allowance.max_borrow || tick >= allowance.reserved.get() {
                return refusal(tick, allowance);
            }
            let sequence = (first & max_sequence) as u32;
            let count = match count.get() {
                // Without the minimum: one is always left.
                1 => 1,
                wanted => wanted.min(max_sequence as u32 - sequence + 1),
            };
            let last = first + u64::from(count - 1);
            match self
                .state
                .compare_exchange_weak(state, last, Relaxed, Relaxed)
            {
                Ok(_) => {
                    return Answer::Issued(Run {
                        tick: Tick::new(tick),
                        first: sequence,
                        count,
                    });
                }
                Err(current) => state = current,
            }
        }
    }

    /// From now on every sequence number of this slot belongs to `tick` or a later one. The slot is
    /// never lowered.
    pub fn raise_to(&self, sequence_bits: u32, tick: Tick) {
        let tick = tick.get().min(MAX_WORD >> sequence_bits);
        // The word before the tick's first one. There is none before tick 0.
        let word = (tick << sequence_bits).saturating_sub(1);
        let raised = |state: u64| Some((state & MAX_WORD).max(word) | state & CLOSED_BIT);
        // Never refused.
        let _ = self.state.fetch_update(Relaxed, Relaxed, raised);
    }

    /// Ends the issuing in all processes: once this returns, nothing is issued until
    /// [`Slot::open`].
    pub fn close(&self) {
        self.state.fetch_or(CLOSED_BIT, Relaxed);
    }

    /// Continues where [`Slot::close`] has ended the issuing, or above what the slot was raised to
    /// since.
    pub fn open(&self) {
        self.state.fetch_and(MAX_WORD, Relaxed);
    }

    /// Whether the slot has issued this word, or an earlier state of it may have: whether the word
    /// is not above the last one.
    pub(crate) fn has_passed(&self, word: u64) -> bool {
        word <= self.state.load(Relaxed) & MAX_WORD
    }

    /// The last tick and sequence number that were issued, or what [`Slot::raise_to`] left; (0, 0)
    /// if the slot was never used.
    pub fn last(&self, sequence_bits: u32) -> (Tick, u32) {
        let state = self.state.load(Relaxed) & MAX_WORD;
        (
            Tick::new(state >> sequence_bits),
            (state & max_sequence(sequence_bits)) as u32,
        )
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

#[inline(always)]
fn max_sequence(sequence_bits: u32) -> u64 {
    debug_assert!((1..=31).contains(&sequence_bits));
    (1 << sequence_bits) - 1
}

/// What is answered for a word without a valid one after it.
#[cold]
fn without_following(state: u64, sequence_bits: u32, allowance: Allowance) -> Answer {
    if state & CLOSED_BIT != 0 {
        Answer::Closed
    } else {
        // No layout comes near the last word.
        refusal((MAX_WORD >> sequence_bits) + 1, allowance)
    }
}

/// Why `tick` can't be used. Waiting comes first: there is no use in reserving time that may not be
/// used yet.
#[cold]
fn refusal(tick: u64, allowance: Allowance) -> Answer {
    if tick.saturating_sub(allowance.now.get()) > allowance.max_borrow {
        Answer::Wait {
            until: Tick::new(tick - allowance.max_borrow),
        }
    } else {
        Answer::Reserve {
            tick: Tick::new(tick),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const BITS: u32 = 8;

    fn allowance(now: u64, max_borrow: u64) -> Allowance {
        Allowance {
            now: Tick::new(now),
            max_borrow,
            reserved: Tick::new(1 << 40),
        }
    }

    fn slot_at(tick: u64, sequence: u64) -> Slot {
        Slot {
            state: AtomicU64::new(tick << BITS | sequence),
        }
    }

    fn issued(tick: u64, first: u32, count: u32) -> Answer {
        Answer::Issued(Run {
            tick: Tick::new(tick),
            first,
            count,
        })
    }

    fn run(slot: &Slot, allowance: Allowance, count: u32) -> Answer {
        let count = NonZeroU32::new(count).unwrap();
        slot.next_run(BITS, allowance, count, Borrow::Yes)
    }

    /// Each row of the table above the word, at its limits. `range / 16` is 16 here.
    #[test]
    fn every_row_of_the_table_holds_at_its_limits() {
        for ((tick, sequence), (now, max_borrow), answer) in [
            // tick > now + max_borrow, whatever is left
            (
                (106, 0),
                (100, 5),
                Answer::Wait {
                    until: Tick::new(101),
                },
            ),
            (
                (106, 255),
                (100, 5),
                Answer::Wait {
                    until: Tick::new(102),
                },
            ),
            (
                (101, 7),
                (100, 0),
                Answer::Wait {
                    until: Tick::new(101),
                },
            ),
            // tick < now: start continues from the last sequence within the lowest sixteenth
            ((99, 0), (100, 0), issued(100, 1, 1)),
            ((99, 14), (100, 0), issued(100, 15, 1)),
            ((99, 15), (100, 0), issued(100, 0, 1)),
            ((99, 200), (100, 0), issued(100, 9, 1)),
            ((99, 255), (100, 0), issued(100, 0, 1)),
            ((3, 4), (100, 0), issued(100, 5, 1)),
            // tick >= now, something left
            ((100, 4), (100, 0), issued(100, 5, 1)),
            ((100, 254), (100, 0), issued(100, 255, 1)),
            ((104, 4), (100, 5), issued(104, 5, 1)),
            ((105, 254), (100, 5), issued(105, 255, 1)),
            // used up, a tick may be borrowed
            ((100, 255), (100, 1), issued(101, 0, 1)),
            ((104, 255), (100, 5), issued(105, 0, 1)),
            // used up, none may be borrowed
            (
                (100, 255),
                (100, 0),
                Answer::Wait {
                    until: Tick::new(101),
                },
            ),
            (
                (105, 255),
                (100, 5),
                Answer::Wait {
                    until: Tick::new(101),
                },
            ),
        ] {
            let slot = slot_at(tick, sequence);
            let context = format!("({tick}, {sequence}), now {now}, max_borrow {max_borrow}");
            assert_eq!(
                slot.next(BITS, allowance(now, max_borrow)),
                answer,
                "{context}"
            );
            match answer {
                Answer::Issued(run) => assert_eq!(slot.last(BITS), (run.tick, run.first)),
                Answer::Wait { until } => {
                    assert_eq!(slot.last(BITS), (Tick::new(tick), sequence as u32));
                    let next = |now: u64| slot.next(BITS, allowance(now, max_borrow));
                    assert!(
                        matches!(next(until.get() - 1), Answer::Wait { .. }),
                        "{context}"
                    );
                    assert!(matches!(next(until.get()), Answer::Issued(_)), "{context}");
                }
                Answer::Reserve { .. } | Answer::Closed => unreachable!(),
            }
        }
    }

    #[test]
    fn nothing_is_issued_at_or_above_the_reserved_time() {
        let allowance = |now, reserved| Allowance {
            now: Tick::new(now),
            max_borrow: 5,
            reserved: Tick::new(reserved),
        };
        for ((tick, sequence), (now, reserved), wanted) in [
            ((99, 0), (100, 100), 100),
            ((100, 0), (100, 100), 100),
            ((100, 255), (100, 101), 101),
            ((99, 0), (100, 0), 100),
        ] {
            let slot = slot_at(tick, sequence);
            let answer = slot.next(BITS, allowance(now, reserved));
            assert_eq!(
                answer,
                Answer::Reserve {
                    tick: Tick::new(wanted)
                }
            );
            assert_eq!(slot.last(BITS), (Tick::new(tick), sequence as u32));
            assert!(matches!(
                slot.next(BITS, allowance(now, wanted + 1)),
                Answer::Issued(_)
            ));
        }
        // Waiting comes before reserving.
        let slot = slot_at(106, 0);
        assert_eq!(
            slot.next(BITS, allowance(100, 0)),
            Answer::Wait {
                until: Tick::new(101)
            }
        );
    }

    #[test]
    fn runs_stay_within_a_tick() {
        let slot = Slot::new();
        assert_eq!(run(&slot, allowance(100, 1), 250), issued(100, 1, 250));
        assert_eq!(run(&slot, allowance(100, 1), 250), issued(100, 251, 5));
        assert_eq!(run(&slot, allowance(100, 1), u32::MAX), issued(101, 0, 256));
        assert_eq!(
            run(&slot, allowance(100, 1), 1),
            Answer::Wait {
                until: Tick::new(101)
            }
        );
        assert_eq!(run(&slot, allowance(102, 1), 1), issued(102, 0, 1));
        assert_eq!(slot.last(BITS), (Tick::new(102), 0));
    }

    #[test]
    fn the_state_never_goes_down() {
        let slot = Slot::new();
        assert_eq!(slot.next(BITS, allowance(100, 9)), issued(100, 1, 1));
        assert_eq!(slot.next(BITS, allowance(95, 9)), issued(100, 2, 1));
        assert_eq!(
            slot.next(BITS, allowance(90, 9)),
            Answer::Wait {
                until: Tick::new(91)
            }
        );
        slot.raise_to(BITS, Tick::new(50));
        assert_eq!(slot.last(BITS), (Tick::new(100), 2));
        slot.raise_to(BITS, Tick::new(103));
        assert_eq!(slot.last(BITS), (Tick::new(102), 255));
        assert_eq!(slot.next(BITS, allowance(100, 9)), issued(103, 0, 1));
    }

    /// At one ID in each tick, `id % 16` takes its 16 values equally often, also right after a
    /// raise.
    #[test]
    fn ids_of_a_low_rate_spread_over_the_lowest_sixteenth() {
        let slot = Slot::new();
        slot.raise_to(BITS, Tick::new(1_000));
        let mut seen = [0; 16];
        for now in 1_000..1_160 {
            match slot.next(BITS, allowance(now, 0)) {
                Answer::Issued(run) => seen[run.first as usize] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, [10; 16]);
    }

    #[test]
    fn a_new_tick_begins_with_0_if_the_sequence_is_narrow() {
        for bits in 1..=4 {
            let slot = Slot::new();
            for now in 1..10 {
                assert_eq!(slot.next(bits, allowance(now, 0)), issued(now, 0, 1));
            }
        }
        let slot = Slot::new();
        assert_eq!(slot.next(5, allowance(1, 0)), issued(1, 1, 1));
        assert_eq!(slot.next(5, allowance(2, 0)), issued(2, 0, 1));
    }

    /// Arguments that no layout leads to: the word still never goes down, and nothing is issued
    /// twice.
    #[test]
    fn nothing_repeats_at_the_ends_of_63_bits() {
        let end = MAX_WORD >> BITS;
        let at = |now| Allowance {
            now: Tick::new(now),
            max_borrow: u64::MAX,
            reserved: Tick::new(u64::MAX),
        };
        let slot = Slot::new();
        slot.raise_to(BITS, Tick::new(u64::MAX));
        assert_eq!(slot.last(BITS), (Tick::new(end - 1), 255));
        assert_eq!(run(&slot, at(0), 255), issued(end, 0, 255));
        assert_eq!(slot.next(BITS, at(0)), issued(end, 255, 1));
        for now in [0, end, end + 1, u64::MAX >> BITS, u64::MAX - 1, u64::MAX] {
            assert!(!matches!(slot.next(BITS, at(now)), Answer::Issued(_)));
            assert_eq!(slot.last(BITS), (Tick::new(end), 255));
        }

        let slot = slot_at(100, 0);
        assert!(!matches!(slot.next(BITS, at(end + 1)), Answer::Issued(_)));
        assert_eq!(slot.last(BITS), (Tick::new(100), 0));
    }

    #[test]
    fn a_closed_slot_issues_nothing_and_continues_above_what_it_was_raised_to() {
        let slot = Slot::new();
        assert_eq!(slot.next(BITS, allowance(100, 9)), issued(100, 1, 1));
        slot.close();
        slot.close();
        for now in [0, 100, 101, 1 << 30] {
            assert_eq!(slot.next(BITS, allowance(now, 9)), Answer::Closed);
            assert_eq!(slot.next(BITS, allowance(now, u64::MAX)), Answer::Closed);
            assert_eq!(slot.last(BITS), (Tick::new(100), 1));
        }
        slot.open();
        slot.open();
        assert_eq!(slot.next(BITS, allowance(100, 9)), issued(100, 2, 1));
        slot.close();
        slot.raise_to(BITS, Tick::new(103));
        assert_eq!(slot.next(BITS, allowance(103, 9)), Answer::Closed);
        slot.open();
        assert_eq!(slot.next(BITS, allowance(100, 9)), issued(103, 0, 1));
    }

    #[test]
    fn a_slot_has_a_cache_line_of_its_own() {
        assert_eq!(size_of::<Slot>(), 64);
        assert_eq!(align_of::<Slot>(), 64);
        assert_eq!(size_of::<[Slot; 16]>(), 1024);
        assert_eq!(Slot::new().last(BITS), (Tick::new(0), 0));
    }
}
