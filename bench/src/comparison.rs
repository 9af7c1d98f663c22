//! Comparisons as data, and the one way in which they are measured and shown.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;

use crate::contenders::Contender;
use crate::drive::{self, Length, Outcome};
use crate::format::{mib, per_second, percent, ratio, ratio_cell, spread, three};
use crate::measure::{Samples, in_turn};
use crate::plot::{Bar, Bars, Chart, Line, Lines};
use crate::report::{Block, Figure, Table};
use crate::run::{Count, Run, Server, settle};

/// Contenders that execute the same scripts.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// The plot's file, and its title.
    pub name: &'static str,
    pub title: &'static str,
    /// In the order of the tables. Ours is the first.
    pub contenders: &'static [Contender],
    /// The number of the contender that ratios refer to: one of the first two, which every server
    /// has.
    pub baseline: usize,
    pub cases: &'static [Case],
    /// Each case is measured with each of these numbers of clients.
    pub clients: &'static [usize],
    pub metrics: &'static [Metric],
    pub rounds: Count,
    /// The most rounds of the contenders after the second.
    pub peer_rounds: usize,
    /// Statements before and after.
    pub setup: &'static str,
    pub teardown: &'static str,
}

/// What is executed.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    /// A file of `bench/sql`. `{call}` and `{from}` are the contender's, `{items}` is the number
    /// below, `{file}` a file with so many rows.
    pub script: &'static str,
    /// Calls or rows of one execution.
    pub items: Count,
    pub until: Until,
    /// The table `t` that is created for each measurement.
    pub table: Target,
    /// `synchronous_commit`.
    pub commit: &'static str,
}

/// The table of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    None,
    Heap,
    /// With a primary key.
    Keyed,
}

/// How often a script is executed in a round.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// So often, in a session of this program.
    Executions(Count),
    /// So often, in a new session, from its first statement on.
    NewSession(Count),
    /// For so many seconds, by `pgbench`.
    Seconds(u64),
    /// Until all clients of `pgbench` together have inserted so many rows.
    Rows(Count),
}

/// A quantity that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Time for an item.
    Nanos,
    /// Time for an execution.
    Micros,
    Millis,
    /// Items a second.
    Rate,
    /// Bytes of write-ahead log for an item.
    Wal,
    /// Processor time of the server for an item.
    Processor,
    IndexSize,
    Density,
    Fragmentation,
    /// Of what is read, with its indexes.
    TotalSize,
}

impl Metric {
    fn name(self) -> String {
        match self {
            Self::Nanos => "ns, including the query".to_owned(),
            Self::Micros => "µs".to_owned(),
            Self::Millis => "ms".to_owned(),
            Self::Rate => "a second".to_owned(),
            Self::Wal => "WAL, bytes a row".to_owned(),
            Self::Processor => "processor time of the server, µs a row".to_owned(),
            Self::IndexSize => "index, MiB".to_owned(),
            Self::Density => "leaf density".to_owned(),
            Self::Fragmentation => "fragmentation".to_owned(),
            Self::TotalSize => "table and indexes, MiB".to_owned(),
        }
    }

    fn write(self) -> fn(f64) -> String {
        match self {
            Self::Rate => per_second,
            Self::Density | Self::Fragmentation => percent,
            _ => three,
        }
    }

    /// Whether a ratio to the baseline says something.
    fn has_ratio(self) -> bool {
        !matches!(self, Self::Density | Self::Fragmentation)
    }
}

/// A case with a number of clients.
#[derive(Clone, Copy)]
struct Condition {
    case: &'static Case,
    clients: usize,
}

/// A contender with its server and a session there.
struct Party {
    contender: Contender,
    cluster: Rc<Cluster>,
    client: Client,
}

/// What was measured, by condition, contender and metric.
struct Measured<'a> {
    comparison: &'a Comparison,
    parties: Vec<Contender>,
    conditions: Vec<Condition>,
    samples: Vec<Vec<Vec<Samples>>>,
}

impl Comparison {
    /// Whether it is with an earlier build.
    pub fn needs_before(&self) -> bool {
        self.contenders
            .iter()
            .any(|contender| contender.server == Server::Before)
    }

    /// Measures, and shows tables and a plot.
    pub fn blocks(&self, run: &Run) -> Result<Vec<Block>> {
        let measured = self.measure(run)?;
        let mut blocks = vec![Block::Text(format!("**{}**", self.title))];
        blocks.push(Block::Text(self.scripts(run)));
        blocks.extend(measured.tables());
        blocks.push(Block::Figure(Figure {
            file: self.name,
            about: self.title,
            chart: measured.chart(),
        }));
        Ok(blocks)
    }

