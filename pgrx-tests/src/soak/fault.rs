//! The faults.

/// What is done to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The clock is set while the server runs.
    ClockBack,
    /// The same, forward.
    ClockForward,
    /// SIGKILL of one backend: the server reinitializes its shared memory.
    KillBackend,
    /// The same, and the clock is set back at the same time.
    KillBackendClockBack,
    /// SIGKILL of the postmaster and all its processes.
    KillAll,
    /// The same, with the clock set back before the restart.
    KillAllClockBack,
    /// `pg_ctl stop -m fast`.
    StopFast,
    /// The same, with the clock set back before the restart.
    StopFastClockBack,
    /// `pg_ctl stop -m immediate`.
    StopImmediate,
    /// The same, with the clock set back before the restart.
    StopImmediateClockBack,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 10] = [
        Self::ClockBack,
        Self::ClockForward,
        Self::KillBackend,
        Self::KillBackendClockBack,
        Self::KillAll,
        Self::KillAllClockBack,
        Self::StopFast,
        Self::StopFastClockBack,
        Self::StopImmediate,
        Self::StopImmediateClockBack,
    ];

    pub(super) fn sets_the_clock_back(self) -> bool {
        matches!(
            self,
            Self::ClockBack
                | Self::KillBackendClockBack
                | Self::KillAllClockBack
                | Self::StopFastClockBack
                | Self::StopImmediateClockBack
        )
    }

    pub(super) fn ends_sessions(self) -> bool {
        !matches!(self, Self::ClockBack | Self::ClockForward)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClockBack => "clock back",
            Self::ClockForward => "clock forward",
            Self::KillBackend => "kill -9 of a backend",
            Self::KillBackendClockBack => "kill -9 of a backend, clock back",
            Self::KillAll => "kill -9 of all processes",
            Self::KillAllClockBack => "kill -9 of all processes, clock back",
            Self::StopFast => "stop -m fast",
            Self::StopFastClockBack => "stop -m fast, clock back",
            Self::StopImmediate => "stop -m immediate",
            Self::StopImmediateClockBack => "stop -m immediate, clock back",
        }
    }
}
