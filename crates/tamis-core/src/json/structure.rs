//! Where the strings, the brackets and the separators of a JSON text are, and whether the text is JSON at all,
//! sixty-four bytes at a time.
//!
//! The idea is that of simdjson (Langdale and Lemire, 2019): compare a block of bytes with the characters that matter,
//! keep a bit per byte, and let a few operations on words do what a parser does byte by byte. Here the grammar is
//! checked that way too. Three tricks carry it; each carries a bit into the next block:
//!
//! ```text
//! text           { " a " :   [ 1 , 2 ] }
//! quotes         . 1 . 1 . . . . . . . .
//! inside         . 1 1 . . . . . . . . .     prefix_xor(quotes): from the opening quote to before the closing one
//! white          . . . . . 1 . . . . . .
//! after `:`      . . . . . 1 . . . . . .     shifted by one
//!  + white       . . . . . . 1 . . . . .     the carry runs through white space: what follows the `:`
//! ```
//!
//! 1. *What follows.* Adding the white space to the places after some tokens moves each to the next token. That
//!    every token is followed by one that may follow it is the whole grammar of a list.
//! 2. *Where a run ends.* Adding the start of a run to the run leaves a bit behind its end: how the opening quote of a
//!    name finds its closing one, and a fraction its last digit.
//! 3. *Objects or arrays.* Only brackets are visited one by one. A byte per open bracket says which kind it is, and
//!    the bits between two brackets get that of the innermost.
//!
//! Most numbers have no exponent and most blocks no literal; what only these need is looked at only where there is one.
//!
//! A text that is refused is read again, byte by byte, by [`Cursor`](super::cursor::Cursor), which says what is wrong and
//! where. So nothing here makes an error message, and the two must agree on what is JSON: the tests compare them.

use super::cursor::escape;
use super::simd::{self, Job, Lanes};

const WIDTH: usize = 64;

/// The marks of one text. Its memory is used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Structure {
    blocks: Vec<Marks>,
    /// The kinds of brackets that are open while a text is scanned.
    kinds: Vec<u8>,
    has_escapes: bool,
}

/// What is where in sixty-four bytes.
#[derive(Clone, Copy, Debug)]
struct Marks {
    /// Quotes that begin or end a string.
    quotes: u64,
    /// Brackets, colons and commas outside strings.
    separators: u64,
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
    /// Marks a text that is an object. `None` if it is none, if it is not UTF-8, or if this processor has no lanes;
    /// of unchecked texts only UTF-8 is promised.
    pub fn scan<'t>(&mut self, text: &'t [u8], skipped: Skipped) -> Option<&'t str> {
        let first = text.iter().position(|byte| !is_white(*byte))?;
        if text[first] != b'{' || text.len() >= u32::MAX as usize {
            return None;
        }
        self.blocks.clear();
        self.has_escapes = false;
        let scanned = match skipped {
            Skipped::Checked => simd::run(Scan::<true> { text, into: self }).ok()?,
            Skipped::Unchecked => simd::run(Scan::<false> { text, into: self }).ok()?,
        };
        match scanned? {
            // SAFETY: the scan saw every byte, and none was above 127.
            Bytes::Ascii => Some(unsafe { simd::ascii_text(text) }),
            Bytes::Other => std::str::from_utf8(text).ok(),
        }
    }

    /// Whether some string of the text has an escape.
    pub fn has_escapes(&self) -> bool {
        self.has_escapes
    }

    /// The next quote that begins or ends a string, from a place on.
    #[inline]
    pub fn next_quote(&self, from: usize) -> Option<usize> {
        self.next(from, |marks| marks.quotes)
    }

    /// The next bracket, colon or comma outside strings, from a place on.
    #[inline]
    pub fn next_separator(&self, from: usize) -> Option<usize> {
        self.next(from, |marks| marks.separators)
    }

    #[inline]
    fn next(&self, from: usize, which: impl Fn(&Marks) -> u64) -> Option<usize> {
        let mut at = from / WIDTH;
        let mut bits = which(self.blocks.get(at)?) & (u64::MAX << (from % WIDTH));
        while bits == 0 {
            at += 1;
            bits = which(self.blocks.get(at)?);
        }
        Some(at * WIDTH + bits.trailing_zeros() as usize)
    }

    /// The bracket that closes the one at a place.
    pub fn closing_of(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        let mut mask = u64::MAX << (open % WIDTH);
        for (at, marks) in self.blocks.iter().enumerate().skip(open / WIDTH) {
            let (opening, closing) = (marks.opening & mask, marks.closing & mask);
            mask = u64::MAX;
            if closing.count_ones() < depth {
                depth = depth + opening.count_ones() - closing.count_ones();
                continue;
            }
            let mut left = closing;
            while left != 0 {
                let before = (left & left.wrapping_neg()) - 1;
                let inside = depth + (opening & before).count_ones() - (closing & before).count_ones();
                if inside == 1 {
                    return Some(at * WIDTH + left.trailing_zeros() as usize);
                }
                left &= left - 1;
            }
            depth = depth + opening.count_ones() - closing.count_ones();
        }
        None
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
    literal: u64,
    digit: u64,
    dot: u64,
    first_sign: u64,
    first_zero: u64,
    fraction: u64,
    exponent: u64,
    exponent_sign: u64,
    power: u64,
    /// Whether one of these three is not zero.
    in_exponent: u64,
    name: u64,
    names: u64,
    values: u64,
    separators: u64,
    name_ends: u64,
    value_ends: u64,
}

