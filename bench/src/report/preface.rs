//! The chapters on the goals and on the run itself.

use std::fmt::Write as _;

use anyhow::Result;

use super::{Report, Table, Verdict};
use crate::peers::Peer;

impl Report {
    pub(super) fn goals(&self, text: &mut String) -> Result<()> {
        let mut table = Table::new(&["", "limit", "measured", "rounds", ""]);
        for verdict in self.verdicts() {
            table.row(&[
                verdict.what().to_owned(),
                verdict.limit(),
                verdict.measured(),
                verdict.rounds().to_string(),
                verdict.outcome().to_owned(),
            ]);
        }
        if table.is_empty() {
            return Ok(());
        }
        writeln!(
            text,
            "## Goals\n\nEach figure is the median of the ratios within each round, with their range.\n\n{}",
            table.markdown()
        )?;
        let reasons: Vec<String> = self.verdicts().filter_map(Verdict::reason).collect();
        if !reasons.is_empty() {
            writeln!(
                text,
                "Missed limits, and the reasons:\n\n{}",
                reasons.concat()
            )?;
        }
        Ok(())
    }

    pub(super) fn how(&self, text: &mut String) -> Result<()> {
        text.push_str("## The run\n\n| | |\n|---|---|\n");
        let machine = self.machine.iter().map(|(name, value)| (*name, value));
        let server = self
            .server
            .iter()
            .map(|(name, value)| (name.as_str(), value));
        for (name, value) in server.chain(machine) {
            writeln!(text, "| {name} | {value} |")?;
        }
        if self.sections.iter().all(|section| section.describes_itself) {
            text.push('\n');
            return Ok(());
        }
        writeln!(
            text,
            "\nAll contenders run in turn on one server, which was started for this run. A round has one measurement of each \
             contender, and each round starts with another contender. There are {} rounds for the contenders of the limits above, \
             and {} for the others, unless a table shows another number. Parentheses contain the range of all rounds. Before each \
             measurement the table is created anew, a checkpoint is written, and the clock catches up with the IDs.\n",
            self.scale.rounds,
            self.scale.peer_rounds.min(self.scale.rounds)
        )?;
        text.push_str("| | type | bytes | |\n|---|---|---:|---|\n");
        for peer in std::iter::once(&Peer::Constant).chain(&self.peers) {
            writeln!(
                text,
                "| {} | `{}` | {} | {} |",
                peer.name(),
                peer.id_type(),
                peer.bytes(),
                peer.describe()
            )?;
        }
        if let Some(searched) = &self.searched {
            text.push_str("\nOther extensions that generate IDs, as the registries' ordinary clients found them in this run:\n\n");
            text.push_str("| source | searched for | result |\n|---|---|---|\n");
            for line in searched.lines().filter(|line| !line.is_empty()) {
                let line = line.replace('|', "\\|").replace('\t', " | ");
                writeln!(text, "| {line} |")?;
            }
        }
        text.push('\n');
        Ok(())
    }
}
