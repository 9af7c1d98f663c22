//! What a document consists of.

use super::verdict::Verdict;
use crate::plot::Chart;

/// A part of the document.
#[derive(Default)]
pub struct Section {
    pub title: &'static str,
    pub blocks: Vec<Block>,
    pub verdicts: Vec<Verdict>,
    /// Its part of the first page.
    pub highlight: Option<Highlight>,
    /// Whether its text is all that a reader needs about how it was measured. The
    /// document then lacks the chapter's paragraphs about rounds and contenders.
    pub describes_itself: bool,
}

/// A part of the first page: a question, its answer and one plot.
pub struct Highlight {
    pub question: &'static str,
    pub answer: String,
    pub figure: Figure,
}

pub enum Block {
    Text(String),
    Table(Table),
    Figure(Figure),
}

/// A plot in a file of its own.
pub struct Figure {
    /// The file's name, without the extension.
    pub file: &'static str,
    /// Its description, for readers who cannot see it.
    pub about: &'static str,
    pub chart: Chart,
}

/// A table whose first column names the rows.
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Self {
        Self::of(head.iter().map(ToString::to_string).collect())
    }

    pub fn of(head: Vec<String>) -> Self {
        Self {
            head,
            rows: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: &[String]) {
        self.rows.push(cells.to_vec());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(&self.head);
        text.push_str("|---|");
        text.push_str(&"---:|".repeat(self.head.len() - 1));
        text.push('\n');
        for row in &self.rows {
            text.push_str(&line(row));
        }
        text
    }
}
