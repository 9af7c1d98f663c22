//! Whether an ID with this server's node number was issued by another server.
//!
//! IDs do not say who issued them beyond the node number. What a server can tell is what it has
//! *not* issued: all that is above the last ID of a slot. A second server with the same number is
//! found by this as soon as one of its IDs arrives before the slot here has passed it. An ID that
//! this server has issued is never taken for another server's. There is no such certainty about IDs
//! from before the start, so those are not judged.

use crate::{Identity, Slot, SnowflakeId};

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

/// Whether an ID that has arrived from elsewhere has this server's node number, and this server has
/// certainly not issued it.
///
/// All IDs that this server has issued at or above `first_judged` are of these slots, since their
/// memory was created.
#[must_use]
pub fn is_conflict(
    identity: &Identity,
    slots: &[Slot],
    first_judged: SnowflakeId,
    id: SnowflakeId,
) -> bool {
    id >= first_judged
        && word_of(identity, id).is_some_and(|(backend, word)| {
            slots
                .get(backend as usize)
                .is_none_or(|slot| !slot.has_passed(word))
        })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Allowance, Answer, Layout, Tick};

    struct Server {
        identity: Identity,
        slots: Vec<Slot>,
    }

    impl Server {
        fn new(node: u32) -> Self {
            let layout = Layout::default();
            Server {
                identity: Identity::new(layout, node).unwrap(),
                slots: (0..=layout.max_backend()).map(|_| Slot::new()).collect(),
            }
        }

        fn next(&self, backend: u32, now: u64) -> SnowflakeId {
            let allowance = Allowance {
                now: Tick::new(now),
                max_borrow: 1_000,
                reserved: self.identity.layout().end_tick(),
            };
            match self.slots[backend as usize]
                .next(self.identity.layout().sequence_bits(), allowance)
            {
                Answer::Issued(run) => self.identity.id(backend, run.tick, run.first),
                other => panic!("{other:?}"),
            }
        }

        fn is_conflict(&self, first_judged: SnowflakeId, id: SnowflakeId) -> bool {
            is_conflict(&self.identity, &self.slots, first_judged, id)
        }
    }

    #[test]
    fn an_id_above_the_last_of_its_slot_is_another_servers() {
        let (here, there) = (Server::new(5), Server::new(5));
        let is_conflict = |id| here.is_conflict(SnowflakeId::ZERO, id);
        let own = here.next(3, 1_000);
        assert!(!is_conflict(own));
        assert!(is_conflict(there.next(3, 1_001)));
        assert!(is_conflict(there.next(4, 1)));
        assert!(!is_conflict(Server::new(6).next(3, 2_000)));
        // Passed here in the meantime.
        let id = there.next(3, 1_002);
        here.next(3, 1_003);
        assert!(!is_conflict(id));
        // Before the first that is judged.
        let after = SnowflakeId::new(id.get() + 1).unwrap();
        let other = there.next(4, 1_002);
        assert!(here.is_conflict(after, other));
        assert!(!here.is_conflict(SnowflakeId::new(other.get() + 1).unwrap(), other));
    }
}
