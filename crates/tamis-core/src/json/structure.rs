//! The tokens of a JSON text, and whether the text is JSON at all, sixty-four bytes at a time.
//!
//! The idea is that of simdjson (Langdale and Lemire, 2019): compare a block of bytes with the characters that matter,
//! keep a bit per byte, and let a few operations on words do what a parser does byte by byte. Two passes:
//!
//! ```text
//! text       { " a " :   [ 1 5 , 2 ] }
//! quotes     . 1 . 1 . . . . . . . . .
//! inside     . 1 1 . . . . . . . . . .     prefix_xor(quotes): from the opening quote to before the closing one
//! scalars    . . . . . . . 1 1 . 1 . .     what is neither inside, nor a separator, nor white
//! tokens     1 1 . . 1 . 1 1 . 1 1 1 1     separators, and where strings and scalars start
//!
//! bytes      { " : [ 1 , 2 ] }             the same side by side, each with its place in the text
//! ```
//!
//! 1. *Bytes.* Blocks of the text become tokens. What strings and scalars consist of is checked here: control characters
//!    and escapes, [numbers](numbers), literals.
//! 2. *Tokens.* Blocks of tokens are checked against the [grammar](grammar): which may follow which, and which brackets belong
//!    together. White space is gone, and most bytes are, so this costs much less than on the text.
//!
//! A text that is refused is read again, byte by byte, by [`ByteCursor`](super::cursor::ByteCursor), which says what is wrong
//! and where. So nothing here makes an error message, and the two must agree on what is JSON: the tests compare them.

mod brackets;
mod grammar;
mod numbers;

use super::cursor::escape;
use super::simd::{self, Found, Job, Lanes};
use brackets::Brackets;
use grammar::MARGIN;
use numbers::Numbers;

const WIDTH: usize = 64;

/// Longer texts are read byte by byte: tokens take up to ten times the memory of the text.
const MOST_BYTES: usize = 1 << 28;

/// Room for more tokens than this is not kept for the next text.
const MOST_KEPT: usize = 1 << 20;

/// The tokens of one text. Its memory is used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Structure {
    count: usize,
    /// The first byte of each token: a separator, a quote, or how a scalar begins. There are margins around them.
    bytes: Vec<u8>,
    /// Where in the text each token is.
    places: Vec<u32>,
    /// By sixty-four tokens, those that are brackets.
    words: Vec<BracketWord>,
    brackets: Brackets,
    has_escapes: bool,
    /// With which the text was scanned.
    lanes: Option<Found>,
}

/// Which of sixty-four tokens are brackets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BracketWord {
    opening: u64,
    closing: u64,
}

/// What is looked at in what nobody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// It is JSON, or the text is refused.
    Checked,
    /// Its strings and brackets must end somewhere; whatever else is wrong with it may go unnoticed.
    Unchecked,
}

impl Structure {
    /// Finds the tokens of a text that is an object. `None` if it is none, if it is not UTF-8, or if this processor has no
    /// lanes; of unchecked texts only UTF-8 is promised.
    pub fn scan<'t>(&mut self, text: &'t [u8], skipped: Skipped) -> Option<&'t str> {
        let first = text.iter().position(|byte| !is_white(*byte))?;
        if text[first] != b'{' || text.len() >= MOST_BYTES {
            return None;
        }
        let lanes = *self.lanes.insert(Found::find()?);
        let scanned = match skipped {
            Skipped::Checked => lanes.run(Scan::<true> { text, into: self }),
            Skipped::Unchecked => lanes.run(Scan::<false> { text, into: self }),
        };
        match scanned? {
            // SAFETY: the scan saw every byte, and none was above 127.
            Bytes::Ascii => Some(unsafe { simd::ascii_text(text) }),
            Bytes::Other => std::str::from_utf8(text).ok(),
        }
    }

    /// The first byte of each token.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[MARGIN..][..self.count]
    }

    /// The place of each token.
    #[inline]
    pub fn places(&self) -> &[u32] {
        &self.places[..self.count]
    }

    /// The token that closes a bracket.
    pub fn closing_of(&self, open: usize) -> Option<usize> {
        self.lanes?.run(ClosingOf { words: &self.words, open })
    }

    /// Whether some string of the text has an escape.
    #[inline]
    pub fn has_escapes(&self) -> bool {
        self.has_escapes
    }

    /// Whether it has so much memory that it should not be kept for the next text.
    pub fn is_large(&self) -> bool {
        self.places.capacity() > MOST_KEPT
    }

    /// Makes room for a block full of tokens.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.count + WIDTH > self.places.len() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let room = (2 * self.count).max(16 * WIDTH);
        self.bytes.resize(room + 3 * MARGIN, b' ');
        self.places.resize(room, 0);
    }
}

/// Which bytes a text has.
enum Bytes {
    Ascii,
    Other,
}

struct Scan<'s, 't, const CHECKED: bool> {
    text: &'t [u8],
    into: &'s mut Structure,
}

