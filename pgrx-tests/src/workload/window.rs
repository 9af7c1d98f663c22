//! What happened between two faults.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::server_error::ServerError;

/// What happened since the last fault.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// IDs of statements that began and ended in the window.
    pub ids: usize,
    /// The longest statement that ended in it, whenever it began.
    pub longest: Duration,
    /// The lowest time of an ID minus true time before its statement, in
    /// microseconds, of statements that began and ended in the window. True time is
    /// the machine's, or that of the clock which the workload was started with.
    pub lowest_lead_us: Option<i64>,
    /// The highest time of an ID minus true time after its statement.
    pub highest_lead_us: Option<i64>,
    /// How often a statement failed, by SQLSTATE.
    pub errors_by_sqlstate: BTreeMap<String, usize>,
    /// How often a statement of a session failed, by the session's number.
    pub errors_by_session: BTreeMap<usize, usize>,
    /// The last error.
    pub last_error: Option<ServerError>,
    /// Connections that were established.
    pub connections: usize,
}

impl Window {
    /// How often a statement failed with this SQLSTATE.
    pub fn errors_with(&self, sqlstate: &str) -> usize {
        self.errors_by_sqlstate.get(sqlstate).copied().unwrap_or(0)
    }

    /// How often a statement failed.
    pub fn errors(&self) -> usize {
        self.errors_by_sqlstate.values().sum()
    }

    pub(super) fn count_error(&mut self, session: usize, server_error: ServerError) {
        *self.errors_by_session.entry(session).or_default() += 1;
        *self
            .errors_by_sqlstate
            .entry(server_error.sqlstate.clone())
            .or_default() += 1;
        self.last_error = Some(server_error);
    }

    /// Counts the leads of IDs in ascending order.
    pub(super) fn count_leads(&mut self, low: i64, high: i64) {
        self.lowest_lead_us = Some(self.lowest_lead_us.map_or(low, |lead| lead.min(low)));
        self.highest_lead_us = Some(self.highest_lead_us.map_or(high, |lead| lead.max(high)));
    }
}
