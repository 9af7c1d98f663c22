//! Where things lie in a block of shared memory: one header and four arrays.
//!
//! ```text
//! start   up to 63 bytes that align the header
//!         H          the header
//!         E × ENTRIES
//!         S × slots
//!         C × slots
//!         T × transactions
//! ```
//!
//! All pointer arithmetic on the block is here, without Postgres, so that it can be tested by an ordinary program,
//! under a sanitizer, and under Miri. The extension defines what the parts mean (`src/shared.rs`).
//!
//! # Provenance
//!
//! A pointer may be used only within the memory that it was created for. A pointer that is derived from a reference to
//! the header is valid within the header only. So the block keeps the pointer to the whole memory, and each part's
//! pointer is derived from that one; no reference is ever turned back into a pointer.
//!
//! Miri checks this rule, if the toolchain has it (`cargo miri test -p snowflake-shmem`). Only two expressions create a
//! pointer: `base` in [`Block::attach`] (the caller's pointer plus its padding) and `part` (that pointer plus an offset
//! that [`Layout::extend`] has computed). The tests fill memory that has exactly the requested size, which
//! AddressSanitizer checks (`RUSTFLAGS=-Zsanitizer=address cargo +nightly test -p snowflake-shmem --lib --target
//! x86_64-unknown-linux-gnu`).
#![allow(unsafe_code)] // pointers into shared memory

use std::alloc::Layout;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

/// A block with one `H`, `ENTRIES` times `E`, for each slot an `S` and a `C`, and for each transaction a `T`. A copy refers
/// to the same block.
pub struct Block<H, E, S, C, T, const ENTRIES: usize> {
    /// The header's address, with the provenance of the whole memory.
    base: NonNull<u8>,
    lengths: Lengths,
    #[allow(clippy::type_complexity)] // names the five types, nothing else
    parts: PhantomData<fn() -> (H, E, S, C, T)>,
}

/// How long the arrays are whose length depends on the server's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// The number of slots, and of their counters.
    pub slots: usize,
    /// The number of transactions that can be open.
    pub transactions: usize,
}

/// The offsets of the parts from the header, and the size of all of it, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offsets {
    entries: usize,
    slots: usize,
    counters: usize,
    transactions: usize,
    size: usize,
}

impl<H, E, S, C, T, const ENTRIES: usize> Clone for Block<H, E, S, C, T, ENTRIES> {
    fn clone(&self) -> Self {
        *self
    }
}

// SAFETY: only shared references to the parts are created, which are `Sync` (a bound of everything that creates them).
unsafe impl<H: Sync, E: Sync, S: Sync, C: Sync, T: Sync, const ENTRIES: usize> Send
    for Block<H, E, S, C, T, ENTRIES>
{
}
// SAFETY: as above.
unsafe impl<H: Sync, E: Sync, S: Sync, C: Sync, T: Sync, const ENTRIES: usize> Sync
    for Block<H, E, S, C, T, ENTRIES>
{
}

impl<H, E, S, C, T, const ENTRIES: usize> Copy for Block<H, E, S, C, T, ENTRIES> {}