    fn measure(&self, run: &Run) -> Result<Measured<'_>> {
        let mut parties = self.parties(run)?;
        if !self.setup.is_empty() {
            let items = run.count(self.cases[0].items).to_string();
            let client = &mut parties.first_mut().context("a contender")?.client;
            client.batch_execute(&self.setup.replace("{items}", &items))?;
            // Not in the transaction of several statements.
            client.batch_execute("VACUUM ANALYZE")?;
        }
        let conditions: Vec<Condition> = self
            .cases
            .iter()
            .flat_map(|case| {
                self.clients_of(run)
                    .into_iter()
                    .map(move |clients| Condition { case, clients })
            })
            .collect();
        let rounds = run
            .rounds
            .unwrap_or_else(|| run.count(self.rounds) as usize);
        let rounds: Vec<usize> = (0..parties.len())
            .map(|which| match which {
                0 | 1 => rounds,
                _ => rounds.min(self.peer_rounds),
            })
            .collect();
        // Only sessions are kept from round to round, and are to be warm.
        let is_session = |case: &Case| matches!(case.until, Until::Executions(_));
        let warm_ups = usize::from(self.cases.iter().any(is_session));
        let mut counted: Vec<Option<i64>> = vec![None; conditions.len()];
        let samples = in_turn(
            conditions.len(),
            &rounds,
            warm_ups,
            |number, which, round| {
                let condition = conditions[number];
                let party = &mut parties[which];
                run.step(format_args!(
                    "{}: {}, {} clients, {}, round {round} of {}",
                    self.title,
                    condition.case.name,
                    condition.clients,
                    party.contender.name,
                    rounds[0]
                ));
                let (outcome, figures) = self.measure_one(run, condition, party)?;
                // All must count the same rows. Otherwise they do not do the same.
                let first = *counted[number].get_or_insert(outcome.counted.unwrap_or_default());
                ensure!(
                    outcome.counted.unwrap_or_default() == first,
                    "{} counted {:?}, not {first}",
                    party.contender.name,
                    outcome.counted
                );
                Ok(figures)
            },
        )?;
        parties[0].client.batch_execute(self.teardown)?;
        Ok(Measured {
            comparison: self,
            parties: parties.iter().map(|party| party.contender).collect(),
            conditions,
            samples,
        })
    }

    /// The contenders that exist, with their servers.
    fn parties(&self, run: &Run) -> Result<Vec<Party>> {
        let mut parties = Vec::new();
        for &contender in self.contenders {
            let cluster = run.server(contender.server)?;
            let mut client = cluster.connect()?;
            let exists = format!("SELECT {}", contender.requires);
            if client.query_one(&exists, &[])?.get(0) {
                parties.push(Party {
                    contender,
                    cluster,
                    client,
                });
            }
        }
        Ok(parties)
    }

    /// In a quick run, only the first, the middle and the last.
    fn clients_of(&self, run: &Run) -> Vec<usize> {
        let step = match self.clients.len() {
            several if run.quick && several > 3 => several.div_ceil(2),
            _ => 1,
        };
        let last = self.clients.last().copied();
        let mut chosen: Vec<usize> = self.clients.iter().copied().step_by(step).collect();
        chosen.extend(last.filter(|last| !chosen.contains(last)));
        chosen
    }

    fn measure_one(
        &self,
        run: &Run,
        condition: Condition,
        party: &mut Party,
    ) -> Result<(Outcome, Vec<f64>)> {
        let Condition { case, clients } = condition;
        let Party {
            contender,
            cluster,
            client,
        } = party;
        let contender: &Contender = contender;
        let cluster: &Cluster = cluster;
        case.create_table(contender, client)?;
        if contender.server != Server::WithoutExtension {
            settle(client)?;
        }
        let script = case.script_of(run, contender, cluster)?;
        let items = run.count(case.items);
        let processor = self.metrics.contains(&Metric::Processor);
        let used = |client: &mut Client| {
            if processor {
                drive::processor_time(cluster, client)
            } else {
                Ok(0.0)
            }
        };
        let (wal, time) = (drive::wal_bytes(client)?, used(client)?);
        let outcome = match case.until {
            Until::Executions(count) => {
                client.batch_execute(&format!("SET synchronous_commit = {}", case.commit))?;
                drive::in_session(client, &script, run.count(count))?
            }
            Until::NewSession(count) => {
                drive::in_session(&mut cluster.connect()?, &script, run.count(count))?
            }
            Until::Seconds(seconds) => {
                let length = Length::Seconds(seconds);
                drive::in_pgbench(cluster, &script, clients, length, case.commit)?
            }
            Until::Rows(rows) => {
                let transactions = (run.count(rows) / (items * clients as u64)).max(1);
                let length = Length::Transactions(transactions);
                drive::in_pgbench(cluster, &script, clients, length, case.commit)?
            }
        };
        let wal = drive::wal_bytes(client)? - wal;
        let time = used(client)? - time;
        let all = (outcome.executions * items) as f64;
        if case.table != Target::None {
            let rows: i64 = client.query_one("SELECT count(*) FROM t", &[])?.get(0);
            ensure!(
                rows as f64 >= all,
                "{rows} rows were inserted, not {all}: {script}"
            );
        }
        let figures = self
            .metrics
            .iter()
            .map(|metric| -> Result<f64> {
                Ok(match metric {
                    Metric::Nanos => outcome.seconds * 1e9 / all,
                    Metric::Micros => outcome.seconds * 1e6 / outcome.executions as f64,
                    Metric::Millis => outcome.seconds * 1e3 / outcome.executions as f64,
                    Metric::Rate => all / outcome.seconds,
                    Metric::Wal => wal / all,
                    Metric::Processor => time * 1e6 / all,
                    Metric::IndexSize => mib(of_index(client, "index_size::float8")?),
                    Metric::Density => of_index(client, "avg_leaf_density")?,
                    Metric::Fragmentation => of_index(client, "leaf_fragmentation")?,
                    Metric::TotalSize => {
                        let query = format!(
                            "SELECT pg_total_relation_size('{}')::float8",
                            contender.from
                        );
                        mib(client.query_one(&query, &[])?.get(0))
                    }
                })
            })
            .collect::<Result<Vec<f64>>>()?;
        Ok((outcome, figures))
    }

    /// The scripts of the cases, for the document.
    fn scripts(&self, run: &Run) -> String {
        let mut scripts = Vec::new();
        for case in self.cases {
            let items = run.count(case.items).to_string();
            let script = case.script.trim().replace("{items}", &items);
            let script = format!("`{script}`");
            if !scripts.contains(&script) {
                scripts.push(script);
            }
        }
        let many = match self.cases[0].until {
            Until::Executions(count) => match run.count(count) {
                1 => "in one session".to_owned(),
                times => format!("{times} times in one session"),
            },
            Until::NewSession(count) => match run.count(count) {
                1 => "as the first statement of a new session".to_owned(),
                times => format!("{times} times in a new session"),
            },
            Until::Seconds(seconds) => format!("by `pgbench` for {seconds} s"),
            Until::Rows(rows) => {
                let rows = per_second(run.count(rows) as f64);
                format!("by `pgbench` until {rows} rows are inserted")
            }
        };
        let table = match self.cases[0].table {
            Target::None => "",
            _ => ", into a new table of two columns",
        };
        format!("{}, {many}{table}.", scripts.join("; "))
    }
}

