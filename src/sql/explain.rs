//! SQL: the bits of an ID, field by field, for a person to read.

use pgrx::prelude::*;
use snowflake_id::{Layout, Time};

use crate::error::{Error, or_report};
use crate::generator::accepted_layout;
use crate::pg::time::printed;
use crate::pg::{Call, Text};
use crate::sql::read::{by_this_server, parts};
use crate::sql::values::{layout_named, timestamptz};

/// The bits of an ID. The sign bit is always 0 and not shown.
const ID_BITS: u32 = 63;

// STABLE with a layout too: the time is printed in the session's time zone.

#[pg_extern(sql = false)]
fn snowflake_explain(id: i64) -> String {
    accepted_layout::notice_other_layout_once();
    by_this_server(|layout| explain(id, layout))
}

#[pg_extern(sql = false)]
fn snowflake_explain_by(id: i64, layout: Text<'_>, call: Call<'_>) -> String {
    or_report(explain(id, &layout_named(layout, call)))
}

/// A field as it is printed: its lines, one below the other.
struct Column {
    lines: [String; 4],
}

impl Column {
    fn width(&self) -> usize {
        let widths = self.lines.iter().map(|line| line.chars().count());
        widths.max().unwrap_or(0)
    }
}

fn explain(id: i64, layout: &Layout) -> Result<String, Error> {
    let columns = columns(id, layout, parts(id, layout)?.time);
    let mut text = String::new();
    for number in 0..4 {
        let line: Vec<String> = columns
            .iter()
            .map(|column| format!("{:width$}", column.lines[number], width = column.width()))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text.push_str(&format!("layout {layout}"));
    Ok(text)
}

/// The unused bits, if any, and the fields. `time` is the time of the ID.
fn columns(id: i64, layout: &Layout, time: Time) -> Vec<Column> {
    let unused = ID_BITS - layout.total_bits();
    let unused = (unused > 0).then(|| Column {
        lines: [
            format!("unused:{unused}"),
            "0".repeat(unused as usize),
            String::new(),
            String::new(),
        ],
    });
    let fields = layout.fields().map(|field| {
        let value = (id as u64 >> field.shift) & ((1 << field.bits) - 1);
        let (width, is_timestamp) = (field.bits as usize, field.name == "timestamp");
        Column {
            lines: [
                format!("{}:{}", field.name, field.bits),
                format!("{value:0width$b}"),
                value.to_string(),
                if is_timestamp {
                    printed(timestamptz(time))
                } else {
                    String::new()
                },
            ],
        }
    });
    unused.into_iter().chain(fields).collect()
}
