//! Statements at random: what they read from, and their kinds.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Makes statements, the same ones from the same seed.
pub(super) struct Generator {
    random: StdRng,
    /// Whether there is a foreign table.
    has_foreign: bool,
    /// How many aliases the statement has.
    aliases: usize,
    /// The parameters of the statement, if it may have any.
    parameters: Option<Vec<Parameter>>,
}

/// A parameter of a prepared statement.
pub(super) struct Parameter {
    /// Its type.
    pub(super) of_type: &'static str,
    /// What it is executed with.
    pub(super) value: Option<String>,
}

/// A statement, and what must be the same with ranges.
pub(super) struct Statement {
    /// What it is about, for the report.
    pub(super) kind: &'static str,
    /// With `$1` and so on, if it has parameters.
    pub(super) sql: String,
    /// Whether the order of its rows is determined.
    pub(super) is_ordered: bool,
    /// Empty if it is not to be prepared.
    pub(super) parameters: Vec<Parameter>,
}

/// An item of FROM with the columns `id`, `k` and `n`.
pub(super) struct Source {
    item: String,
    /// Its name in the statement.
    pub(super) alias: String,
    /// The time of its ID, as it can be written.
    times: Vec<String>,
}

#[rustfmt::skip]
const TABLES: [&str; 16] = [
    "seen", "half", "parted", "hashed", "by_time", "mixed_parts", "checked", "sub_timed", "parents", "part_index", "time_index",
    "brin_index", "hash_index", "domained", "generated", "wrong",
];

#[rustfmt::skip]
const VIEWS: [&str; 10] = [
    "dated", "dated_again", "barred", "barred_again", "decoded", "decoded_left", "unioned", "unioned_again",
    "by_column", "grouped",
];

/// What UPDATE, DELETE, MERGE and FOR UPDATE are tried on; the last three are views.
#[rustfmt::skip]
const TARGETS: [&str; 16] = [
    "seen", "parted", "hashed", "by_time", "mixed_parts", "checked", "sub_timed", "parents", "secured", "part_index", "time_index",
    "domained", "generated", "dated", "dated_again", "barred",
];
const VIEWS_AMONG_TARGETS: usize = 3;

impl Generator {
    pub(super) fn new(seed: u64, has_foreign: bool) -> Self {
        Generator {
            random: StdRng::seed_from_u64(seed),
            has_foreign,
            aliases: 0,
            parameters: None,
        }
    }

