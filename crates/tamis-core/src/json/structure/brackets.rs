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
//! A round is a few operations on [words](BracketBits) that have a bit per bracket. Where taking out bits is slow, or brackets
//! are nested deeply, they are [visited one by one](Brackets) instead.
//!
//! The brackets of the event itself are not among them.

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
pub(super) const CURLY: u8 = 0x20;

/// As many places as a byte can count: enough for a row of brackets of either sort.
const WINDOW: usize = 256;

/// The brackets of a text that are not taken out yet, a bit each. They stay in registers.
#[derive(Default)]
pub(super) struct BracketBits {
    count: u32,
    opens: u64,
    curly: u64,
    side: u64,
}

impl BracketBits {
    /// Adds those of the chosen tokens; `None` if there are too many that cannot be taken out yet.
    #[inline(always)]
    pub fn add<L: Lanes>(&mut self, lanes: L, chosen: u64, opens: u64, curly: u64, side: u64) -> Option<()> {
        let new = chosen.count_ones();
        if self.count + new > u64::BITS {
            self.take_out(lanes);
            if self.count + new > u64::BITS {
                return None;
            }
        }
        // A shift by sixty-four places is none, and then nothing is added.
        self.opens |= lanes.gather_bits(opens, chosen).wrapping_shl(self.count);
        self.curly |= lanes.gather_bits(curly, chosen).wrapping_shl(self.count);
        self.side |= lanes.gather_bits(side, chosen).wrapping_shl(self.count);
        self.count += new;
        Some(())
    }

    /// Whether each closes one of its kind and side, and all are closed.
    #[inline(always)]
    pub fn belong_together<L: Lanes>(mut self, lanes: L) -> bool {
        self.take_out(lanes);
        self.count == 0
    }

    /// Takes out pairs until there are no more, or one is wrong: that one stays.
    #[inline(always)]
    fn take_out<L: Lanes>(&mut self, lanes: L) {
        loop {
            let pairs = self.opens
                & !(self.opens >> 1)
                & (u64::MAX.checked_shr(u64::BITS + 1 - self.count)).unwrap_or(0);
            let differ = (self.curly ^ self.curly >> 1) | (self.side ^ self.side >> 1);
            let pairs = pairs & !differ;
            if pairs == 0 {
                return;
            }
            let all = u64::MAX >> (u64::BITS - self.count);
            let left = all & !(pairs | pairs << 1);
            self.opens = lanes.gather_bits(self.opens, left);
            self.curly = lanes.gather_bits(self.curly, left);
            self.side = lanes.gather_bits(self.side, left);
            self.count = left.count_ones();
        }
    }
}

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

    /// Whether each bracket closes one of its kind and side, and all are closed.
    /// There is no branch that depends on which brackets there are.
    #[inline(never)]
    pub fn belong_together(&mut self) -> bool {
        if self.open.len() < 2 * WINDOW {
            self.open.resize(2 * WINDOW, 0);
        }
        let mut depth = 0;
        for row in self.bytes[..self.count].chunks(WIDTH) {
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
