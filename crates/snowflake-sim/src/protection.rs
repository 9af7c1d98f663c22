//! What can be taken away, to see that it is missed. Each is a switch of the simulator's environment:
//! a log that does not flush, a lock that does not exclude. None is in the product.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Protection {
    /// The log is durable before an ID below the bound is issued.
    Flush,
    /// The first ID after a start reads the mark.
    Mark,
    /// The first ID after a start reads the floor.
    Floor,
    /// The floor is written with each mark.
    FloorWritten,
    /// A floor that cannot be written is an error.
    FloorError,
    /// The floor is in the log: standbys and backups have it.
    FloorLogged,
    /// A standby does not keep the floor that it has read.
    FloorOfStandby,
    /// The mark is in the log before the rows.
    MarkLogged,
    /// Each start has a number of its own.
    StartNumber,
    /// A copy does not have the start number of its original.
    StartNumberOfCopies,
    /// One process moves a mark at a time, and others wait until it is durable.
    EntryLock,
    /// What is known of a mark counts where its page has it: not of a dropped database.
    ConfirmedEntry,
    /// A dump has the mark.
    DumpedMark,
    /// A restored mark raises the slots of a database in use.
    RestoredSlots,
    /// A mark that was set is believed up to a lease ahead only.
    SetLimit,
    /// A clock that has jumped ahead is not followed.
    ClockAhead,
    /// Time continues after the clock was set back.
    SlewedClock,
    /// A slot's word is changed by compare-and-swap, for all processes.
    Slot,
    /// A transaction publishes that it draws.
    Published,
    /// A transaction draws nothing below what a reader was promised.
    Promise,
    /// What a transaction has published stays until its rows are visible.
    UntilVisible,
    /// A prepared transaction has a place of its own.
    HandedOn,
    /// A transaction that was prepared before the start is asked for.
    PreparedKnown,
    /// An answer is one for the reader's snapshot.
    AnswerForSnapshot,
    /// A reader is answered no more than the mark's bound.
    AnswerBelowMark,
    /// The mark below which a reader is answered is durable.
    AnswerDurable,
}
