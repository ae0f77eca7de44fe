//! The tokens of a JSON text, and whether the text is JSON at all, sixty-four bytes at a time.
//!
//! The idea is that of simdjson (Langdale and Lemire, 2019): compare a block of bytes with the characters that matter,
//! keep a bit per byte, and let a few operations on words do what a parser does byte by byte. Three passes, each of which calls
//! nothing for a block, so that what it needs stays in registers:
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
//! 1. *Bytes.* Blocks of the text become tokens. Strings are checked here for control characters.
//! 2. *Numbers.* Blocks that have [scalars](numbers) are checked for what these consist of.
//! 3. *Tokens.* Blocks of tokens are checked against the [grammar](grammar): which may follow which, and which brackets belong
//!    together. White space is gone, and most bytes are, so this costs much less than on the text.
//!
//! Of a text that is not to be checked, the bits are kept as they are: [tokens](tokens) are found among them when a reader
//! asks.
//!
//! A scan costs something before it sees the first byte, which counts where texts are short. So lines are scanned
//! [together](Structure::scan_lines), and each is read alone.
//!
//! A text that is refused is read again, byte by byte, by [`ByteCursor`](super::cursor::ByteCursor), which says what is wrong
//! and where. So nothing here makes an error message, and the two must agree on what is JSON: the tests compare them.

mod brackets;
mod grammar;
mod numbers;
mod tokens;

use std::ops::Range;

use super::cursor::escape;
use super::simd::{self, Found, Job, Lanes};
use brackets::Brackets;
use grammar::MARGIN;
use tokens::place_of;
pub(crate) use tokens::{Gathered, Marked, Tokens};

const WIDTH: usize = 64;

/// Longer texts are read byte by byte: tokens and brackets take up to ten times the memory of the text.
const MOST_BYTES: usize = 1 << 28;

/// As many bytes as places of two bytes tell apart.
const SEGMENT: usize = 1 << u16::BITS;

/// Room for more tokens than this is not kept for the next text, nor room for the marks of eight times as many bytes.
const MOST_KEPT: usize = 1 << 20;

/// The tokens of one text. Its memory is used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Structure {
    /// Of a text that was checked, how many tokens there are.
    count: usize,
    /// The first token of each line but the first.
    line_starts: Vec<u32>,
    /// The first byte of each token: a separator, a quote, or how a scalar begins. There are margins around them.
    bytes: Vec<u8>,
    /// Where each token is, in 65,536 bytes of the text. Two bytes a token: writing them is a large part of the scan.
    places: Vec<u16>,
    /// The first token of each 65,536 bytes but the first.
    later: Vec<u32>,
    /// By sixty-four tokens, those that are brackets; of a text that was not checked, by sixty-four bytes.
    words: Vec<BracketWord>,
    brackets: Brackets,
    /// By sixty-four bytes, where tokens are; of a text that was checked, where scalars are.
    marks: Vec<u64>,
    has_escapes: bool,
    /// With which the text was scanned.
    lanes: Option<Found>,
}

