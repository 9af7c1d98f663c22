//! Whether an ID with this server's node number was issued by another server.
//!
//! IDs do not say who issued them beyond the node number. What a server can tell is what it has *not* issued:
//!
//! - What is above the last ID of a slot. A second server with the same number is found by this as soon as one of its IDs
//!   is of a slot that is not in use here at this moment.
//! - What a slot has skipped. If both servers are busy in the same slots, IDs of the other one mostly arrive when the
//!   slot here has already passed them. Then slots in use skip a little time now and again, and the skipped words are
//!   kept ([`Gaps`]): IDs of that time were issued by the other server.
//!
//! Both are certain: an ID that this server has issued is never taken for another server's. There is no such
//! certainty about IDs from before the start, so those are not judged.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::{Gap, Identity, Slot, SnowflakeId, Tick};

/// What can be said of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has another node number, or is not to be judged.
    Unrelated,
    /// It has this server's node number, and this server may have issued it, in the slot of this backend number.
    Undecided(u32),
    /// It has this server's node number, and this server has not issued it.
    Conflict,
}

/// The ID's backend number and the word of its slot; `None` unless it has this node number.
fn word_of(identity: &Identity, id: SnowflakeId) -> Option<(u32, u64)> {
    let layout = identity.layout();
    let parts = layout.decode(id).ok()?;
    let word = layout.tick_of(id).get() << layout.sequence_bits() | u64::from(parts.sequence);
    (parts.node == identity.node()).then_some((parts.backend, word))
}

/// Whether the ID has this node number.
#[must_use]
pub fn has_node(identity: &Identity, id: SnowflakeId) -> bool {
    word_of(identity, id).is_some()
}

/// Judges an ID that has arrived from elsewhere.
///
/// All IDs that this server has issued at or above `first_judged` are of these slots, since their memory was created.
#[must_use]
pub fn judge(
    identity: &Identity,
    slots: &[Slot],
    gaps: &Gaps,
    first_judged: SnowflakeId,
    id: SnowflakeId,
) -> Verdict {
    let Some((backend, word)) = word_of(identity, id).filter(|_| id >= first_judged) else {
        return Verdict::Unrelated;
    };
    match slots.get(backend as usize) {
        Some(slot) if slot.has_passed(word) && !gaps.contain(backend, word) => {
            Verdict::Undecided(backend)
        }
        _ => Verdict::Conflict,
    }
}

/// How many gaps are kept: those of some seconds, if 16 slots make one every [`Gaps::INTERVAL_MICROS`].
const KEPT: usize = 1_024;

/// The backend number of a gap's tag, plus 1; 0 in an entry without a gap.
const BACKEND_OF_TAG: u64 = 0xFFFF;

/// Words that slots have skipped. All bytes zero is a valid value without gaps.
///
/// Any number of processes may read it while one writes. A gap that is being replaced is seen as none.
#[derive(Debug)]
pub struct Gaps {
    /// Whether a process writes.
    taken: AtomicBool,
    count: AtomicU64,
    gaps: [[AtomicU64; 3]; KEPT],
}

impl Default for Gaps {
    fn default() -> Self {
        Self {
            taken: AtomicBool::new(false),
            count: AtomicU64::new(0),
            gaps: [const { [const { AtomicU64::new(0) }; 3] }; KEPT],
        }
    }
}

impl Gaps {
    /// How much time a gap is to have, microseconds. The other server's IDs have to fall into it.
    const MICROS: u64 = 10_000;

    /// How long to wait after a gap before the next one of a slot, microseconds. An ID of the other server is in a gap
    /// with a probability of a fifth.
    pub const INTERVAL_MICROS: i64 = 50_000;

    /// Makes the slot of this backend number skip a little time, and keeps the gap. Does nothing if that is more than a
    /// quarter of `max_borrow` (ticks): then calls might have to wait or to fail. Nor if another process does it now.
    pub fn make(
        &self,
        identity: &Identity,
        slots: &[Slot],
        backend: u32,
        now: Tick,
        max_borrow: u64,
    ) -> Option<Gap> {
        let layout = identity.layout();
        let bits = layout.sequence_bits();
        let tick_micros = u64::from(layout.tick_micros());
        let count = match Self::MICROS / tick_micros {
            // A part of the tick's sequence: a tick is too long.
            0 => (1 << bits >> 3).max(1),
            ticks => ticks << bits,
        };
        if (count >> bits) + 1 > max_borrow / 4 {
            return None;
        }
        let slot = slots.get(backend as usize)?;
        if self.taken.swap(true, Acquire) {
            return None;
        }
        let gap = slot.skip(bits, now, count, layout.end_tick());
        if let Some(gap) = gap {
            self.keep(backend, gap);
        }
        self.taken.store(false, Release);
        gap
    }

