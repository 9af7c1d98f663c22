//! Goals, and whether a run meets them.

use super::format::{ratio, spread};
use crate::measure::Samples;

/// The limit of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// A ratio that is to be within a limit.
pub struct Goal {
    pub what: String,
    pub limit: Limit,
    /// An explanation for a run that misses it.
    pub why: String,
}

/// A goal, and what was measured for it.
pub struct Verdict {
    goal: Goal,
    measured: Samples,
}

impl Goal {
    /// Judges by the median of the rounds.
    pub fn judge(self, measured: &Samples) -> Verdict {
        Verdict {
            goal: self,
            measured: measured.clone(),
        }
    }
}

impl Verdict {
    /// Whether there is a measurement.
    pub fn is_measured(&self) -> bool {
        self.measured.len() > 0
    }

    pub fn is_met(&self) -> bool {
        let median = self.measured.median();
        match self.goal.limit {
            Limit::AtMost(limit) => median <= limit,
            Limit::AtLeast(limit) => median >= limit,
        }
    }

    pub fn what(&self) -> &str {
        &self.goal.what
    }

    pub fn limit(&self) -> String {
        match self.goal.limit {
            Limit::AtMost(limit) => format!("at most {limit}"),
            Limit::AtLeast(limit) => format!("at least {limit}"),
        }
    }

    pub fn rounds(&self) -> usize {
        self.measured.len()
    }

    pub fn measured(&self) -> String {
        spread(&self.measured, ratio)
    }

    pub fn outcome(&self) -> &'static str {
        if !self.is_measured() {
            "not measured"
        } else if self.is_met() {
            "met"
        } else {
            "**missed**"
        }
    }

    /// Why it was missed, as far as the measurements show.
    pub fn reason(&self) -> Option<String> {
        if !self.is_measured() || self.is_met() {
            return None;
        }
        let (Limit::AtMost(limit) | Limit::AtLeast(limit)) = self.goal.limit;
        let doubt = if (self.measured.low()..=self.measured.high()).contains(&limit) {
            " The rounds lie on both sides of the limit."
        } else {
            ""
        };
        Some(format!("- {}: {}.{doubt}\n", self.goal.what, self.goal.why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_judged_by_the_median() {
        let judge = |limit, values: &[f64]| {
            Goal {
                what: "x".to_owned(),
                limit,
                why: "y".to_owned(),
            }
            .judge(&values.iter().copied().collect())
        };
        assert!(judge(Limit::AtMost(0.5), &[0.4, 0.5, 0.9]).is_met());
        assert!(!judge(Limit::AtMost(0.5), &[0.4, 0.51, 0.9]).is_met());
        assert!(judge(Limit::AtLeast(2.5), &[2.4, 2.5, 2.6]).is_met());
        let missed = judge(Limit::AtLeast(2.5), &[2.0, 2.1, 2.2]);
        assert_eq!(missed.reason().as_deref(), Some("- x: y.\n"));
        let unsure = judge(Limit::AtLeast(2.5), &[2.0, 2.4, 2.6]).reason();
        assert!(unsure.is_some_and(|reason| reason.contains("both sides")));
        let unmeasured = judge(Limit::AtMost(1.0), &[]);
        assert_eq!(
            (unmeasured.outcome(), unmeasured.reason()),
            ("not measured", None)
        );
    }
}
