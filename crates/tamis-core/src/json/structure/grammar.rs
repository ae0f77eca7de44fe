//! Which token may follow which, and which brackets belong together.
//!
//! Tokens lie side by side, so that a load from one byte earlier or later shows the neighbours of sixty-four tokens at once.
//! Nearly all of the grammar is about neighbours. The rest is whether commas are between the members of an object or between the
//! elements of an array. Neighbours say that too, on either side of a value:
//!
//! ```text
//! what is before a value     { "a" : V        [ V    , V        member, element, element
//! what is after it           V , "b" :        V ]    V , V
//! ```
//!
//! Around a string or a scalar both must be the same. Around an object or an array they are as far apart as its brackets: each
//! bracket has its side as a bit, next to its kind, and brackets belong together if both are equal. Only brackets are visited
//! one by one.

use super::brackets::{BracketBits, CURLY};
use super::tokens::place_of;
use super::{BracketWord, Lanes, Structure, WIDTH, is_white, shifted};

/// So many bytes before the first token and behind the last are no tokens.
pub(super) const MARGIN: usize = WIDTH;

/// Whether the tokens are those of one object, or of as many as there are lines. Finds the brackets, and where lines start.
#[inline(always)]
pub(super) fn accepts<L: Lanes>(lanes: L, structure: &mut Structure, text: &[u8]) -> bool {
    let count = structure.count;
    structure.bytes[MARGIN + count..][..2 * WIDTH].fill(b' ');
    if count < 2 || structure.bytes[MARGIN + count - 1] != b'}' {
        return false;
    }
    let by_bits = if L::GATHERS_BITS { accepts_by::<L, true>(lanes, structure, text) } else { None };
    by_bits.or_else(|| accepts_by::<L, false>(lanes, structure, text)).unwrap_or(false)
}

/// The same, with the brackets as bits or one by one; `None` if there are too many for that.
#[inline(always)]
fn accepts_by<L: Lanes, const BY_BITS: bool>(
    lanes: L,
    structure: &mut Structure,
    text: &[u8],
) -> Option<bool> {
    let Structure { count, line_starts, bytes, places, later, words, brackets, .. } = structure;
    let count = *count;
    let mut bits = BracketBits::default();
    brackets.clear();
    words.clear();
    let (mut wrong, mut lines, mut starts_line) = (0, 0, 1);
    for first in (0..count).step_by(WIDTH) {
        let near = Neighbours { bytes: bytes[first..].first_chunk().expect("there are margins") };
        let block = near.at(lanes, 0);
        let opening = lanes.equal_with_bit_5(block, b'{');
        let closing = lanes.equal_with_bit_5(block, b'}');
        words.push(BracketWord { opening, closing });
        let last: u64 = if first + WIDTH < count { 0 } else { 1 << (count - 1 - first) };
        let tokens = last.wrapping_sub(1) | last;
        let found = near.check(lanes, block, opening, closing, tokens, last);
        wrong |= found.wrong;
        let mut literals = found.literals;
        while literals != 0 {
            let at = place_of(places, later, first + literals.trailing_zeros() as usize);
            wrong |= u64::from(!is_literal(&text[at..]));
            literals &= literals - 1;
        }
        let mut line_ends = found.line_ends;
        while line_ends != 0 {
            let start = first + line_ends.trailing_zeros() as usize + 1;
            match line_starts.get_mut(lines) {
                Some(line_start) => *line_start = start as u32,
                None => wrong = u64::MAX,
            }
            lines += 1;
            line_ends &= line_ends - 1;
        }
        let outermost = last | found.line_ends | shifted(found.line_ends, &mut starts_line);
        let inner = (opening | closing) & !outermost;
        if BY_BITS {
            let curly = lanes.have_bits(block, CURLY);
            bits.add(lanes, inner, opening, curly, found.members)?;
        } else {
            brackets.add(lanes, lanes.with_bit_7(block, found.members), inner);
        }
    }
    wrong |= u64::from(lines != line_starts.len());
    Some(wrong == 0 && if BY_BITS { bits.belong_together(lanes) } else { brackets.belong_together() })
}

/// Whether a text begins with a literal, and that ends there. Inlined: calls cost the loop its registers.
#[inline(always)]
fn is_literal(text: &[u8]) -> bool {
    let after = match text.first_chunk() {
        Some(b"true" | b"null") => text.get(4),
        Some(b"fals") if text.get(4) == Some(&b'e') => text.get(5),
        _ => return false,
    };
    after.is_none_or(|next| is_white(*next) || matches!(next, b',' | b']' | b'}'))
}

/// A block of tokens, and those around it.
struct Neighbours<'b> {
    bytes: &'b [u8; 3 * WIDTH],
}

struct Found {
    /// Tokens that cannot stand where they stand.
    wrong: u64,
    /// Brackets on the other side of which there is an object.
    members: u64,
    /// Scalars that are no numbers.
    literals: u64,
    /// The last tokens of lines, but for the last line.
    line_ends: u64,
}

impl Neighbours<'_> {
    /// The tokens of the block, or so many before or after them.
    #[inline(always)]
    fn at<L: Lanes>(&self, lanes: L, offset: isize) -> L::Block {
        lanes.load(self.bytes[MARGIN.wrapping_add_signed(offset)..].first_chunk().expect("it is near"))
    }

    #[inline(always)]
    fn check<L: Lanes>(
        &self,
        lanes: L,
        block: L::Block,
        opening: u64,
        closing: u64,
        tokens: u64,
        last: u64,
    ) -> Found {
        let string = lanes.equal(block, b'"');
        let colon = lanes.equal(block, b':');
        let comma = lanes.equal(block, b',');
        let curly_opening = lanes.equal(block, b'{');
        let scalar = tokens & !(opening | closing | colon | comma | string);

        let before = self.at(lanes, -1);
        let before_that = self.at(lanes, -2);
        let after_colon = lanes.equal(before, b':');
        let may_be_after_name =
            lanes.equal(before, b'"') & (lanes.equal(before_that, b'{') | lanes.equal(before_that, b','));
        let after = self.at(lanes, 1);
        let before_colon = lanes.equal(after, b':');
        let before_comma = lanes.equal(after, b',');
        let before_closing = lanes.equal_with_bit_5(after, b'}');
        let before_curly = lanes.equal(after, b'}');
        let before_name = lanes.equal(after, b'"') & lanes.equal(self.at(lanes, 2), b':');
        let before_member = before_comma & lanes.equal(self.at(lanes, 3), b':') | before_curly;
        let before_value = !(before_colon | before_comma | before_closing);

        let plain = scalar | string & !before_colon;
        let mut wrong = colon & !may_be_after_name
            | curly_opening & !(before_curly | before_name)
            | (opening & !curly_opening) & !(before_value | before_closing & !before_curly)
            | (colon | comma) & !before_value;
        // No object follows another one in JSON.
        let line_ends = lanes.equal(block, b'}') & lanes.equal(after, b'{');
        wrong |= (plain | closing) & !(before_comma | before_closing | last | line_ends);
        wrong |= plain & (after_colon ^ before_member);
        let literals = scalar & !(lanes.digits(block) | lanes.equal(block, b'-'));
        Found { wrong, members: opening & after_colon | closing & before_member, literals, line_ends }
    }
}