/// A column of `pgstatindex`.
fn of_index(client: &mut Client, column: &str) -> Result<f64> {
    let query = format!("SELECT {column} FROM pgstatindex('t_pkey')");
    Ok(client.query_one(&query, &[])?.get(0))
}

impl Case {
    /// A checkpoint ensures that no measurement writes the data of another.
    fn create_table(&self, contender: &Contender, client: &mut Client) -> Result<()> {
        let key = match self.table {
            Target::None => return Ok(()),
            Target::Heap => "",
            Target::Keyed => "PRIMARY KEY",
        };
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t ({} {key}, v int); {}",
            contender.column, contender.then
        ))?;
        client.batch_execute("CHECKPOINT")?;
        Ok(())
    }

    fn script_of(&self, run: &Run, contender: &Contender, cluster: &Cluster) -> Result<String> {
        let items = run.count(self.items);
        let mut script = self.script.trim().replace("{items}", &items.to_string());
        script = script.replace("{call}", contender.call);
        script = script.replace("{from}", contender.from);
        if script.contains("{file}") {
            let file = file_of_rows(cluster, items)?;
            script = script.replace("{file}", &file.display().to_string());
        }
        Ok(script)
    }
}

/// A file of rows with one integer each, which the server can read.
fn file_of_rows(cluster: &Cluster, rows: u64) -> Result<PathBuf> {
    let directory = cluster.data().parent().context("the data directory's")?;
    let file = directory.join(format!("{rows}.rows"));
    if !file.exists() {
        let mut text = String::new();
        for row in 1..=rows {
            writeln!(text, "{row}")?;
        }
        fs::write(&file, text).context("writing the rows to copy")?;
    }
    Ok(file)
}