/// What a block leaves to the next: mostly the bit that was shifted out of a word, or carried.
#[derive(Default)]
struct Carries {
    is_escaped: u64,
    /// All ones inside a string.
    in_string: u64,
    scalar: u64,
}

impl<const CHECKED: bool> Job for Scan<'_, '_, CHECKED> {
    /// `None` if the text is refused.
    type Output = Option<Bytes>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<Bytes> {
        let Self { text, into } = self;
        let (whole, tail) = text.as_chunks::<WIDTH>();
        let mut padded = [b' '; WIDTH];
        padded[..tail.len()].copy_from_slice(tail);
        let last = if tail.is_empty() { &[][..] } else { std::slice::from_ref(&padded) };

        into.count = 0;
        let mut carries = Carries::default();
        let mut numbers = Numbers::default();
        let (mut wrong, mut escapes, mut escapes_until) = (0, 0, 0);
        let mut seen = lanes.load(&[0; WIDTH]);
        for (number, bytes) in whole.iter().chain(last).enumerate() {
            let start = number * WIDTH;
            let block = lanes.load(bytes);
            seen = lanes.either(seen, block);

            let backslash = lanes.equal(block, b'\\');
            let escaped = escaped(backslash, &mut carries.is_escaped);
            let quotes = lanes.equal(block, b'"') & !escaped;
            let inside = lanes.prefix_xor(quotes) ^ carries.in_string;
            carries.in_string = ((inside as i64) >> 63) as u64;
            let outside = !(inside | quotes);

            let separators = lanes.separators(block) & outside;
            let white = lanes.white(block) & outside;
            let scalar = outside & !(separators | white);
            let after_scalar = shifted(scalar, &mut carries.scalar);
            let scalar_starts = scalar & !after_scalar;
            let tokens = separators | quotes & inside | scalar_starts;
            into.make_room();
            let Structure { bytes, places, count, .. } = &mut *into;
            let bytes = bytes[MARGIN + *count..].first_chunk_mut().expect("it was made longer");
            let places = places[*count..].first_chunk_mut().expect("it was made longer");
            lanes.gather(block, tokens, bytes);
            lanes.gather_places(tokens, start as u32, places);
            *count += tokens.count_ones() as usize;

            escapes |= backslash & inside;
            if !CHECKED {
                continue;
            }
            wrong |= lanes.below(block, b' ') & !white;
            if backslash & inside != 0 {
                let mut escapes = backslash & inside & !escaped;
                while escapes != 0 {
                    let at = start + escapes.trailing_zeros() as usize;
                    escapes &= escapes - 1;
                    if at >= escapes_until {
                        escapes_until = escape(text, at).ok()?.1;
                    }
                }
            }
            if scalar | after_scalar != 0 {
                wrong |= numbers.wrong(lanes, block, scalar, scalar_starts, text, start);
            }
        }
        into.make_room();
        into.has_escapes = escapes != 0;
        let is_refused = wrong != 0 || !grammar::accepts::<L, CHECKED>(lanes, into);
        if is_refused {
            return None;
        }
        Some(if lanes.have_bit_7(seen) == 0 { Bytes::Ascii } else { Bytes::Other })
    }
}

/// Looks for the token that closes a bracket. No lanes are needed, but the instruction that counts bits.
struct ClosingOf<'s> {
    words: &'s [BracketWord],
    open: usize,
}

impl Job for ClosingOf<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<L: Lanes>(self, _: L) -> Option<usize> {
        let Self { words, open } = self;
        let mut depth = 0;
        let mut from = u64::MAX << (open % WIDTH);
        for (number, word) in words.iter().enumerate().skip(open / WIDTH) {
            let (opening, closing) = (word.opening & from, word.closing & from);
            from = u64::MAX;
            if closing.count_ones() >= depth {
                let (mut left, mut closed) = (closing, 0);
                while left != 0 {
                    let before = (left & left.wrapping_neg()) - 1;
                    closed += 1;
                    if depth + (opening & before).count_ones() == closed {
                        return Some(number * WIDTH + left.trailing_zeros() as usize);
                    }
                    left &= left - 1;
                }
            }
            depth = depth + opening.count_ones() - closing.count_ones();
        }
        None
    }
}

/// Bytes that are escaped by a backslash before them, which is not escaped itself.
#[inline(always)]
fn escaped(backslash: u64, carry: &mut u64) -> u64 {
    if backslash == 0 {
        return std::mem::take(carry);
    }
    // Of a run of backslashes every other one escapes. Runs that start at an odd place are found by adding them to
    // the backslashes: the carry leaves a bit behind their ends.
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let backslash = backslash & !*carry;
    let follows = backslash << 1 | *carry;
    let odd_starts = backslash & !EVEN & !follows;
    let (sequences, overflow) = odd_starts.overflowing_add(backslash);
    *carry = overflow as u64;
    (EVEN ^ sequences << 1) & follows
}

/// What comes after each.
#[inline(always)]
fn shifted(bits: u64, carry: &mut u64) -> u64 {
    bits << 1 | std::mem::replace(carry, bits >> 63)
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests;
