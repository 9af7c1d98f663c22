//! IDs as text.

use std::fmt;

use thiserror::Error;

use crate::id::SnowflakeId;

/// How an ID is written as text: one width for all IDs, and the order of the texts, byte by byte
/// (the collation `C`), is the order of the IDs.
///
/// `Base32` is Douglas Crockford's (<https://www.crockford.com/base32.html>) without hyphens and
/// check symbol: no letter looks like a digit, and upper and lower case are read alike. It also
/// sorts right in collations that have digits before letters and the letters in alphabetical order.
/// `Base62` is shorter by two characters; upper and lower case differ, and it sorts right in `C`
/// only.
///
/// ```
/// use snowflake_id::{Encoding, SnowflakeId};
///
/// let id = SnowflakeId::new(249_431_905_924_104_192).unwrap();
/// let text = Encoding::Base32.encode(id);
/// assert_eq!(text.as_str(), "06XH8ZWT42G00");
/// assert_eq!(Encoding::Base32.decode("o6xh8zwt42gOO"), Ok(id));
/// assert_eq!(Encoding::Base62.encode(id).to_string(), "0IQOqa0An0C");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Encoding {
    /// 13 characters of `0123456789ABCDEFGHJKMNPQRSTVWXYZ`. Read as well: lower case, `I`, `i`, `L`
    /// and `l` as 1, `O` and `o` as 0. `U` is no digit.
    #[default]
    Base32,
    /// 11 characters of `0-9`, `A-Z` and `a-z`, in this order, which is ASCII's.
    Base62,
}

const BASE32_WIDTH: usize = 13;
const BASE62_WIDTH: usize = 11;

const BASE32_DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const BASE62_DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The value of a byte that is no digit. It has the highest bit, which no digit's value has.
const NO_DIGIT: u8 = u8::MAX;

/// The value of every byte as a digit.
type Values = [u8; 256];

static BASE32_VALUES: Values = {
    let mut values = values_of(BASE32_DIGITS);
    let mut byte = b'a';
    while byte <= b'z' {
        values[byte as usize] = values[byte.to_ascii_uppercase() as usize];
        byte += 1;
    }
    let (zero, one) = (values[b'0' as usize], values[b'1' as usize]);
    values[b'O' as usize] = zero;
    values[b'o' as usize] = zero;
    values[b'I' as usize] = one;
    values[b'i' as usize] = one;
    values[b'L' as usize] = one;
    values[b'l' as usize] = one;
    values
};

static BASE62_VALUES: Values = values_of(BASE62_DIGITS);

const fn values_of(digits: &[u8]) -> Values {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < digits.len() {
        values[digits[value] as usize] = value as u8;
        value += 1;
    }
    values
}

impl Encoding {
    /// All encodings, the default first.
    pub const ALL: [Self; 2] = [Self::Base32, Self::Base62];

    /// `base32` or `base62`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base32 => "base32",
            Self::Base62 => "base62",
        }
    }

    /// How many characters, which are bytes, every ID has.
    pub const fn width(self) -> usize {
        match self {
            Self::Base32 => BASE32_WIDTH,
            Self::Base62 => BASE62_WIDTH,
        }
    }

    /// The text of an ID. Does not allocate.
    #[inline]
    pub fn encode(self, id: SnowflakeId) -> IdText {
        match self {
            Self::Base32 => IdText::new(base32(id.bits())),
            Self::Base62 => IdText::new(base62(id.bits())),
        }
    }

    /// The ID of a text; the inverse of [`encode`](Self::encode). Space around the text is an
    /// error.
    ///
    /// # Errors
    ///
    /// If a character is no digit, else if the length is wrong, else if the number is above
    /// [`SnowflakeId::MAX`].
    #[inline]
    pub fn decode(self, text: &str) -> Result<SnowflakeId, TextError> {
        self.decode_bytes(text.as_bytes())
            .ok_or_else(|| self.error_in(text))
    }

    /// The same for a text in any encoding in which bytes below 128 are ASCII; `None` if
    /// [`decode`](Self::decode) would return an error.
    #[inline]
    pub fn decode_bytes(self, text: &[u8]) -> Option<SnowflakeId> {
        let number = match self {
            Self::Base32 => number::<32, BASE32_WIDTH>(text, &BASE32_VALUES),
            Self::Base62 => number::<62, BASE62_WIDTH>(text, &BASE62_VALUES),
        };
        SnowflakeId::new(i64::try_from(number?).ok()?)
    }

    /// What is wrong with a text. The character comes before the length: a text with a hyphen too
    /// many also has a wrong length, and the hyphen is the cause.
    #[cold]
    fn error_in(self, text: &str) -> TextError {
        let mut found = 0;
        for character in text.chars() {
            found += 1;
            if !self.is_digit(character) {
                return TextError::Character {
                    encoding: self,
                    character,
                    position: found,
                };
            }
        }
        if found == self.width() {
            return TextError::TooLarge { encoding: self };
        }
        TextError::Length {
            encoding: self,
            found,
        }
    }

    fn is_digit(self, character: char) -> bool {
        let values = match self {
            Self::Base32 => &BASE32_VALUES,
            Self::Base62 => &BASE62_VALUES,
        };
        u8::try_from(character).is_ok_and(|byte| values[usize::from(byte)] != NO_DIGIT)
    }
}