/// The brackets that are open.
///
/// ```text
/// kinds    NONE  NONE  …  NONE  CURLY  SQUARE  CURLY  ?  ?  ?
///           0                64                  ^ innermost
/// ```
///
/// As many places as a block has bytes are kept free on both sides of the innermost: brackets are pushed and popped
/// without asking whether there is room, or whether one is open.
struct Open<'k> {
    kinds: &'k mut Vec<u8>,
    innermost: usize,
}

/// Kinds of brackets: the lowest bit is that of an object.
const CURLY: u8 = 1;
const NONE: u8 = 2;

/// As many places as a byte can count: enough for a block full of brackets of either sort.
const WINDOW: usize = 256;

/// What the brackets of a block were found to be.
struct Brackets {
    /// What is directly inside an object.
    in_object: u64,
    /// Not zero if a bracket closes another kind than is open, or none.
    wrong: u64,
    /// Whether all were closed at some place.
    is_over: bool,
}

impl<'k> Open<'k> {
    fn new(kinds: &'k mut Vec<u8>) -> Self {
        if kinds.len() < 2 * WINDOW {
            kinds.resize(2 * WINDOW, NONE);
        }
        kinds[..=WIDTH].fill(NONE);
        Self { kinds, innermost: WIDTH }
    }

    #[inline(always)]
    fn depth(&self) -> usize {
        self.innermost - WIDTH
    }

    #[inline(always)]
    fn is_object(&self) -> u64 {
        u64::from(self.kinds[self.innermost] & CURLY)
    }

    /// Opens and closes the brackets of a block, without a branch that depends on which they are. Two at a time, of which
    /// the second may be none: how many there are is hard to predict.
    #[inline(always)]
    fn visit<L: Lanes>(&mut self, lanes: L, opening: u64, closing: u64, curly: u64) -> Brackets {
        let start = self.innermost - WIDTH;
        if start + WINDOW > self.kinds.len() {
            self.kinds.resize(2 * self.kinds.len(), NONE);
        }
        let window: &mut [u8; WINDOW] = self.kinds[start..].first_chunk_mut().expect("it was made longer");
        let mut at = WIDTH;
        let mut before = u64::from(window[at]);
        let mut in_object = 0u64.wrapping_sub(before & 1);
        let (mut changes, mut wrong, mut met) = (0, 0, 0);
        let mut left = opening | closing;
        while left != 0 {
            for _ in 0..2 {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                let kind = u64::from(curly & bit != 0);
                window[(at + 1) % WINDOW] = kind as u8;
                wrong |= if closing & bit != 0 { before ^ kind } else { 0 };
                at = at + usize::from(opening & bit != 0) - usize::from(closing & bit != 0);
                let after = u64::from(window[at % WINDOW]);
                met |= after;
                changes |= if (before ^ after) & 1 != 0 { bit } else { 0 };
                before = after;
            }
        }
        in_object ^= lanes.prefix_xor(changes);
        self.innermost = start + at;
        Brackets { in_object, wrong, is_over: met & u64::from(NONE) != 0 }
    }
}