/// Which of sixty-four tokens, or bytes, are brackets.
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
        self.scan_lines(text, 1, skipped)
    }

    /// The same for a text of so many lines that are an object each. Whoever reads a line must find that its object ends where
    /// the line does: brackets may also be closed by those of another line.
    pub fn scan_lines<'t>(&mut self, text: &'t [u8], lines: usize, skipped: Skipped) -> Option<&'t str> {
        let first = text.iter().position(|byte| !is_white(*byte))?;
        if text[first] != b'{' || text.len() >= MOST_BYTES {
            return None;
        }
        let lanes = *self.lanes.insert(Found::find()?);
        self.line_starts.resize(lines - 1, 0);
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

    /// The tokens of a text that was checked.
    #[inline]
    pub fn gathered<'s>(&'s self, text: &str) -> Gathered<'s> {
        self.gathered_of(0..self.count, 0..text.len())
    }

    /// The tokens of one of the lines that were checked together; `line` is where in the text it is. `None` if its object is
    /// not in it, or not alone there.
    #[inline]
    pub fn gathered_line(&self, number: usize, line: Range<usize>) -> Option<Gathered<'_>> {
        let first = if number == 0 { 0 } else { self.line_starts[number - 1] as usize };
        let end = self.line_starts.get(number).map_or(self.count, |end| *end as usize);
        let place = |token| place_of(&self.places, &self.later, token);
        let is_inside = place(first) >= line.start && place(end - 1) < line.end;
        let is_alone =
            (first == 0 || place(first - 1) < line.start) && (end == self.count || place(end) >= line.end);
        (is_inside && is_alone).then(|| self.gathered_of(first..end, line))
    }

    #[inline]
    fn gathered_of(&self, tokens: Range<usize>, text: Range<usize>) -> Gathered<'_> {
        Gathered {
            first: tokens.start,
            bytes: &self.bytes[MARGIN..][..tokens.end],
            places: &self.places[..tokens.end],
            later: &self.later,
            structure: self,
            start: text.start,
            end: text.end,
        }
    }

    /// The tokens of a text that was not checked.
    #[inline]
    pub fn marked<'s>(&'s self, text: &'s str) -> Marked<'s> {
        Marked { text: text.as_bytes(), start: 0, marks: &self.marks, structure: self }
    }

    /// The tokens of one of the lines that were scanned together, in a text that was not checked. `None` if the line begins
    /// inside a string that another one does not end.
    #[inline]
    pub fn marked_line<'s>(&'s self, text: &'s str, line: Range<usize>) -> Option<Marked<'s>> {
        let bytes = &text.as_bytes()[..line.end];
        let white = bytes[line.start..].iter().take_while(|byte| is_white(**byte)).count();
        let tokens = Marked { text: bytes, start: line.start, marks: &self.marks, structure: self };
        (tokens.first() == line.start + white).then_some(tokens)
    }

    /// The token that closes a bracket.
    fn closing_of(&self, open: usize) -> Option<usize> {
        self.lanes?.run(ClosingOf { words: &self.words, open })
    }

    /// Whether some string of the text has an escape.
    #[inline]
    pub fn has_escapes(&self) -> bool {
        self.has_escapes
    }

    /// Whether it has so much memory that it should not be kept for the next text.
    pub fn is_large(&self) -> bool {
        self.places.capacity() > MOST_KEPT || self.marks.capacity() > 8 * MOST_KEPT / WIDTH
    }

    /// Makes room for the tokens of the 65,536 bytes from `start` on, and for what is written behind them. There are `count`
    /// tokens before them.
    #[inline(never)]
    fn begin_segment(&mut self, count: usize, start: usize, end: usize) {
        if start > 0 {
            self.later.push(count as u32);
        }
        let room = count + (end - start).min(SEGMENT) + WIDTH;
        if room > self.places.len() {
            let room = room.max(2 * self.places.len());
            self.bytes.resize(room + 3 * MARGIN, b' ');
            self.places.resize(room, 0);
        }
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
        let blocks = whole.len() + usize::from(!tail.is_empty());
        into.later.clear();
        // All of them are written.
        into.marks.resize(blocks, 0);
        if !CHECKED {
            into.words.resize(blocks, BracketWord { opening: 0, closing: 0 });
        }
        let mut carries = Carries::default();
        let (mut count, mut wrong, mut escapes) = (0, 0, 0);
        let mut seen = lanes.load(&[0; WIDTH]);
        for number in 0..blocks {
            let start = number * WIDTH;
            let block = match whole.get(number) {
                Some(bytes) => lanes.load(bytes),
                None => lanes.load_tail(tail),
            };
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
            escapes |= backslash & inside;
            if !CHECKED {
                let opening = lanes.equal_with_bit_5(block, b'{') & outside;
                let closing = lanes.equal_with_bit_5(block, b'}') & outside;
                into.marks[number] = tokens;
                into.words[number] = BracketWord { opening, closing };
                continue;
            }
            if start as u16 == 0 {
                into.begin_segment(count, start, text.len());
            }
            let bytes = into.bytes[MARGIN + count..].first_chunk_mut().expect("it was made longer");
            let places = into.places[count..].first_chunk_mut().expect("it was made longer");
            lanes.gather(block, tokens, bytes);
            lanes.gather_places(tokens, start as u16, places);
            count += tokens.count_ones() as usize;
            wrong |= lanes.below(block, b' ') & !white;
            into.marks[number] = scalar;
        }
        into.has_escapes = escapes != 0;
        if CHECKED {
            into.count = count;
            let is_sound = wrong == 0
                && numbers::are_sound(lanes, text, &into.marks)
                && (escapes == 0 || are_escapes_sound(text));
            if !is_sound || !grammar::accepts(lanes, into, text) {
                return None;
            }
        }
        Some(if lanes.have_bit_7(seen) == 0 { Bytes::Ascii } else { Bytes::Other })
    }
}

/// Whether the escapes of a text are those of JSON. All of them are in strings, or the text is refused in any case.
#[inline(never)]
fn are_escapes_sound(text: &[u8]) -> bool {
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'\\', &text[from..]) {
        match escape(text, from + at) {
            Ok((_, end)) => from = end,
            Err(_) => return false,
        }
    }
    true
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
