//! Which brackets of a text belong together.
//!
//! The brackets lie side by side, each with its kind and its side (see [`grammar`](super::grammar)). In a text that is JSON some
//! opening bracket is followed by one that closes it. Taking out all such pairs leaves shorter brackets of which the same
//! holds, so that there are no more rounds than brackets are nested:
//!
//! ```text
//! [ { } { } [ { } ] ]
//! [         [     ] ]
//! [                 ]
//! ```
//!
//! A round is a few operations on words that have a bit per bracket. Where taking out bits is slow, or brackets are nested
//! deeply, they are visited one by one instead.

use super::{Lanes, WIDTH};

/// The brackets of a text.
#[derive(Debug, Default)]
pub(super) struct Brackets {
    count: usize,
    /// The byte of each, with its side.
    bytes: Vec<u8>,
    /// Those that are open while one after the other is visited.
    ///
    /// ```text
    /// 0  0  …  0  {  [  {  ?  ?  ?
    /// 0        63          ^ next
    /// ```
    ///
    /// As many places as are visited in a row are kept free on both sides: brackets are pushed and popped without asking
    /// whether there is room, or whether one is open. A zero is no bracket.
    open: Vec<u8>,
}

/// What an opening bracket has and a closing one has not, and the other way round.
const OPENS: u8 = b'{' & !b'}';
const CLOSES: u8 = b'}' & !b'{';
const CURLY: u8 = 0x20;

/// As many places as a byte can count: enough for a row of brackets of either sort.
const WINDOW: usize = 256;

/// With so many brackets open, there is little room in a word for others.
const MOST_OPEN: u32 = 32;

impl Brackets {
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds the brackets of a block of tokens.
    #[inline(always)]
    pub fn add<L: Lanes>(&mut self, lanes: L, block: L::Block, brackets: u64) {
        if self.count + 2 * WIDTH > self.bytes.len() {
            self.grow();
        }
        lanes.gather(
            block,
            brackets,
            self.bytes[self.count..].first_chunk_mut().expect("it was made longer"),
        );
        self.count += brackets.count_ones() as usize;
    }

    #[cold]
    fn grow(&mut self) {
        let room = (2 * self.count).max(8 * WIDTH);
        self.bytes.resize(room, 0);
    }

    /// Whether the first bracket is closed by the last token, and inside of them each closes one of its kind and side.
    #[inline(always)]
    pub fn belong_together<L: Lanes>(&mut self, lanes: L, last_token: u8) -> bool {
        if self.count < 2 || last_token != b'}' {
            return false;
        }
        let by_rounds = if L::GATHERS_BITS { self.by_rounds(lanes) } else { None };
        by_rounds.unwrap_or_else(|| self.one_by_one())
    }

    /// `None` if too many are open.
    #[inline(always)]
    fn by_rounds<L: Lanes>(&self, lanes: L) -> Option<bool> {
        let end = self.count - 1;
        let mut at = 1;
        // Those that are still open come first.
        let (mut count, mut opens, mut curly, mut side) = (0, 0, 0, 0);
        while at < end {
            let block = lanes.load(self.bytes[at..].first_chunk().expect("there is room behind the last"));
            let new = (end - at).min(WIDTH - count as usize);
            opens |= lanes.have_bits(block, OPENS) << count;
            curly |= lanes.have_bits(block, CURLY) << count;
            side |= lanes.have_bit_7(block) << count;
            at += new;
            count += new as u32;
            loop {
                // From here on only as many bits count as there are brackets.
                let all = u64::MAX >> (WIDTH as u32 - count);
                let pairs = opens & !(opens >> 1) & all >> 1;
                if pairs == 0 {
                    break;
                }
                let differ = (curly ^ curly >> 1) | (side ^ side >> 1);
                if differ & pairs != 0 {
                    return Some(false);
                }
                let left = all & !(pairs | pairs << 1);
                opens = lanes.gather_bits(opens, left);
                curly = lanes.gather_bits(curly, left);
                side = lanes.gather_bits(side, left);
                count = left.count_ones();
                if count == 0 {
                    break;
                }
            }
            let all = u64::MAX.checked_shr(WIDTH as u32 - count).unwrap_or(0);
            opens &= all;
            if opens != all {
                return Some(false);
            }
            if count > MOST_OPEN {
                return None;
            }
            curly &= all;
            side &= all;
        }
        Some(count == 0)
    }

    /// There is no branch that depends on which brackets there are.
    fn one_by_one(&mut self) -> bool {
        if self.open.len() < 2 * WINDOW {
            self.open.resize(2 * WINDOW, 0);
        }
        let mut depth = 0;
        for row in self.bytes[1..self.count - 1].chunks(WIDTH) {
            if depth + WINDOW > self.open.len() {
                self.open.resize(2 * self.open.len(), 0);
            }
            let window: &mut [u8; WINDOW] = self.open[depth..].first_chunk_mut().expect("it was made longer");
            let mut next = WIDTH as u8;
            let mut wrong = 0;
            for bracket in row {
                let closes = bracket & CLOSES;
                window[usize::from(next)] = *bracket;
                next = next.wrapping_sub(closes / CLOSES);
                wrong |= window[usize::from(next)] ^ bracket ^ closes;
                next = next.wrapping_add(u8::from(closes == 0));
            }
            if wrong & !OPENS != 0 {
                self.open[..WIDTH].fill(0);
                return false;
            }
            depth = (depth + usize::from(next)) - WIDTH;
        }
        depth == 0
    }
}