impl Measured<'_> {
    fn tables(&self) -> Vec<Block> {
        match self.conditions[..] {
            [_] => vec![Block::Table(self.table_of_contenders())],
            _ => (0..self.comparison.metrics.len())
                .map(|metric| Block::Table(self.table_of_conditions(metric)))
                .collect(),
        }
    }

    /// Of one condition: a row for each contender, columns for each metric.
    fn table_of_contenders(&self) -> Table {
        let base = &self.parties[self.comparison.baseline];
        let mut head = vec![String::new()];
        for metric in self.comparison.metrics {
            head.push(metric.name());
            if metric.has_ratio() {
                head.push(format!("ratio to {}", base.name));
            }
        }
        head.push("rounds".to_owned());
        let mut table = Table::of(head);
        let of_base = &self.samples[0][self.comparison.baseline];
        for (contender, figures) in self.parties.iter().zip(&self.samples[0]) {
            let mut cells = vec![contender.name.to_owned()];
            for ((metric, samples), base) in
                self.comparison.metrics.iter().zip(figures).zip(of_base)
            {
                cells.push(spread(samples, metric.write()));
                if metric.has_ratio() {
                    cells.push(ratio_cell(samples, base));
                }
            }
            cells.push(figures.first().map_or(0, Samples::len).to_string());
            table.row(&cells);
        }
        table
    }

    /// Of one metric: a row for each condition, a column for each contender, and the ratio of the
    /// first to the baseline.
    fn table_of_conditions(&self, number: usize) -> Table {
        let metric = self.comparison.metrics[number];
        let mut head = vec![metric.name()];
        head.extend(self.parties.iter().map(|party| party.name.to_owned()));
        if metric.has_ratio() {
            head.push(format!(
                "ratio of {} to {}",
                self.parties[0].name, self.parties[self.comparison.baseline].name
            ));
        }
        let mut table = Table::of(head);
        for (condition, row) in self.conditions.iter().zip(&self.samples) {
            let mut cells = vec![self.name_of(*condition)];
            cells.extend(
                row.iter()
                    .map(|figures| spread(&figures[number], metric.write())),
            );
            if metric.has_ratio() {
                let ratios = row[0][number].ratio_to(&row[self.comparison.baseline][number]);
                cells.push(spread(&ratios, ratio));
            }
            table.row(&cells);
        }
        table
    }

    fn name_of(&self, Condition { case, clients }: Condition) -> String {
        let several_clients = self.comparison.clients.len() > 1;
        match (self.comparison.cases.len() > 1, several_clients) {
            (_, false) => case.name.to_owned(),
            (false, true) => format!("{clients} clients"),
            (true, true) => format!("{clients} clients, {}", case.name),
        }
    }

    /// The first metric: lines if the number of clients is all that differs, else bars.
    fn chart(&self) -> Chart {
        let unit = self.comparison.metrics[0].name();
        let title = self.comparison.title.to_owned();
        if self.comparison.cases.len() == 1 && self.conditions.len() > 1 {
            let lines = self.parties.iter().enumerate().map(|(which, party)| Line {
                name: party.name.to_owned(),
                colour: party.colour,
                points: self
                    .conditions
                    .iter()
                    .zip(&self.samples)
                    .map(|(condition, row)| (condition.clients as f64, row[which][0].clone()))
                    .collect(),
            });
            return Chart::Lines(Lines {
                title,
                x: "clients".to_owned(),
                y: unit,
                lines: lines.collect(),
            });
        }
        let groups =
            self.conditions
                .iter()
                .zip(&self.samples)
                .map(|(condition, row)| {
                    let bars =
                        self.parties.iter().zip(row).map(|(party, figures)| {
                            Bar::new(party.name, party.colour, &figures[0])
                        });
                    let heading = match self.conditions[..] {
                        [_] => String::new(),
                        _ => self.name_of(*condition),
                    };
                    (heading, bars.collect())
                });
        Chart::Bars(Bars {
            title,
            unit: format!("{unit}; the line is the range of the rounds"),
            // Statements of different lengths are measured in microseconds.
            one_scale: self.comparison.metrics[0] != Metric::Micros,
            groups: groups.collect(),
        })
    }
}