impl<const CHECKED: bool> Job for Scan<'_, '_, CHECKED> {
    /// `None` if the text is refused.
    type Output = Option<Bytes>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<Bytes> {
        let Self { text, into } = self;
        let Structure { blocks, kinds, has_escapes } = into;
        blocks.reserve(text.len().div_ceil(WIDTH));
        let (whole, tail) = text.as_chunks::<WIDTH>();
        let mut padded = [b' '; WIDTH];
        padded[..tail.len()].copy_from_slice(tail);
        let last = if tail.is_empty() { &[][..] } else { std::slice::from_ref(&padded) };

        let mut carries = Carries::default();
        let mut open = Open::new(kinds);
        let mut escapes_until = 0;
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

            let opening = lanes.equal_with_bit_5(block, b'{') & outside;
            let closing = lanes.equal_with_bit_5(block, b'}') & outside;
            let colon = lanes.equal(block, b':') & outside;
            let comma = lanes.equal(block, b',') & outside;
            let separators = opening | closing | colon | comma;
            blocks.push(Marks { quotes, separators, opening, closing });
            *has_escapes |= backslash & inside != 0;
            if !CHECKED {
                continue;
            }

            let mut wrong = lanes.below(block, b' ') & inside;
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

            let white = lanes.white(block) & outside;
            let scalar = outside & !(separators | white);
            let after_scalar = if scalar | carries.scalar != 0 {
                let after = shifted(scalar, &mut carries.scalar);
                let starts = scalar & !after;
                let digit = lanes.digits(block) & scalar;
                let minus = lanes.equal(block, b'-') & scalar;
                let literal_starts = starts & !(digit | minus);
                let mut literals = literal_starts;
                while literals != 0 {
                    if !is_literal(&text[start + literals.trailing_zeros() as usize..]) {
                        return None;
                    }
                    literals &= literals - 1;
                }
                let number = scalar & run_ends_or_others(literal_starts, scalar, &mut carries.literal);
                wrong |= wrong_numbers(lanes, block, number, starts, digit, minus, &mut carries);
                after
            } else {
                0
            };

            let curly = lanes.have_bit_5(block);
            let (mut in_object, mut is_over) = (0u64.wrapping_sub(open.is_object()), false);
            let depth = open.depth();
            if opening | closing != 0 {
                let brackets = open.visit(lanes, opening, closing, curly);
                if brackets.wrong != 0 {
                    return None;
                }
                in_object = brackets.in_object;
                is_over = brackets.is_over;
            }
            let curly_opening = opening & curly;
            let curly_closing = closing & curly;
            let string_starts = quotes & inside;
            let value_starts = string_starts | (scalar & !after_scalar) | opening;
            let before_names = curly_opening | comma & in_object;
            let before_values = colon | comma & !in_object | opening & !curly_opening;

            let names = followers(before_names, white, &mut carries.names);
            wrong |= names & !(string_starts | curly_closing);
            let values = followers(before_values, white, &mut carries.values);
            wrong |= values & !(value_starts | closing & !curly_closing);
            wrong |= followers(colon | comma, white, &mut carries.separators) & closing;

            let name_ends = run_ends(names & string_starts, inside, &mut carries.name);
            wrong |= followers(name_ends, white, &mut carries.name_ends) ^ colon;
            let value_ends = closing | quotes & !inside & !name_ends;
            let after_values = shifted(value_ends, &mut carries.value_ends) | after_scalar & !scalar;
            wrong |= through_white(after_values, white, &mut carries.value_ends) & !(comma | closing);

            if wrong != 0 {
                return None;
            }
            if is_over {
                let end = all_closed(opening, closing, depth);
                if u64::MAX << end << 1 & !white != 0 {
                    return None;
                }
                // The marks of what follows do not matter, but its bytes do.
                let rest = text.get(start + WIDTH..).unwrap_or_default();
                return rest.iter().all(|byte| is_white(*byte)).then_some(kind_of(lanes.have_bit_7(seen)));
            }
        }
        (!CHECKED).then_some(kind_of(lanes.have_bit_7(seen)))
    }
}

