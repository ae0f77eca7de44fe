//! Goes from token to token of a text that was scanned, or of one of its lines.

use super::{Structure, WIDTH};

/// The tokens of a text, which may be a line of those that were scanned. What numbers one is up to whoever has them; the end of the text counts as one, too.
pub(crate) trait Tokens: Copy {
    /// Whether each token is known to stand where it may.
    const ARE_CHECKED: bool;

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

/// Tokens side by side, numbered as they were scanned.
#[derive(Clone, Copy)]
pub(crate) struct Gathered<'s> {
    pub(super) first: usize,
    /// Up to the last, and so are the places.
    pub(super) bytes: &'s [u8],
    pub(super) places: &'s [u16],
    pub(super) later: &'s [u32],
    pub(super) structure: &'s Structure,
    /// Where the text starts and ends in what was scanned.
    pub(super) start: usize,
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
    const ARE_CHECKED: bool = true;

    #[inline]
    fn first(self) -> usize {
        self.first
    }

    #[inline]
    fn after(self, token: usize) -> usize {
        token + 1
    }

    #[inline]
    fn place(self, token: usize) -> usize {
        let is_inside = token < self.places.len();
        let place = if is_inside { place_of(self.places, self.later, token) } else { self.end };
        place - self.start
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
    /// What was scanned, up to the end of the text.
    pub(super) text: &'s [u8],
    /// Where the text starts in it.
    pub(super) start: usize,
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
    const ARE_CHECKED: bool = false;

    #[inline]
    fn first(self) -> usize {
        self.from(self.start)
    }

    #[inline]
    fn after(self, token: usize) -> usize {
        self.from(token + 1)
    }

    #[inline]
    fn place(self, token: usize) -> usize {
        token.min(self.text.len()) - self.start
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
