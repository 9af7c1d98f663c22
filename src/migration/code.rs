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

use pgrx::prelude::*;

use crate::pg::{OwnText, Text};

/// String constants within string constants are dynamic SQL within dynamic SQL.
const DEEPEST_STRING: usize = 3;
/// Arguments with more tokens are not those that are searched for.
const LONGEST_ARGUMENT: usize = 32;

#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_code(body text) RETURNS text
    STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_code(body text) IS
    'Used by snowflake_internal.migration_findings: a function''s body as tokens, separated by spaces';
"#)]
fn snowflake_migration_code(body: Text<'_>) -> OwnText {
    let tokens = tokens_of(body.bytes());
    let mut code = Vec::with_capacity(tokens.iter().map(|token| token.len() + 1).sum());
    for token in &tokens {
        code.push(b' ');
        code.extend_from_slice(token);
    }
    code.push(b' ');
    OwnText::new(&code)
}

#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_calls(body text) RETURNS text
    STRICT IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_calls(body text) IS
    'Used by snowflake_internal.migration_findings: calls in a trigger function with columns of its row, a line for each argument';
"#)]
fn snowflake_migration_calls(body: Text<'_>) -> OwnText {
    let mut lines = Vec::new();
    for argument in arguments_of(&tokens_of(body.bytes())) {
        let (place, count) = (argument.place.to_string(), argument.count.to_string());
        let (function, schema) = match argument.function {
            [schema, _, function] => (unquoted(function), unquoted(schema)),
            [function] => (unquoted(function), Vec::new()),
            _ => continue,
        };
        let parts = [
            function,
            schema,
            place.into_bytes(),
            count.into_bytes(),
            argument.tokens.join(&b' '),
        ];
        lines.extend_from_slice(&parts.join(&b'\t'));
        lines.push(b'\n');
    }
    OwnText::new(&lines)
}

type Token = Vec<u8>;

fn tokens_of(text: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    add_tokens(text, 0, &mut tokens);
    tokens
}

fn add_tokens(text: &[u8], depth: usize, tokens: &mut Vec<Token>) {
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
                add_string(&content, depth, tokens);
                length
            }
            b'"' => {
                let (content, length) = quoted(rest, b'"', false);
                tokens.push(name_token(content));
                length
            }
            b'$' => match dollar_quoted(rest) {
                Some((content, length)) => {
                    add_string(content, depth, tokens);
                    length
                }
                None => {
                    let digits = rest[1..].iter().take_while(|it| it.is_ascii_digit());
                    let length = 1 + digits.count();
                    tokens.push(rest[..length].to_vec());
                    length
                }
            },
            byte if is_name_start(byte) || byte.is_ascii_digit() => {
                let length = rest.iter().take_while(|&&it| is_name_part(it)).count();
                tokens.push(rest[..length].to_ascii_lowercase());
                length
            }
            _ => {
                let is_double = rest.starts_with(b":=") || rest.starts_with(b"::");
                let length = 1 + usize::from(is_double);
                tokens.push(rest[..length].to_vec());
                length
            }
        };
    }
}

fn add_string(content: &[u8], depth: usize, tokens: &mut Vec<Token>) {
    tokens.push(b"'".to_vec());
    if depth < DEEPEST_STRING {
        add_tokens(content, depth + 1, tokens);
    }
    tokens.push(b"'".to_vec());
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

/// What stands between quotes, of which two stand for one, and the length with
/// the quotes.
fn quoted(text: &[u8], quote: u8, has_escapes: bool) -> (Vec<u8>, usize) {
    let mut content = Vec::new();
    let mut at = 1;
    while at < text.len() {
        let byte = text[at];
        let next = text.get(at + 1).copied();
        if byte == quote && next != Some(quote) {
            return (content, at + 1);
        }
        let is_pair = byte == quote || has_escapes && byte == b'\\' && next.is_some();
        at += usize::from(is_pair);
        content.push(text[at]);
        at += 1;
    }
    (content, text.len())
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

/// A name that was in quotes, without them if it needs none.
fn name_token(name: Vec<u8>) -> Token {
    let is_plain = name.first().is_some_and(|&it| is_name_start(it))
        && name
            .iter()
            .all(|&it| is_name_part(it) && !it.is_ascii_uppercase());
    if is_plain {
        return name;
    }
    let mut token = vec![b'"'];
    for byte in name {
        token.extend_from_slice(if byte == b'"' {
            b"\"\""
        } else {
            std::slice::from_ref(&byte)
        });
    }
    token.push(b'"');
    token
}

/// A name as the catalog has it.
fn unquoted(token: &[u8]) -> Vec<u8> {
    if token.first() == Some(&b'"') {
        quoted(token, b'"', false).0
    } else {
        token.to_vec()
    }
}

/// An argument of a call.
struct Argument<'a> {
    /// Its name, with the schema if there is one.
    function: &'a [Token],
    place: usize,
    /// How many arguments the call has.
    count: usize,
    tokens: &'a [Token],
}

/// A call whose closing parenthesis has not been read.
struct OpenCall {
    /// The tokens of its name; empty for other parentheses.
    name: std::ops::Range<usize>,
    /// Where each of its arguments begins.
    begins: Vec<usize>,
}

/// The arguments of calls that have a column of the trigger's row in them.
fn arguments_of(tokens: &[Token]) -> Vec<Argument<'_>> {
    let mut arguments = Vec::new();
    let mut open: Vec<OpenCall> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.as_slice() {
            b"(" => open.push(OpenCall {
                name: name_before(tokens, at),
                begins: vec![at + 1],
            }),
            b"," => {
                if let Some(call) = open.last_mut() {
                    call.begins.push(at + 1);
                }
            }
            b")" => {
                if let Some(call) = open.pop().filter(|call| !call.name.is_empty()) {
                    let count = call.begins.len();
                    let ends = call.begins[1..].iter().map(|begin| begin - 1).chain([at]);
                    for (place, (&begin, end)) in (1..).zip(call.begins.iter().zip(ends)) {
                        let tokens_of_it = &tokens[begin..end];
                        if tokens_of_it.len() <= LONGEST_ARGUMENT && has_row(tokens_of_it) {
                            arguments.push(Argument {
                                function: &tokens[call.name.clone()],
                                place,
                                count,
                                tokens: tokens_of_it,
                            });
                        }
                    }
                }
            }
            b";" => open.clear(),
            _ => {}
        }
    }
    arguments
}

fn has_row(tokens: &[Token]) -> bool {
    tokens
        .windows(2)
        .any(|pair| (pair[0] == b"new" || pair[0] == b"old") && pair[1] == b".")
}

/// The name that ends before a token: `f` or `schema . f`.
fn name_before(tokens: &[Token], at: usize) -> std::ops::Range<usize> {
    let is_name = |index: usize| {
        let first = tokens[index].first().copied().unwrap_or_default();
        first == b'"' || is_name_start(first)
    };
    if at == 0 || !is_name(at - 1) {
        at..at
    } else if at >= 3 && tokens[at - 2] == b"." && is_name(at - 3) {
        at - 3..at
    } else {
        at - 1..at
    }
}
