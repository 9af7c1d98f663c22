//! The fenced blocks of the documents, which tests run as they are printed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    /// The line its text begins at.
    pub line: usize,
    /// The word after the fence, in lower case.
    pub language: String,
    /// What is between the fences.
    pub text: String,
}

/// The directory of the README.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A document, by its path in the repository.
pub fn read(document: &str) -> Result<String> {
    let path = root().join(document);
    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// The blocks of a document, in order.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in markdown.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => {
                open = Some(Block {
                    line: number + 2,
                    language: language.trim().to_ascii_lowercase(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                let _ = writeln!(block.text, "{line}");
            }
            (None, None) => {}
        }
    }
    blocks
}

/// The text of the one block of a document that contains `what`.
pub fn block(document: &str, what: &str) -> Result<String> {
    let mut found = blocks(&read(document)?)
        .into_iter()
        .filter(|block| block.text.contains(what));
    let block = found
        .next()
        .with_context(|| format!("{document}: no block with {what:?}"))?;
    ensure!(
        found.next().is_none(),
        "{document}: several blocks with {what:?}"
    );
    Ok(block.text)
}

/// Fails unless the document has this text, whatever its line breaks are.
pub fn require(document: &str, text: &str) -> Result<()> {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(
        flat(&read(document)?).contains(&flat(text)),
        "{document} does not have this: {text}"
    );
    Ok(())
}