fn base32(number: u64) -> [u8; BASE32_WIDTH] {
    let mut text = [0; BASE32_WIDTH];
    let mut rest = number;
    for byte in text.iter_mut().rev() {
        *byte = BASE32_DIGITS[(rest % 32) as usize];
        rest /= 32;
    }
    text
}

fn base62(number: u64) -> [u8; BASE62_WIDTH] {
    let mut text = [0; BASE62_WIDTH];
    let mut rest = number;
    for byte in text.iter_mut().rev() {
        *byte = BASE62_DIGITS[(rest % 62) as usize];
        rest /= 62;
    }
    text
}

/// The number of a text, if that has `WIDTH` digits and the number is below 2^64.
#[inline]
fn number<const BASE: u64, const WIDTH: usize>(text: &[u8], values: &Values) -> Option<u64> {
    // All digits but the first are a number of less than 60 bits: 32^12 = 2^60, 62^10 < 2^60.
    const { assert!(BASE.pow(WIDTH as u32 - 1) <= 1 << 60) };
    let text: &[u8; WIDTH] = text.try_into().ok()?;
    let mut rest = 0;
    // Checked once, after the loop: no digit's value has the highest bit.
    let mut all = 0;
    for &byte in &text[1..] {
        let value = values[usize::from(byte)];
        all |= value;
        rest = rest * BASE + u64::from(value);
    }
    let first = values[usize::from(text[0])];
    all |= first;
    if all >= 1 << 7 {
        return None;
    }
    u64::from(first)
        .checked_mul(const { BASE.pow(WIDTH as u32 - 1) })?
        .checked_add(rest)
}

/// `base32` or `base62`.
impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text of an ID, in place: 13 bytes or fewer, all of them ASCII.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdText {
    bytes: [u8; BASE32_WIDTH],
    len: u8,
}

impl IdText {
    #[inline]
    fn new<const WIDTH: usize>(text: [u8; WIDTH]) -> Self {
        const { assert!(WIDTH <= BASE32_WIDTH) };
        let mut bytes = [0; BASE32_WIDTH];
        bytes[..WIDTH].copy_from_slice(&text);
        Self {
            bytes,
            len: WIDTH as u8,
        }
    }

    /// The text's bytes, without the check for UTF-8 that a `str` needs.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).expect("every digit is ASCII")
    }
}

impl AsRef<str> for IdText {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for IdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for IdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdText({self})")
    }
}

