//! The text of a function, as far as the search for names in it goes: tokens,
//! without comments.
//!
//! Functions are found that a migration breaks, or that continue to use the old
//! sequence, by what their bodies contain. So a body is brought into one form:
//! tokens separated by one space, without comments, unquoted names in lower case,
//! names without quotes that need none. The contents of string constants are
//! tokens too, because they may be names or dynamic SQL. What is found is a hint
//! to a person, so the text need not be valid SQL.
//!
//! Cost: every function reads its text once, whatever it contains. Bytes above 127
//! are parts of names, as they are for PostgreSQL, so each encoding of a database
//! is kept.
//!
//! Memory: any role can create a function and pass any text. So longer texts than
//! [`LONGEST_BODY_BYTES`] are not searched, tokens are positions in one text, and
//! memory that is missing is an error.

use std::ops::Range;

use pgrx::prelude::*;

use crate::error::{Error, or_report};
use crate::pg::{Text, TextResult};

/// `snowflake_migrate_internal.code_bodies` has the same number. Its list of the functions
/// that were not searched depends on it.
const LONGEST_BODY_BYTES: usize = 1 << 20;
/// String constants within string constants are dynamic SQL within dynamic SQL.
const DEEPEST_STRING: usize = 3;
/// Arguments with more tokens are not those that are searched for.
const LONGEST_ARGUMENT_TOKENS: usize = 32;
/// A name of 63 bytes, each a quote that is doubled, in quotes.
const LONGEST_NAME_BYTES: usize = 2 * 63 + 2;

#[pg_extern(sql = false)]
fn snowflake_migrate_code(body: Text<'_>) -> Option<TextResult> {
    let code = or_report(Code::of(body.bytes()))?;
    Some(TextResult::new(&code.text))
}

#[pg_extern(sql = false)]
fn snowflake_migrate_calls(body: Text<'_>) -> Option<TextResult> {
    let code = or_report(Code::of(body.bytes()))?;
    let lines = or_report(code.calls());
    Some(TextResult::new(&lines))
}

/// The tokens of a text.
struct Code {
    /// Each token, with a space before the first one and after each.
    text: Vec<u8>,
    /// Where each token begins.
    begins: Vec<usize>,
}