impl<H, E, S, C, T, const ENTRIES: usize> Block<H, E, S, C, T, ENTRIES>
where
    H: Sync + 'static,
    E: Sync + 'static,
    S: Sync + 'static,
    C: Sync + 'static,
    T: Sync + 'static,
{
    /// The alignment of the header: the greatest that a part needs.
    const ALIGNMENT: usize = {
        let mut alignment = align_of::<H>();
        let others = [
            align_of::<E>(),
            align_of::<S>(),
            align_of::<C>(),
            align_of::<T>(),
        ];
        let mut i = 0;
        while i < others.len() {
            if others[i] > alignment {
                alignment = others[i];
            }
            i += 1;
        }
        alignment
    };

    /// The number of bytes to request: the parts, and room to align them.
    ///
    /// # Panics
    /// If that is more than the address space.
    #[must_use]
    pub fn size(lengths: Lengths) -> usize {
        Self::offsets(lengths).size + Self::ALIGNMENT
    }

    /// Creates the block: sets all of it to zero.
    ///
    /// # Safety
    /// `start` is the beginning of [`size(lengths)`](Self::size) bytes of writable memory. The memory stays as long as the
    /// process, and nothing else refers to it yet.
    ///
    /// Each of the five types has a valid value of all zero bytes, no destructor, and no pointer into the memory of a
    /// process. All that changes in it is atomic, or guarded by a lock that works between processes.
    #[must_use]
    pub unsafe fn create(start: NonNull<u8>, lengths: Lengths) -> Self {
        // SAFETY: per this function's contract, which is that of both.
        unsafe {
            ptr::write_bytes(start.as_ptr(), 0, Self::size(lengths));
            Self::attach(start, lengths)
        }
    }

    /// The block that [`create`](Self::create) has created.
    ///
    /// # Safety
    /// `create` was called with this `start`, or its address in another process that shares the memory, and with the same
    /// lengths and the same five types. The memory stays as long as the process.
    #[must_use]
    pub unsafe fn attach(start: NonNull<u8>, lengths: Lengths) -> Self {
        let padding = start.align_offset(Self::ALIGNMENT);
        Block {
            // SAFETY: `size` has counted the alignment, so this is within the memory.
            base: unsafe { start.add(padding) },
            lengths,
            parts: PhantomData,
        }
    }

    /// The header.
    #[must_use]
    pub fn header(self) -> &'static H {
        // SAFETY: `part` is valid for one `H`, zeroed at first, never moved or freed, and only shared references to it
        // are created.
        unsafe { self.part::<H>(0).as_ref() }
    }

    /// The entries.
    #[must_use]
    pub fn entries(self) -> &'static [E] {
        // SAFETY: as above, of ENTRIES of them.
        unsafe { slice::from_raw_parts(self.part(self.own_offsets().entries).as_ptr(), ENTRIES) }
    }

    /// The slots.
    #[must_use]
    pub fn slots(self) -> &'static [S] {
        // SAFETY: as above, of as many as the block was created with.
        unsafe {
            slice::from_raw_parts(
                self.part(self.own_offsets().slots).as_ptr(),
                self.lengths.slots,
            )
        }
    }

    /// The counters.
    #[must_use]
    pub fn counters(self) -> &'static [C] {
        // SAFETY: as above.
        unsafe {
            slice::from_raw_parts(
                self.part(self.own_offsets().counters).as_ptr(),
                self.lengths.slots,
            )
        }
    }

    /// The transactions.
    #[must_use]
    pub fn transactions(self) -> &'static [T] {
        // SAFETY: as above.
        unsafe {
            slice::from_raw_parts(
                self.part(self.own_offsets().transactions).as_ptr(),
                self.lengths.transactions,
            )
        }
    }

    fn own_offsets(self) -> Offsets {
        Self::offsets(self.lengths)
    }

    /// # Safety
    /// `offset` is one of [`Offsets`], of a part of `P`.
    unsafe fn part<P>(self, offset: usize) -> NonNull<P> {
        // SAFETY: within the block, and aligned for `P`: the base is aligned for all parts, and `Layout::extend` has
        // rounded the offset.
        unsafe { self.base.add(offset).cast() }
    }

    fn offsets(lengths: Lengths) -> Offsets {
        let Lengths {
            slots,
            transactions,
        } = lengths;
        let extend = |before: Layout, part: Result<Layout, _>| {
            part.and_then(|part| before.extend(part))
                .unwrap_or_else(|_| {
                    panic!("{slots} slots and {transactions} transactions do not fit into memory")
                })
        };
        let header = Layout::new::<H>();
        let (layout, entries) = extend(header, Layout::array::<E>(ENTRIES));
        let (layout, slots_at) = extend(layout, Layout::array::<S>(slots));
        let (layout, counters) = extend(layout, Layout::array::<C>(slots));
        let (layout, transactions) = extend(layout, Layout::array::<T>(transactions));
        Offsets {
            entries,
            slots: slots_at,
            counters,
            transactions,
            size: layout.pad_to_align().size(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::{alloc, dealloc};
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

    use super::*;

    #[derive(Debug)]
    #[repr(C, align(64))]
    struct Line([AtomicU64; 3]);
    #[derive(Debug)]
    #[repr(C, align(64))]
    struct Wide([AtomicU64; 9]);
    /// Smaller than its neighbours' alignment, so that it needs padding.
    #[derive(Debug)]
    struct Odd(#[expect(dead_code, reason = "only its size matters")] [AtomicU8; 5]);

    const ENTRIES: usize = 7;
    type Plain = Block<Wide, Line, Line, Line, Line, ENTRIES>;
    type Uneven = Block<Odd, Line, Odd, Wide, Odd, ENTRIES>;

    /// Memory of exactly this size, `off` bytes after the beginning of a cache line. A sanitizer reports a byte beyond
    /// it.
    fn with_memory(size: usize, off: usize, test: impl FnOnce(NonNull<u8>)) {
        let layout = Layout::from_size_align(size + off, 64).expect("a layout");
        // SAFETY: the size is not 0; freed below, when nothing refers to it any more.
        unsafe {
            let memory = NonNull::new(alloc(layout)).expect("memory");
            ptr::write_bytes(memory.as_ptr(), 0xff, layout.size());
            test(memory.add(off));
            dealloc(memory.as_ptr(), layout);
        }
    }

    fn range<T>(part: &[T]) -> (usize, usize) {
        let range = part.as_ptr_range();
        (range.start.addr(), range.end.addr())
    }

    const fn lengths(slots: usize) -> Lengths {
        Lengths {
            slots,
            transactions: slots + 3,
        }
    }

    /// Writes to every part through the references, as the extension does, and checks that no part overlaps another,
    /// leaves the memory or is not aligned.
    macro_rules! checks_a_block {
        ($block:ty, $slots:expr, $off:expr) => {
            with_memory(<$block>::size(lengths($slots)), $off, |start| {
                // SAFETY: as many bytes as the block needs, which live until the end of this test.
                let block = unsafe { <$block>::create(start, lengths($slots)) };
                let memory = (
                    start.addr().get(),
                    start.addr().get() + <$block>::size(lengths($slots)),
                );
                let mut parts = [
                    range(slice::from_ref(block.header())),
                    range(block.entries()),
                    range(block.slots()),
                    range(block.counters()),
                    range(block.transactions()),
                ];
                parts.sort_unstable();
                assert!(memory.0 <= parts[0].0 && parts[4].1 <= memory.1);
                for pair in parts.windows(2) {
                    assert!(pair[0].1 <= pair[1].0, "{parts:?}");
                }
                assert!(ptr::from_ref(block.header()).is_aligned());
                assert!(block.entries().as_ptr().is_aligned());
                assert!(block.slots().as_ptr().is_aligned());
                assert!(block.counters().as_ptr().is_aligned());
                assert_eq!(block.entries().len(), ENTRIES);
                assert_eq!(
                    (
                        block.slots().len(),
                        block.counters().len(),
                        block.transactions().len()
                    ),
                    ($slots, $slots, $slots + 3)
                );

                let mut number = 0;
                let mut stamp = |words: &mut dyn Iterator<Item = &AtomicU64>| {
                    for word in words {
                        assert_eq!(
                            word.load(Relaxed),
                            0,
                            "zeroed, and written by no other part"
                        );
                        number += 1;
                        word.store(number, Relaxed);
                    }
                };
                stamp(&mut block.entries().iter().flat_map(|part| &part.0));
                stamp(&mut block.counters().iter().flat_map(|part| &part.0));
                // SAFETY: the memory in which the block was created above.
                let again = unsafe { <$block>::attach(start, lengths($slots)) };
                assert_eq!(range(again.slots()), range(block.slots()));
                let mut expected = 0;
                for word in again
                    .entries()
                    .iter()
                    .flat_map(|part| &part.0)
                    .chain(again.counters().iter().flat_map(|part| &part.0))
                {
                    expected += 1;
                    assert_eq!(word.load(Relaxed), expected);
                }
            });
        };
    }

    #[test]
    fn parts_are_aligned_separate_and_within_the_memory() {
        for slots in [1, 2, 3, 16, 31, 4_096] {
            for off in [0, 1, 8, 63] {
                checks_a_block!(Plain, slots, off);
                checks_a_block!(Uneven, slots, off);
            }
        }
    }

    #[test]
    fn the_header_and_the_slots_keep_what_was_written() {
        with_memory(Plain::size(lengths(16)), 8, |start| {
            // SAFETY: as many bytes as the block needs, which live until the end of this test.
            let block = unsafe { Plain::create(start, lengths(16)) };
            block.header().0[8].store(u64::MAX, Relaxed);
            for (number, slot) in (0..).zip(block.slots()) {
                slot.0[2].store(number, Relaxed);
            }
            assert_eq!(block.entries()[0].0[0].load(Relaxed), 0);
            assert_eq!(block.header().0[8].load(Relaxed), u64::MAX);
            let slots: Vec<u64> = block
                .slots()
                .iter()
                .map(|slot| slot.0[2].load(Relaxed))
                .collect();
            assert_eq!(slots, (0..16).collect::<Vec<_>>());
        });
    }

    #[test]
    #[should_panic(expected = "do not fit into memory")]
    fn an_impossible_number_of_slots_is_refused() {
        let _ = Plain::size(lengths(usize::MAX / 64));
    }
}