/// Where the last of the brackets is closed that are open before a block.
fn all_closed(opening: u64, closing: u64, mut depth: usize) -> u32 {
    let mut left = opening | closing;
    loop {
        let at = left.trailing_zeros();
        depth = if opening >> at & 1 == 1 { depth + 1 } else { depth - 1 };
        if depth == 0 {
            return at;
        }
        left &= left - 1;
    }
}

fn kind_of(high: u64) -> Bytes {
    if high == 0 { Bytes::Ascii } else { Bytes::Other }
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

#[inline(always)]
fn shifted(bits: u64, carry: &mut u64) -> u64 {
    bits << 1 | std::mem::replace(carry, bits >> 63)
}

/// The tokens after some tokens of one byte, or after the last byte of others.
#[inline(always)]
fn followers(tokens: u64, white: u64, carry: &mut u64) -> u64 {
    through_white(shifted(tokens, carry), white, carry)
}

/// The places themselves, or where the white space that begins there ends. The carry is that of the tokens before the
/// places: a block that ends with a token does not end with white space.
#[inline(always)]
fn through_white(places: u64, white: u64, carry: &mut u64) -> u64 {
    let (sum, overflow) = places.overflowing_add(white);
    *carry |= overflow as u64;
    sum & !white
}

/// The places behind those runs that have a start.
#[inline(always)]
fn run_ends(starts: u64, runs: u64, carry: &mut u64) -> u64 {
    run_ends_or_others(starts, runs, carry) & !runs
}

/// The same, and all runs that have no start.
#[inline(always)]
fn run_ends_or_others(starts: u64, runs: u64, carry: &mut u64) -> u64 {
    let (sum, overflow) = runs.overflowing_add(starts | *carry);
    *carry = overflow as u64;
    sum
}

/// What cannot stand where it stands in a number. `number` are the bytes of all that begin like none of the
/// literals, `starts` the first bytes of these and of literals; `digit` and `minus` those of both.
#[inline(always)]
fn wrong_numbers<L: Lanes>(
    lanes: L,
    block: L::Block,
    number: u64,
    starts: u64,
    digit: u64,
    minus: u64,
    carries: &mut Carries,
) -> u64 {
    let (digit, minus, starts) = (digit & number, minus & number, starts & number);
    let zero = lanes.equal(block, b'0') & number;
    let dot = lanes.equal(block, b'.') & number;

    let after_digit = shifted(digit, &mut carries.digit);
    let after_dot = shifted(dot, &mut carries.dot);
    let after_first_sign = shifted(minus & starts, &mut carries.first_sign);
    let after_first_zero = shifted(zero & (starts | after_first_sign), &mut carries.first_zero);
    let fraction_ends = run_ends(after_dot & digit, digit, &mut carries.fraction);
    let mut wrong = (after_first_sign | after_dot) & !digit
        | dot & (!after_digit | fraction_ends)
        | after_first_zero & digit;

    // What else there is belongs to an exponent.
    let other = number & !(digit | dot) & !(minus & starts);
    if other | carries.in_exponent != 0 {
        let exponent = lanes.equal_with_bit_5(block, b'e') & other;
        let sign = (minus | lanes.equal(block, b'+')) & other;
        let after_exponent = shifted(exponent, &mut carries.exponent);
        let after_sign = shifted(sign, &mut carries.exponent_sign);
        let power_starts = (after_exponent | after_sign) & digit;
        let power_ends = run_ends(power_starts, digit, &mut carries.power);
        carries.in_exponent = carries.exponent | carries.exponent_sign | carries.power;
        wrong |= other & !(exponent | sign)
            | exponent & !after_digit
            | sign & !after_exponent
            | after_exponent & !(digit | sign)
            | after_sign & !digit
            | power_ends & (dot | exponent);
    }
    wrong
}

fn is_literal(text: &[u8]) -> bool {
    let words: [&[u8]; 3] = [b"true", b"false", b"null"];
    words.iter().any(|word| {
        text.strip_prefix(*word).is_some_and(|rest| {
            rest.first().is_none_or(|next| is_white(*next) || matches!(next, b',' | b']' | b'}'))
        })
    })
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests;