impl Code {
    /// `None` for a text that is too long.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn of(text: &[u8]) -> Result<Option<Self>, Error> {
        if text.len() > LONGEST_BODY_BYTES {
            return Ok(None);
        }
        let mut code = Code {
            text: vec![b' '],
            begins: Vec::new(),
        };
        code.add(text, 0)?;
        Ok(Some(code))
    }

    /// Adds the tokens of a text.
    fn add(&mut self, text: &[u8], depth: usize) -> Result<(), Error> {
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            at += match rest[0] {
                byte if is_space(byte) => 1,
                b'-' if rest.starts_with(b"--") => line_length(rest),
                b'/' if rest.starts_with(b"/*") => comment_length(rest),
                b'\'' => {
                    let has_escapes = at > 0
                        && matches!(text[at - 1], b'e' | b'E')
                        && (at < 2 || !is_name_part(text[at - 2]));
                    let (content, length) = quoted(rest, b'\'', has_escapes);
                    let mut string = Vec::new();
                    string.try_reserve_exact(content.len())?;
                    string.extend(unquoted(content, b'\'', has_escapes));
                    self.add_string(&string, depth)?;
                    length
                }
                b'"' => {
                    let (content, length) = quoted(rest, b'"', false);
                    self.push_name(content)?;
                    length
                }
                b'$' => match dollar_quoted(rest) {
                    Some((content, length)) => {
                        self.add_string(content, depth)?;
                        length
                    }
                    None => {
                        let digits = rest[1..].iter().take_while(|it| it.is_ascii_digit());
                        let length = 1 + digits.count();
                        self.push(length, rest[..length].iter().copied())?;
                        length
                    }
                },
                byte if is_name_start(byte) || byte.is_ascii_digit() => {
                    let length = rest.iter().take_while(|&&it| is_name_part(it)).count();
                    let word = rest[..length].iter().map(u8::to_ascii_lowercase);
                    self.push(length, word)?;
                    length
                }
                _ => {
                    let is_double = rest.starts_with(b":=") || rest.starts_with(b"::");
                    let length = 1 + usize::from(is_double);
                    self.push(length, rest[..length].iter().copied())?;
                    length
                }
            };
        }
        Ok(())
    }

    fn add_string(&mut self, content: &[u8], depth: usize) -> Result<(), Error> {
        self.push(1, [b'\''].into_iter())?;
        if depth < DEEPEST_STRING {
            self.add(content, depth + 1)?;
        }
        self.push(1, [b'\''].into_iter())
    }

    /// Adds a name that was in quotes, without them if it needs none.
    fn push_name(&mut self, content: &[u8]) -> Result<(), Error> {
        let name = || unquoted(content, b'"', false);
        let is_plain = name().next().is_some_and(is_name_start)
            && name().all(|it| is_name_part(it) && !it.is_ascii_uppercase());
        if is_plain {
            return self.push(content.len(), name());
        }
        let doubled = name().flat_map(|it| std::iter::repeat_n(it, 1 + usize::from(it == b'"')));
        let token = [b'"'].into_iter().chain(doubled).chain([b'"']);
        self.push(content.len() + 2, token)
    }

    /// Adds a token of at most `longest` bytes.
    fn push(&mut self, longest: usize, token: impl Iterator<Item = u8>) -> Result<(), Error> {
        self.text.try_reserve(longest + 1)?;
        self.begins.try_reserve(1)?;
        self.begins.push(self.text.len());
        self.text.extend(token);
        self.text.push(b' ');
        Ok(())
    }

    fn count(&self) -> usize {
        self.begins.len()
    }

    fn token(&self, index: usize) -> &[u8] {
        self.tokens(index..index + 1)
    }

    /// Some tokens, at least one, separated by spaces.
    fn tokens(&self, range: Range<usize>) -> &[u8] {
        let after = self.begins.get(range.end).copied();
        let end = after.unwrap_or(self.text.len()) - 1;
        &self.text[self.begins[range.start]..end]
    }

    /// The arguments of calls that have a column of the trigger's row in them, a
    /// line for each: function, schema, its place, the number of arguments, its tokens.
    fn calls(&self) -> Result<Vec<u8>, Error> {
        let mut lines = Vec::new();
        let mut open: Vec<OpenCall> = Vec::new();
        // Where the arguments of the open calls begin.
        let mut begins: Vec<usize> = Vec::new();
        for at in 0..self.count() {
            match self.token(at) {
                b"(" => {
                    open.try_reserve(1)?;
                    begins.try_reserve(1)?;
                    open.push(OpenCall {
                        name: self.name_before(at),
                        first: begins.len(),
                    });
                    begins.push(at + 1);
                }
                b"," if !open.is_empty() => {
                    begins.try_reserve(1)?;
                    begins.push(at + 1);
                }
                b")" => {
                    let Some(call) = open.pop() else {
                        continue;
                    };
                    let arguments = &begins[call.first..];
                    for (index, &begin) in arguments.iter().enumerate() {
                        let end = arguments.get(index + 1).map_or(at, |next| next - 1);
                        if end - begin <= LONGEST_ARGUMENT_TOKENS && self.has_row(begin..end) {
                            let place = (index + 1, arguments.len());
                            self.add_line(&mut lines, &call.name, place, begin..end)?;
                        }
                    }
                    begins.truncate(call.first);
                }
                b";" => {
                    open.clear();
                    begins.clear();
                }
                _ => {}
            }
        }
        Ok(lines)
    }

    /// Adds the line of an argument, unless the call has no name.
    fn add_line(
        &self,
        lines: &mut Vec<u8>,
        name: &Range<usize>,
        (place, count): (usize, usize),
        argument: Range<usize>,
    ) -> Result<(), Error> {
        let (function, schema) = match name.len() {
            1 => (self.token(name.start), &[][..]),
            3 => (self.token(name.start + 2), self.token(name.start)),
            _ => return Ok(()),
        };
        if function.len() > LONGEST_NAME_BYTES || schema.len() > LONGEST_NAME_BYTES {
            return Ok(());
        }
        let numbers = format!("{place}\t{count}");
        let argument = self.tokens(argument);
        // Four separators.
        lines.try_reserve(function.len() + schema.len() + numbers.len() + argument.len() + 4)?;
        lines.extend(name_of(function));
        lines.push(b'\t');
        lines.extend(name_of(schema));
        lines.push(b'\t');
        lines.extend_from_slice(numbers.as_bytes());
        lines.push(b'\t');
        lines.extend_from_slice(argument);
        lines.push(b'\n');
        Ok(())
    }

    fn has_row(&self, tokens: Range<usize>) -> bool {
        (tokens.start + 1..tokens.end)
            .any(|at| matches!(self.token(at - 1), b"new" | b"old") && self.token(at) == b".")
    }

    /// The name that ends before a token: `f` or `schema . f`.
    fn name_before(&self, at: usize) -> Range<usize> {
        let is_name = |index: usize| {
            let first = self.token(index).first().copied().unwrap_or_default();
            first == b'"' || is_name_start(first)
        };
        if at == 0 || !is_name(at - 1) {
            at..at
        } else if at >= 3 && self.token(at - 2) == b"." && is_name(at - 3) {
            at - 3..at
        } else {
            at - 1..at
        }
    }
}