/// Why [`Encoding::decode`] returned no ID. The message does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// All characters are digits, but their number is wrong.
    #[error(
        "it has {found} character{}; a {encoding} ID has {}",
        if *found == 1 { "" } else { "s" },
        encoding.width()
    )]
    Length {
        /// The encoding that was read; its [width](Encoding::width) was expected.
        encoding: Encoding,
        /// How many characters the text has.
        found: usize,
    },
    /// A character is no digit.
    // As a string, which is printed with double quotes, and with invisible characters escaped.
    #[error(
        "character {:?} at position {position} is not a {encoding} digit",
        character.to_string()
    )]
    Character {
        /// The encoding that was read.
        encoding: Encoding,
        /// The first character that is no digit.
        character: char,
        /// Its position in characters, counted from 1.
        position: usize,
    },
    /// The number is above [`SnowflakeId::MAX`].
    #[error("the largest ID is \"{}\"", encoding.encode(SnowflakeId::MAX))]
    TooLarge {
        /// The encoding that was read.
        encoding: Encoding,
    },
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn id(bits: i64) -> SnowflakeId {
        SnowflakeId::new(bits).unwrap()
    }

    fn refused(encoding: Encoding, text: &str) -> String {
        encoding.decode(text).unwrap_err().to_string()
    }

    /// The texts were computed digit by digit with Python's integers.
    #[test]
    fn known_ids_have_their_texts() {
        for (bits, base32, base62) in [
            (0, "0000000000000", "00000000000"),
            (1, "0000000000001", "00000000001"),
            (31, "000000000000Z", "0000000000V"),
            (32, "0000000000010", "0000000000W"),
            (61, "000000000001X", "0000000000z"),
            (62, "000000000001Y", "00000000010"),
            (56_800_235_583, "000001MWRXM1Z", "00000zzzzzz"),
            (56_800_235_584, "000001MWRXM20", "00001000000"),
            ((1 << 53) - 1, "007ZZZZZZZZZZ", "00fFgnDxSe7"),
            (249_431_905_924_104_192, "06XH8ZWT42G00", "0IQOqa0An0C"),
            (1_234_567_890_123_456_789, "128GGYHYYK08N", "1TCKi1nFuNh"),
            (i64::MAX, "7ZZZZZZZZZZZZ", "AzL8n0Y58m7"),
        ] {
            for (encoding, text) in [(Encoding::Base32, base32), (Encoding::Base62, base62)] {
                assert_eq!(encoding.encode(id(bits)).as_str(), text);
                assert_eq!(encoding.decode(text), Ok(id(bits)), "{text}");
            }
        }
    }

    #[test]
    fn base32_takes_look_alikes_and_lower_case() {
        let ones = Encoding::Base32.decode("1111111111111").unwrap();
        for text in [
            "IIIIIIIIIIIII",
            "iiiiiiiiiiiii",
            "LLLLLLLLLLLLL",
            "lllllllllllll",
        ] {
            assert_eq!(Encoding::Base32.decode(text), Ok(ones), "{text}");
        }
        for text in ["OOOOOOOOOOOOO", "ooooooooooooo", "oO0oO0oO0oO0o"] {
            assert_eq!(Encoding::Base32.decode(text), Ok(SnowflakeId::ZERO));
        }
        assert_eq!(
            Encoding::Base32.decode("7zzzzzzzzzzzz"),
            Ok(SnowflakeId::MAX)
        );
        // 22 letters without I, L, O and U; each in both cases.
        for letter in "ABCDEFGHJKMNPQRSTVWXYZ".chars() {
            let text = format!("000000000000{letter}");
            let upper = Encoding::Base32.decode(&text).unwrap();
            assert_eq!(Encoding::Base32.decode(&text.to_lowercase()), Ok(upper));
            assert_eq!(Encoding::Base32.encode(upper).as_str(), text);
        }
    }

    #[test]
    fn base62_takes_every_character_for_itself() {
        let text = |character| format!("0000000000{character}");
        let mut last = -1;
        for character in ('0'..='9').chain('A'..='Z').chain('a'..='z') {
            let id = Encoding::Base62.decode(&text(character)).unwrap();
            assert_eq!(id.get(), last + 1);
            last = id.get();
        }
        assert_eq!(last, 61);
    }

    #[test]
    fn the_wrong_length_is_said() {
        for (encoding, text, message) in [
            (
                Encoding::Base32,
                "",
                "it has 0 characters; a base32 ID has 13",
            ),
            (
                Encoding::Base32,
                "0",
                "it has 1 character; a base32 ID has 13",
            ),
            (
                Encoding::Base32,
                "06XH8ZWT42G0",
                "it has 12 characters; a base32 ID has 13",
            ),
            (
                Encoding::Base32,
                "06XH8ZWT42G000",
                "it has 14 characters; a base32 ID has 13",
            ),
            (
                Encoding::Base62,
                "06XH8ZWT42G00",
                "it has 13 characters; a base62 ID has 11",
            ),
            (
                Encoding::Base62,
                "0IQOqa0An0",
                "it has 10 characters; a base62 ID has 11",
            ),
        ] {
            assert_eq!(refused(encoding, text), message, "{text}");
        }
    }

    #[test]
    fn the_first_character_that_is_no_digit_is_said() {
        for (encoding, text, character, position) in [
            (Encoding::Base32, "06UH8ZWT42G00", "\"U\"", 3),
            (Encoding::Base32, "06uu8ZWT42G00", "\"u\"", 3),
            (Encoding::Base32, "06XH8-ZWT42-G00", "\"-\"", 6),
            (Encoding::Base32, "06XH8ZWT42G00*", "\"*\"", 14),
            (Encoding::Base32, " 06XH8ZWT42G00", "\" \"", 1),
            (Encoding::Base32, "06XH8ZWT42G0\n", "\"\\n\"", 13),
            // Of the right number of bytes, of the right number of characters, and past one that
            // has two bytes.
            (Encoding::Base32, "06XH8ZWT42Gé", "\"é\"", 12),
            (Encoding::Base32, "06XH8ZWT42G0é", "\"é\"", 13),
            (Encoding::Base32, "é*", "\"é\"", 1),
            // Its code's last 8 bits are those of "1".
            (Encoding::Base32, "06XH8ZWT42G0\u{131}", "\"ı\"", 13),
            (Encoding::Base62, "0IQOqa0An0_", "\"_\"", 11),
            (Encoding::Base62, "'IQOqa0An0C", "\"'\"", 1),
            (Encoding::Base62, "0IQ\u{200b}Oqa0An0C", "\"\\u{200b}\"", 4),
            // It would be too large as well.
            (Encoding::Base62, "zzzzzzzzzz~", "\"~\"", 11),
        ] {
            assert_eq!(
                refused(encoding, text),
                format!("character {character} at position {position} is not a {encoding} digit"),
            );
        }
    }

    #[test]
    fn numbers_above_the_largest_id_are_refused() {
        for (encoding, texts, message) in [
            (
                Encoding::Base32,
                // 2^63, 2^64 - 1, 2^64 and 32^13 - 1
                [
                    "8000000000000",
                    "FZZZZZZZZZZZZ",
                    "G000000000000",
                    "ZZZZZZZZZZZZZ",
                ],
                "the largest ID is \"7ZZZZZZZZZZZZ\"",
            ),
            (
                Encoding::Base62,
                // 2^63, 2^64 - 1, 2^64 and 62^11 - 1
                ["AzL8n0Y58m8", "LygHa16AHYF", "LygHa16AHYG", "zzzzzzzzzzz"],
                "the largest ID is \"AzL8n0Y58m7\"",
            ),
        ] {
            for text in texts {
                assert_eq!(encoding.decode(text), Err(TextError::TooLarge { encoding }));
                assert_eq!(refused(encoding, text), message, "{text}");
            }
        }
    }

    #[test]
    fn names_and_widths() {
        assert_eq!(Encoding::default(), Encoding::Base32);
        for (encoding, name, width) in [
            (Encoding::Base32, "base32", 13),
            (Encoding::Base62, "base62", 11),
        ] {
            assert_eq!(encoding.to_string(), name);
            assert_eq!(encoding.width(), width);
            assert_eq!(encoding.encode(SnowflakeId::MAX).as_bytes().len(), width);
        }
    }

    #[test]
    fn a_text_prints_as_it_is() {
        let text = Encoding::Base62.encode(id(62));
        assert_eq!(text.to_string(), "00000000010");
        assert_eq!(format!("{text:>13}"), "  00000000010");
        assert_eq!(format!("{text:?}"), "IdText(00000000010)");
        assert_eq!(text.as_ref(), "00000000010");
    }
}
