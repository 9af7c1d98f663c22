//! Reads an ID from each line of its input, and writes the ID, its time, and its node, backend and
//! sequence number, with tabs between them. The argument is the name of a preset or a layout;
//! without it, the default layout is meant.

use std::error::Error;
use std::io::{self, BufWriter, Write};

use snowflake_id::{Layout, SnowflakeId};

fn main() -> Result<(), Box<dyn Error>> {
    let layout: Layout = std::env::args()
        .nth(1)
        .as_deref()
        .unwrap_or("default")
        .parse()?;
    let mut output = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lines() {
        let id = line?
            .parse()
            .map(SnowflakeId::new)?
            .ok_or("a negative number is no ID")?;
        let parts = layout.decode(id)?;
        writeln!(
            output,
            "{id}\t{}\t{}\t{}\t{}",
            parts.time, parts.node, parts.backend, parts.sequence
        )?;
    }
    output.flush()?;
    Ok(())
}