/// A call whose closing parenthesis has not been read.
struct OpenCall {
    /// The tokens of its name; empty for other parentheses.
    name: Range<usize>,
    /// Which of the beginnings of arguments is its first.
    first: usize,
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn is_name_part(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// Up to the end of the line.
fn line_length(text: &[u8]) -> usize {
    let end = text.iter().position(|&it| it == b'\n' || it == b'\r');
    end.unwrap_or(text.len())
}

/// Up to the end of a comment, which may have others in it.
fn comment_length(text: &[u8]) -> usize {
    let (mut at, mut open) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with(b"/*") {
            (at, open) = (at + 2, open + 1);
        } else if text[at..].starts_with(b"*/") {
            (at, open) = (at + 2, open - 1);
            if open == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// What stands between quotes, as it is written, and the length with the quotes.
fn quoted(text: &[u8], quote: u8, has_escapes: bool) -> (&[u8], usize) {
    let mut at = 1;
    while at < text.len() {
        if text[at] == quote && text.get(at + 1) != Some(&quote) {
            return (&text[1..at], at + 1);
        }
        at += 1 + usize::from(is_pair(&text[at..], quote, has_escapes));
    }
    (&text[1..], text.len())
}

/// What is written between quotes, of which two stand for one.
fn unquoted(content: &[u8], quote: u8, has_escapes: bool) -> impl Iterator<Item = u8> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = content.get(at..).filter(|rest| !rest.is_empty())?;
        let second = usize::from(is_pair(rest, quote, has_escapes));
        at += 1 + second;
        Some(rest[second])
    })
}

/// Whether a text begins with two bytes that stand for the second one.
fn is_pair(text: &[u8], quote: u8, has_escapes: bool) -> bool {
    text.len() > 1 && (text[0] == quote || has_escapes && text[0] == b'\\')
}

/// What stands between `$tag$` and `$tag$`, and the length with them.
fn dollar_quoted(text: &[u8]) -> Option<(&[u8], usize)> {
    let is_tag = |byte: u8| byte != b'$' && is_name_part(byte);
    let name = text[1..].iter().take_while(|&&it| is_tag(it)).count();
    let starts_with_digit = name > 0 && text[1].is_ascii_digit();
    if starts_with_digit || text.get(name + 1) != Some(&b'$') {
        return None;
    }
    let tag = &text[..name + 2];
    let mut at = tag.len();
    // A tag begins at a `$`, so each byte is looked at once or, as a part of a
    // tag that differs, a second time.
    while let Some(found) = text[at..].iter().position(|&it| it == b'$') {
        at += found;
        if text[at..].starts_with(tag) {
            return Some((&text[tag.len()..at], at + tag.len()));
        }
        at += 1;
    }
    Some((&text[tag.len()..], text.len()))
}

/// The name of a token as the catalog has it.
fn name_of(token: &[u8]) -> impl Iterator<Item = u8> {
    let (content, quote) = match token {
        [b'"', content @ .., b'"'] => (content, b'"'),
        // No quote is in it.
        _ => (token, 0),
    };
    unquoted(content, quote, false)
}
