//! The layout and the node number of a server.

use crate::id::SnowflakeId;
use crate::layout::{FieldError, Layout};
use crate::slot::Run;
use crate::time::Tick;

/// A layout with the node number filled in: turns what a [`Slot`](crate::Slot) has issued into IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    layout: Layout,
    node: u32,
    /// The node number at its place in an ID.
    node_bits: u64,
    /// The layout's, precomputed: to compute them would take longer than to compare with them.
    last_tick: Tick,
    max_sequence: u32,
}

impl Identity {
    /// # Errors
    ///
    /// If the node number does not fit its field.
    pub fn new(layout: Layout, node: u32) -> Result<Self, FieldError> {
        Ok(Self {
            layout,
            node,
            node_bits: layout.put_node(node)?,
            last_tick: layout.last_tick(),
            max_sequence: layout.max_sequence(),
        })
    }

    /// The layout.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The node number; 0 if the layout has none.
    pub const fn node(&self) -> u32 {
        self.node
    }

    /// The ID of a tick and a sequence number that the slot of this backend number has issued.
    ///
    /// # Panics
    ///
    /// If the layout does not hold the numbers. A slot does not issue such numbers if it was given
    /// the layout's `sequence_bits` and a reserved time of at most one past its last tick. They are
    /// checked all the same: a number that spills into another field makes an ID of another server,
    /// slot or tick.
    #[inline]
    pub fn id(&self, backend: u32, tick: Tick, sequence: u32) -> SnowflakeId {
        if backend > self.layout.max_backend() {
            outside_the_layout(tick, backend);
        }
        if tick > self.last_tick || sequence > self.max_sequence {
            outside_the_layout(tick, sequence);
        }
        SnowflakeId::from_bits(
            self.layout.put_tick(tick)
                | self.node_bits
                | self.layout.put_backend(backend)
                | self.layout.put_sequence(sequence),
        )
    }

    /// The IDs of a run of this backend number's slot, ascending.
    pub fn ids(
        &self,
        backend: u32,
        run: Run,
    ) -> impl ExactSizeIterator<Item = SnowflakeId> + use<> {
        let identity = *self;
        (0..run.count).map(move |n| identity.id(backend, run.tick, run.first + n))
    }
}

/// This is a function of its own, with the numbers by value. A message at the place of the check
/// would keep the numbers in memory there, and stores before the next ID's compare-and-swap delay
/// it.
#[cold]
#[inline(never)]
fn outside_the_layout(tick: Tick, number: u32) -> ! {
    panic!("tick {tick} and number {number} are outside the layout");
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn identity(node: u32) -> Identity {
        Identity::new(Layout::DEFAULT, node).unwrap()
    }

    #[test]
    fn the_numbers_are_in_the_id() {
        let identity = identity(33);
        let issued = identity.id(5, Tick::new(1_234), 99);
        let parts = Layout::DEFAULT.decode(issued).unwrap();
        assert_eq!((parts.node, parts.backend, parts.sequence), (33, 5, 99));
        assert_eq!(Layout::DEFAULT.tick_of(issued), Tick::new(1_234));
        assert_eq!((identity.node(), identity.layout()), (33, &Layout::DEFAULT));

        let run = Run {
            tick: Tick::new(9),
            first: 4090,
            count: 6,
        };
        let ids: Vec<_> = identity.ids(5, run).collect();
        assert_eq!(ids.len(), 6);
        assert_eq!(ids[0], identity.id(5, run.tick, 4090));
        assert_eq!(ids[5], identity.id(5, run.tick, 4095));
    }

    #[test]
    fn a_node_number_that_does_not_fit_is_refused() {
        let error = Identity::new(Layout::DEFAULT, 64).unwrap_err();
        assert_eq!((error.name, error.value, error.max), ("node", 64, 63));
    }

    #[test]
    #[should_panic(expected = "outside the layout")]
    fn a_tick_past_the_end_is_refused() {
        identity(0).id(0, Layout::DEFAULT.end_tick(), 0);
    }

    #[test]
    #[should_panic(expected = "outside the layout")]
    fn a_sequence_number_that_spills_is_refused() {
        identity(0).id(0, Tick::new(0), 4096);
    }

    #[test]
    #[should_panic(expected = "outside the layout")]
    fn a_backend_number_that_spills_is_refused() {
        identity(0).id(16, Tick::new(0), 0);
    }
}