    /// Replaces one at random once there are too many. So some of them stay for long: IDs may arrive late, at the end of
    /// a long transaction.
    fn keep(&self, backend: u32, gap: Gap) {
        let count = self.count.fetch_add(1, Relaxed);
        let index = match usize::try_from(count) {
            Ok(index) if index < KEPT => index,
            // Fibonacci hashing: the top bits are spread evenly.
            _ => (count.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize % KEPT,
        };
        let [first, last, tag] = &self.gaps[index];
        tag.store(0, Release);
        first.store(gap.first, Release);
        last.store(gap.last, Release);
        // Different each time.
        tag.store((count << 16) | (u64::from(backend) + 1), Release);
    }

    /// Whether the slot of this backend number has skipped the word.
    fn contain(&self, backend: u32, word: u64) -> bool {
        self.gaps.iter().any(|[first, last, tag]| {
            let before = tag.load(Acquire);
            before & BACKEND_OF_TAG == u64::from(backend) + 1
                && (first.load(Acquire)..=last.load(Acquire)).contains(&word)
                // Not replaced in between: parts of two gaps are none.
                && tag.load(Acquire) == before
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Allowance, Answer, Layout};

    const BORROW: u64 = 1_000;

    struct Server {
        identity: Identity,
        slots: Vec<Slot>,
        gaps: Gaps,
    }

    impl Server {
        fn new(layout: &str, node: u32) -> Self {
            let layout: Layout = layout.parse().unwrap();
            Server {
                identity: Identity::new(layout, node).unwrap(),
                slots: (0..=layout.max_backend()).map(|_| Slot::new()).collect(),
                gaps: Gaps::default(),
            }
        }

        fn next(&self, backend: u32, now: u64) -> SnowflakeId {
            let allowance = Allowance {
                now: Tick::new(now),
                max_borrow: BORROW,
                reserved: self.identity.layout().end_tick(),
            };
            match self.slots[backend as usize]
                .next(self.identity.layout().sequence_bits(), allowance)
            {
                Answer::Issued(run) => self.identity.id(backend, run.tick, run.first),
                other => panic!("{other:?}"),
            }
        }

        fn judge(&self, id: SnowflakeId) -> Verdict {
            judge(
                &self.identity,
                &self.slots,
                &self.gaps,
                SnowflakeId::ZERO,
                id,
            )
        }
    }

    #[test]
    fn an_id_above_the_last_of_its_slot_is_another_servers() {
        let (here, there) = (Server::new("default", 5), Server::new("default", 5));
        let own = here.next(3, 1_000);
        assert_eq!(here.judge(own), Verdict::Undecided(3));
        assert_eq!(here.judge(there.next(3, 1_001)), Verdict::Conflict);
        assert_eq!(here.judge(there.next(4, 1)), Verdict::Conflict);
        assert_eq!(
            here.judge(Server::new("default", 6).next(3, 2_000)),
            Verdict::Unrelated
        );
        // Passed here in the meantime.
        let id = there.next(3, 1_002);
        here.next(3, 1_003);
        assert_eq!(here.judge(id), Verdict::Undecided(3));
        let after = SnowflakeId::new(id.get() + 1).unwrap();
        let judged = judge(
            &here.identity,
            &here.slots,
            &here.gaps,
            after,
            there.next(4, 1_002),
        );
        assert_eq!(judged, Verdict::Conflict);
        let judged = judge(&here.identity, &here.slots, &here.gaps, after, id);
        assert_eq!(judged, Verdict::Unrelated);
    }

    /// Two servers with one number and one slot, both as busy as they can be. The IDs of each arrive at the other when
    /// those of the following 20 ms have been issued there.
    #[test]
    fn a_busy_server_with_the_same_number_is_found_and_own_ids_are_not() {
        for layout in [
            "instagram",
            "default",
            "tsid",
            "timestamp:41 sequence:22",
            "mastodon",
        ] {
            let (here, there) = (Server::new(layout, 0), Server::new(layout, 0));
            let (mut arriving, mut own) = (Vec::new(), Vec::new());
            let mut found = None;
            for now in 1_000..2_000_u64 {
                // The end of the tick, so that what is borrowed on one side does not matter.
                own.extend((0..50).map(|_| here.next(0, now)));
                arriving.push((now, there.next(0, now)));
                let (at, id) = arriving[arriving.len().saturating_sub(20)];
                match here.judge(id) {
                    Verdict::Conflict if now > 1_000 => {
                        found = Some((now, at));
                        break;
                    }
                    Verdict::Undecided(_) if now % 50 == 0 => {
                        let gap =
                            here.gaps
                                .make(&here.identity, &here.slots, 0, Tick::new(now), BORROW);
                        assert!(gap.is_some(), "{layout}");
                    }
                    _ => {}
                }
            }
            assert!(found.is_some(), "{layout}");
            for id in own {
                assert_eq!(here.judge(id), Verdict::Undecided(0), "{layout}");
            }
        }
    }

    #[test]
    fn no_gap_is_made_where_calls_would_have_to_wait() {
        for (layout, max_borrow, is_made) in [
            ("default", 1_000, true),
            ("default", 0, false),
            ("default", 43, false),
            ("default", 44, true),
            ("uid-generator", 1, false),
            ("uid-generator", 4, true),
            ("sonyflake", 7, false),
            ("sonyflake", 100, true),
        ] {
            let server = Server::new(layout, 0);
            let id = server.next(0, 1_000);
            let made = server.gaps.make(
                &server.identity,
                &server.slots,
                0,
                Tick::new(1_000),
                max_borrow,
            );
            assert_eq!(made.is_some(), is_made, "{layout}, {max_borrow}");
            let next = server.next(0, 1_000);
            assert!(next > id);
            assert_eq!(server.judge(next), Verdict::Undecided(0));
            assert_eq!(server.judge(id), Verdict::Undecided(0));
        }
    }

    #[test]
    fn some_old_gaps_are_kept_beside_the_newest() {
        let gaps = Gaps::default();
        for n in 0..10 * KEPT as u64 {
            let (first, last) = (10 * n + 1, 10 * n + 2);
            gaps.keep(7, Gap { first, last });
            assert!(gaps.contain(7, first) && gaps.contain(7, last));
            assert!(!gaps.contain(7, last + 1) && !gaps.contain(6, first));
        }
        let of_before = (0..9 * KEPT as u64)
            .filter(|n| gaps.contain(7, 10 * n + 1))
            .count();
        assert!((1..KEPT).contains(&of_before), "{of_before}");
    }
}
