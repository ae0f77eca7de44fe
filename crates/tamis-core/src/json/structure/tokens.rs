//! Goes from token to token of a text that was scanned.

use super::{Structure, WIDTH};

/// The tokens of a text. What numbers one is up to whoever has them; the end of the text counts as one, too.
pub(crate) trait Tokens: Copy {
    fn first(self) -> usize;

    /// The token after another one.
    fn after(self, token: usize) -> usize;

    /// Where a token is in the text.
    fn place(self, token: usize) -> usize;

    /// The first byte of a token; `None` at the end.
    fn byte(self, token: usize) -> Option<u8>;

    /// The token that closes a bracket.
    fn closing_of(self, open: usize) -> Option<usize>;
}

/// Tokens side by side, which are numbered from 0.
#[derive(Clone, Copy)]
pub(crate) struct Gathered<'s> {
    pub(super) bytes: &'s [u8],
    pub(super) places: &'s [u16],
    pub(super) later: &'s [u32],
    pub(super) structure: &'s Structure,
    /// The length of the text.
    pub(super) end: usize,
}

/// The place of a token in the text.
#[inline(always)]
pub(super) fn place_of(places: &[u16], later: &[u32], token: usize) -> usize {
    let place = usize::from(places[token]);
    if later.is_empty() {
        return place;
    }
    place + (later.partition_point(|first| *first as usize <= token) << u16::BITS)
}

impl Tokens for Gathered<'_> {
    #[inline]
    fn first(self) -> usize {
        0
    }

    #[inline]
    fn after(self, token: usize) -> usize {
        token + 1
    }

    #[inline]
    fn place(self, token: usize) -> usize {
        if token < self.places.len() { place_of(self.places, self.later, token) } else { self.end }
    }

    #[inline]
    fn byte(self, token: usize) -> Option<u8> {
        self.bytes.get(token).copied()
    }

    #[inline]
    fn closing_of(self, open: usize) -> Option<usize> {
        self.structure.closing_of(open)
    }
}

/// Tokens by a bit per byte of the text, which are numbered by their places.
#[derive(Clone, Copy)]
pub(crate) struct Marked<'s> {
    pub(super) text: &'s [u8],
    pub(super) marks: &'s [u64],
    pub(super) structure: &'s Structure,
}

impl Marked<'_> {
    /// The first token from a place on.
    #[inline]
    fn from(self, place: usize) -> usize {
        let mut at = place / WIDTH;
        let Some(mut marks) = self.marks.get(at).map(|marks| marks & u64::MAX << (place % WIDTH)) else {
            return self.text.len();
        };
        while marks == 0 {
            at += 1;
            match self.marks.get(at) {
                Some(next) => marks = *next,
                None => return self.text.len(),
            }
        }
        at * WIDTH + marks.trailing_zeros() as usize
    }
}

impl Tokens for Marked<'_> {
    #[inline]
    fn first(self) -> usize {
        self.from(0)
    }

    #[inline]
    fn after(self, token: usize) -> usize {
        self.from(token + 1)
    }

    #[inline]
    fn place(self, token: usize) -> usize {
        token.min(self.text.len())
    }

    #[inline]
    fn byte(self, token: usize) -> Option<u8> {
        self.text.get(token).copied()
    }

    #[inline]
    fn closing_of(self, open: usize) -> Option<usize> {
        self.structure.closing_of(open)
    }
}
