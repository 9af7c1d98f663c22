//! Headings and tables on a terminal.

use anyhow::Result;
use postgres::Client;

pub fn heading(text: &str) {
    println!("\n{text}\n{}\n", "-".repeat(text.len()));
}

/// Lines of a name and a value, with the values aligned to the right.
pub fn pairs(lines: &[(&str, String)]) {
    let name = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let value = lines
        .iter()
        .map(|(_, value)| value.len())
        .max()
        .unwrap_or(0);
    for (text, number) in lines {
        println!("    {text:name$}  {number:>value$}");
    }
}

/// The rows of a query, drawn as psql draws them.
pub fn table(client: &mut Client, sql: &str) -> Result<()> {
    use postgres::SimpleQueryMessage::{Row, RowDescription};
    let mut lines: Vec<Vec<String>> = Vec::new();
    for message in client.simple_query(sql)? {
        match message {
            RowDescription(columns) => {
                lines.push(
                    columns
                        .iter()
                        .map(|column| column.name().to_owned())
                        .collect(),
                );
            }
            Row(row) => lines.push(
                (0..row.len())
                    .map(|column| row.get(column).unwrap_or_default().to_owned())
                    .collect(),
            ),
            _ => {}
        }
    }
    let columns = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            lines
                .iter()
                .map(|line| line[column].len())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| {
                if number == 0 {
                    format!(" {cell:^width$} ")
                } else {
                    format!(" {cell:>width$} ")
                }
            })
            .collect();
        println!("    {}", cells.join("|").trim_end());
        if number == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
            println!("    {}", rule.join("+"));
        }
    }
    Ok(())
}