    /// A number from 0 to below the limit.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.random.random_range(0..limit)
    }

    /// Whether something of this probability in percent happens.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub(super) fn pick(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    /// A new parameter, if the statement may have one.
    pub(super) fn parameter(
        &mut self,
        of_type: &'static str,
        value: Option<String>,
    ) -> Option<String> {
        let parameters = self.parameters.as_mut()?;
        parameters.push(Parameter { of_type, value });
        Some(format!("${}", parameters.len()))
    }

    /// The time of a source's ID.
    pub(super) fn time_of(&mut self, source: &Source) -> String {
        source.times[self.below(source.times.len())].clone()
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("r{}", self.aliases)
    }

    /// The ways to read an ID of the default layout.
    fn times_by_default(&mut self, alias: &str) -> Vec<String> {
        let mut times: Vec<String> = [
            "snowflake_timestamp({a}.id)",
            "snowflake_timestamp({a}.id, 'default')",
            "(snowflake_decode({a}.id)).created_at",
            "(snowflake_decode({a}.id, 'default')).created_at",
        ]
        .iter()
        .map(|it| it.replace("{a}", alias))
        .collect();
        if self.chance(30) {
            let layout = (!self.chance(5)).then(|| "default".to_owned());
            if let Some(layout) = self.parameter("text", layout) {
                times.push(format!("snowflake_timestamp({alias}.id, {layout})"));
            }
        }
        times
    }

    fn source(&mut self) -> Source {
        self.nested_source(0)
    }

    fn nested_source(&mut self, depth: u32) -> Source {
        let alias = self.alias();
        let created_at = vec![format!("{alias}.created_at")];
        let (item, times) = match self.below(100) {
            0..42 => {
                let table = self.pick(&TABLES);
                let mut times = self.times_by_default(&alias);
                if table == "generated" {
                    times.push(format!("{alias}.stored_at"));
                }
                (format!("{table} {alias}"), times)
            }
            42..46 if self.has_foreign => {
                let times = self.times_by_default(&alias);
                (format!("far {alias}"), times)
            }
            42..54 => {
                let layout = self.pick(&["js53", "instagram", "game"]);
                let times = vec![
                    format!("snowflake_timestamp({alias}.id, '{layout}')"),
                    format!("(snowflake_decode({alias}.id, '{layout}')).created_at"),
                ];
                (format!("{layout} {alias}"), times)
            }
            54..57 => {
                let times = vec![format!("snowflake_timestamp({alias}.id, {alias}.layout)")];
                (format!("mixed {alias}"), times)
            }
            57..62 => (
                format!("secured {alias}"),
                vec![format!("snowflake_timestamp({alias}.id)")],
            ),
            62..78 => (format!("{} {alias}", self.pick(&VIEWS)), created_at),
            78..81 => (format!("recent() {alias}"), created_at),
            81..88 => (self.decoded(&alias), created_at),
            88..92 => (self.decoded_above_a_join(&alias), created_at),
            _ if depth > 1 => (format!("dated {alias}"), created_at),
            _ => {
                let inner = self.nested_source(depth + 1);
                let time = self.time_of(&inner);
                let condition = self.condition(std::slice::from_ref(&inner));
                let fence = self.pick(&["", "", " OFFSET 0"]);
                let Source { item, alias: a, .. } = &inner;
                let select = format!(
                    "SELECT {a}.id, {a}.k, {a}.n, {time} AS created_at FROM {item} WHERE {condition}{fence}"
                );
                (format!("({select}) {alias}"), created_at)
            }
        };
        Source { item, alias, times }
    }

    /// `snowflake_decode` in FROM, which a join condition can make NULL.
    fn decoded(&mut self, alias: &str) -> String {
        let table = self.pick(&["seen", "parted", "parents", "wrong"]);
        let layout = self.pick(&["", ", 'default'"]);
        let (join, on) = match self.below(3) {
            0 => ("CROSS JOIN LATERAL", ""),
            1 => ("JOIN LATERAL", "ON x.n % 4 > 0"),
            _ => (
                "LEFT JOIN LATERAL",
                self.pick(&["ON true", "ON x.n % 4 > 0"]),
            ),
        };
        format!(
            "(SELECT x.id, x.k, x.n, d.created_at FROM {table} x {join} snowflake_decode(x.id{layout}) d {on}) {alias}"
        )
    }

    /// `snowflake_decode` in FROM of an ID that an outer join can make NULL.
    fn decoded_above_a_join(&mut self, alias: &str) -> String {
        let (left, right) = (self.pick(&TABLES[..7]), self.pick(&TABLES[..7]));
        let outer = self.pick(&["LEFT", "RIGHT", "FULL"]);
        let also = if outer == "FULL" {
            ""
        } else {
            " AND y.n % 3 = 0"
        };
        let decode = self.pick(&[
            "snowflake_decode(y.id)",
            "snowflake_decode(y.id, 'default')",
        ]);
        let join = match self.below(3) {
            0 => format!("CROSS JOIN LATERAL {decode} d"),
            1 => format!("LEFT JOIN LATERAL {decode} d ON true"),
            _ => format!("LEFT JOIN LATERAL {decode} d ON x.n % 2 = 0"),
        };
        format!(
            "(SELECT y.id, coalesce(x.k, y.k) AS k, coalesce(x.n, y.n) AS n, d.created_at \
             FROM {left} x {outer} JOIN {right} y ON x.k = y.k{also} {join}) {alias}"
        )
    }

    /// Sources, joined in any order.
    fn joined(&mut self, number: usize) -> (String, Vec<Source>) {
        if number == 1 {
            let source = self.source();
            return (source.item.clone(), vec![source]);
        }
        let on_left = self.below(number - 1) + 1;
        let (left, mut sources) = self.joined(on_left);
        let (right, of_right) = self.joined(number - on_left);
        let join = self.pick(&["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let (a, b) = (self.below(sources.len()), self.below(of_right.len()));
        let mut on = format!("{}.k = {}.k", sources[a].alias, of_right[b].alias);
        sources.extend(of_right);
        if join != "FULL JOIN" && self.chance(50) {
            on += &format!(" AND {}", self.condition(&sources));
        }
        (format!("({left} {join} {right} ON {on})"), sources)
    }

    /// The next statement.
    pub(super) fn statement(&mut self) -> Statement {
        self.aliases = 0;
        self.parameters = self.chance(30).then(Vec::new);
        let (kind, sql) = match self.below(20) {
            0..7 => {
                let number = [1, 2, 2, 3, 3, 4][self.below(6)];
                let (from, sources) = self.joined(number);
                let columns = sources
                    .iter()
                    .map(|it| format!("{}.n, {}.id", it.alias, it.alias));
                let columns = columns.collect::<Vec<_>>().join(", ");
                let condition = self.condition(&sources);
                (
                    "join",
                    format!("SELECT {columns} FROM {from} WHERE {condition}"),
                )
            }
            7 => ("EXISTS", self.exists()),
            8 => ("LATERAL", self.lateral()),
            9 => ("aggregate", self.aggregate()),
            10 => ("HAVING", self.having()),
            11 => ("window", self.window()),
            12 => ("DISTINCT ON", self.distinct_on()),
            13 => ("set operation", self.set_operation()),
            14 => ("CTE", self.common_table()),
            15 => ("ORDER BY", self.order_by(1)),
            16 => ("min and max", self.ends()),
            17 => ("ORDER BY", self.order_by(2)),
            _ => self.change(),
        };
        Statement {
            kind,
            sql,
            is_ordered: kind == "ORDER BY",
            parameters: self.parameters.take().unwrap_or_default(),
        }
    }

    /// A source, one of the forms of its time, and a condition on it.
    fn read(&mut self) -> (Source, String, String) {
        let source = self.source();
        let time = self.time_of(&source);
        let condition = self.condition(std::slice::from_ref(&source));
        (source, time, condition)
    }

    /// A comparison of a column that is named `t`.
    fn above(&mut self) -> String {
        let operator = self.pick(&["<", "<=", "=", ">=", ">"]);
        format!("t {operator} {}", self.value("timestamptz"))
    }

    fn exists(&mut self) -> String {
        let (outer, _, condition) = self.read();
        let inner = self.source();
        let (a, item) = (outer.alias.clone(), outer.item.clone());
        let (b, inner_item) = (inner.alias.clone(), inner.item.clone());
        let correlated = if self.chance(80) {
            format!("{b}.k = {a}.k AND ")
        } else {
            String::new()
        };
        let negated = self.pick(&["", "NOT "]);
        let also = self.pick(&["AND", "OR"]);
        let inner_condition = self.condition(&[inner, outer]);
        format!(
            "SELECT {a}.n, {a}.id FROM {item} WHERE {negated}EXISTS \
             (SELECT FROM {inner_item} WHERE {correlated}{inner_condition}) {also} {condition}"
        )
    }

    fn lateral(&mut self) -> String {
        let (outer, _, condition) = self.read();
        let (inner, time, _) = self.read();
        let (a, item) = (outer.alias.clone(), outer.item.clone());
        let (b, inner_item) = (inner.alias.clone(), inner.item.clone());
        let join = self.pick(&["LEFT", "INNER"]);
        let direction = self.pick(&["", "DESC", "DESC NULLS LAST", "NULLS FIRST"]);
        let inner_condition = self.condition(&[inner, outer]);
        format!(
            "SELECT {a}.n, l.* FROM {item} {join} JOIN LATERAL (SELECT {b}.n AS m, {time} AS t FROM {inner_item} \
             WHERE {b}.k >= {a}.k AND {inner_condition} ORDER BY {time} {direction}, {b}.n LIMIT 3) AS l ON true WHERE {condition}"
        )
    }

    fn aggregate(&mut self) -> String {
        let (source, time, condition) = self.read();
        let filter = self.condition(std::slice::from_ref(&source));
        let Source { item, alias: a, .. } = source;
        let grouping = self.pick(&[
            "{a}.k",
            "GROUPING SETS (({a}.k), ())",
            "ROLLUP ({a}.k)",
            "CUBE ({a}.k)",
        ]);
        let grouping = grouping.replace("{a}", &a);
        let value = self.value("timestamptz");
        format!(
            "SELECT {a}.k, count(*) FILTER (WHERE {filter}), min({time}), max({time}) FROM {item} \
             WHERE {condition} GROUP BY {grouping} HAVING max({time}) > {value} OR count(*) > 2"
        )
    }

    fn having(&mut self) -> String {
        let (Source { item, .. }, time, _) = self.read();
        let grouping = self
            .pick(&["{t}", "GROUPING SETS (({t}), ())"])
            .replace("{t}", &time);
        let operator = self.pick(&["<", ">=", "="]);
        let value = self.value("timestamptz");
        format!(
            "SELECT {time}, count(*) FROM {item} GROUP BY {grouping} HAVING {time} {operator} {value}"
        )
    }

    fn window(&mut self) -> String {
        let (Source { item, alias: a, .. }, time, condition) = self.read();
        let above = self.above();
        format!(
            "SELECT * FROM (SELECT {a}.n, rank() OVER (ORDER BY {time}), \
             lag({time}) OVER (PARTITION BY {a}.k ORDER BY {time}, {a}.n), {time} AS t \
             FROM {item} WHERE {condition}) AS w WHERE {above}"
        )
    }

    fn distinct_on(&mut self) -> String {
        let (Source { item, alias: a, .. }, time, condition) = self.read();
        let direction = self.pick(&["", "DESC", "NULLS FIRST"]);
        format!(
            "SELECT DISTINCT ON ({time}) {time} AS t, {a}.n FROM {item} WHERE {condition} ORDER BY {time} {direction}, {a}.n"
        )
    }

    fn set_operation(&mut self) -> String {
        let (Source { item, alias: a, .. }, time, _) = self.read();
        let (inner, inner_time, condition) = self.read();
        let Source {
            item: inner_item,
            alias: b,
            ..
        } = inner;
        let operation = self.pick(&["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT"]);
        let above = self.above();
        format!(
            "SELECT * FROM (SELECT {a}.n, {time} AS t FROM {item} {operation} \
             SELECT {b}.n, {inner_time} FROM {inner_item} WHERE {condition}) AS s WHERE {above}"
        )
    }

    fn common_table(&mut self) -> String {
        let (Source { item, alias: a, .. }, time, condition) = self.read();
        let materialized = self.pick(&["", "MATERIALIZED ", "NOT MATERIALIZED "]);
        let (above, in_again) = (self.above(), self.above());
        format!(
            "WITH w AS {materialized}(SELECT {a}.n, {a}.id, {time} AS t FROM {item} WHERE {condition}) \
             SELECT * FROM w WHERE {above} OR n < (SELECT max(n) FROM w WHERE {in_again})"
        )
    }

    /// Only what it is sorted by is returned: rows of one time come in any order.
    fn order_by(&mut self, number: usize) -> String {
        let (from, sources) = self.joined(number);
        let time = self.time_of(&sources[0]);
        let condition = self.condition(&sources);
        let direction = self.pick(&["", "DESC", "NULLS FIRST", "DESC NULLS LAST"]);
        let then = self.pick(&["", ", {a}.id", ", {a}.id DESC", ", {a}.id {d}", ", {a}.n"]);
        let then = then
            .replace("{a}", &sources[0].alias)
            .replace("{d}", direction);
        let limit = self.pick(&["", "LIMIT 5", "LIMIT 20", "OFFSET 30 LIMIT 10"]);
        format!(
            "SELECT {time} FROM {from} WHERE {condition} ORDER BY {time} {direction}{then} {limit}"
        )
    }

    fn ends(&mut self) -> String {
        let (Source { item, .. }, time, condition) = self.read();
        if self.chance(30) {
            return format!("SELECT min({time}), max({time}) FROM {item}");
        }
        format!("SELECT min({time}), max({time}) FROM {item} WHERE {condition}")
    }

    /// A statement that changes rows, or locks them.
    fn change(&mut self) -> (&'static str, String) {
        let kind = self.below(6);
        // Before version 17 there is no MERGE on views.
        let targets = if kind == 4 {
            TARGETS.len() - VIEWS_AMONG_TARGETS
        } else {
            TARGETS.len()
        };
        let target = self.pick(&TARGETS[..targets]);
        let alias = "target".to_owned();
        let times = if TARGETS[TARGETS.len() - VIEWS_AMONG_TARGETS..].contains(&target) {
            vec!["target.created_at".to_owned()]
        } else {
            self.times_by_default(&alias)
        };
        let changed = Source {
            item: format!("{target} target"),
            alias,
            times,
        };
        let time = self.time_of(&changed);
        let condition = self.condition(std::slice::from_ref(&changed));
        let (other, other_time, other_condition) = self.read();
        let (a, item) = (other.alias.clone(), other.item.clone());
        let on_both = format!("{a}.k = target.k AND {}", self.condition(&[changed, other]));
        match kind {
            0 => (
                "UPDATE",
                format!(
                    "UPDATE {target} target SET n = target.n + 1000 WHERE {condition} RETURNING target.n"
                ),
            ),
            1 => (
                "DELETE",
                format!(
                    "DELETE FROM {target} target WHERE {condition} RETURNING target.n, target.id"
                ),
            ),
            2 => (
                "UPDATE",
                format!(
                    "UPDATE {target} target SET n = 5000 FROM {item} WHERE {on_both} RETURNING target.id, {time}"
                ),
            ),
            3 => (
                "DELETE",
                format!(
                    "DELETE FROM {target} target USING {item} WHERE {on_both} RETURNING target.id"
                ),
            ),
            // How many rows it deletes is compared.
            4 => (
                "MERGE",
                format!(
                    "MERGE INTO {target} target USING (SELECT {a}.k, max({other_time}) AS t FROM {item} WHERE {other_condition} GROUP BY {a}.k) AS s \
                     ON s.k = target.k AND {condition} WHEN MATCHED AND s.t IS NOT NULL THEN DELETE"
                ),
            ),
            _ => {
                let limit = self.pick(&[
                    "",
                    "FOR UPDATE",
                    "LIMIT 30",
                    "LIMIT 10 FOR UPDATE SKIP LOCKED",
                ]);
                let order = format!("{time} NULLS FIRST, target.id");
                (
                    "FOR UPDATE",
                    format!(
                        "SELECT target.id FROM {target} target WHERE {condition} ORDER BY {order} {limit}"
                    ),
                )
            }
        }
    }
}
