//! How far a run is.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often a line is written if standard error is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// One line that shows what is measured, and how long the run will take.
pub struct Progress {
    begun: Instant,
    terminal: bool,
    state: RefCell<State>,
}

struct State {
    part: &'static str,
    part_begun: Instant,
    expected: Duration,
    later: Duration,
    written: Option<Instant>,
}

impl Progress {
    pub fn begin() -> Self {
        let now = Instant::now();
        Self {
            begun: now,
            terminal: std::io::stderr().is_terminal(),
            state: RefCell::new(State {
                part: "",
                part_begun: now,
                expected: Duration::ZERO,
                later: Duration::ZERO,
                written: None,
            }),
        }
    }

    /// Begins a part of the run, with the time that it and the later parts are
    /// expected to take.
    pub fn begin_part(&self, part: &'static str, expected: Duration, later: Duration) {
        let mut state = self.state.borrow_mut();
        state.part = part;
        state.part_begun = Instant::now();
        state.expected = expected;
        state.later = later;
        state.written = None;
    }

    /// Shows what is measured now.
    pub fn step(&self, what: impl std::fmt::Display) {
        let mut state = self.state.borrow_mut();
        if !self.terminal && state.written.is_some_and(|at| at.elapsed() < LINE_EVERY) {
            return;
        }
        state.written = Some(Instant::now());
        let left = state.expected.saturating_sub(state.part_begun.elapsed()) + state.later;
        let line = format!(
            "[{:4.1} min, about {:.0} to go] {}: {what}",
            minutes(self.begun.elapsed()),
            minutes(left).ceil(),
            state.part
        );
        let mut stderr = std::io::stderr().lock();
        // A failure to show progress does not stop the run.
        let _ = if self.terminal {
            write!(stderr, "\r\x1b[K{line}")
        } else {
            writeln!(stderr, "{line}")
        };
    }

    /// Ends the line.
    pub fn end(&self) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        eprintln!(
            "{clear}measured in {:.1} minutes",
            minutes(self.begun.elapsed())
        );
    }
}

fn minutes(duration: Duration) -> f64 {
    duration.as_secs_f64() / 60.0
}
