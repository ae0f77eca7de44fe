//! All stored prefixes of a text.
//!
//! Prefixes are sorted, and each is linked to the longest other one that is a prefix of it:
//!
//! ```text
//!   number   prefix   link
//!        0   a        –
//!        1   ab       0
//!        2   abc      1          text "abd": the last prefix not above it is number 2;
//!        3   b        –          the links from there lead over 1 and 0, which are the answer
//! ```
//!
//! Every stored prefix of a text is on the chain of links that starts at the last stored prefix not above the
//! text: it is itself not above it, and whatever lies between the two in the order starts with it.

/// A set of prefixes, each with the owners to report.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// The first eight bytes of each prefix as a number of the same order: most of a search happens here.
    keys: Vec<u64>,
    /// All prefixes, one after the other; number i is `bytes[starts[i]..starts[i + 1]]`.
    bytes: Vec<u8>,
    starts: Vec<usize>,
    links: Vec<u32>,
    /// The owners of number i are `owners[owner_starts[i]..owner_starts[i + 1]]`.
    owners: Vec<u32>,
    owner_starts: Vec<u32>,
    longest: usize,
}

const NO_LINK: u32 = u32::MAX;

impl Prefixes {
    pub fn new(mut entries: Vec<(Vec<u8>, u32)>) -> Self {
        entries.sort_unstable();
        let mut set = Self::default();
        for same in entries.chunk_by(|a, b| a.0 == b.0) {
            let prefix = &same[0].0;
            set.links.push(set.link_of_next(prefix));
            set.keys.push(key(prefix));
            set.starts.push(set.bytes.len());
            set.bytes.extend(prefix);
            set.owner_starts.push(set.owners.len() as u32);
            set.owners.extend(same.iter().map(|&(_, owner)| owner));
            set.longest = set.longest.max(prefix.len());
        }
        set.starts.push(set.bytes.len());
        set.owner_starts.push(set.owners.len() as u32);
        set
    }

    /// The longest stored prefix of `prefix`, which is above all that are stored.
    fn link_of_next(&self, prefix: &[u8]) -> u32 {
        let mut number = (self.keys.len() as u32).wrapping_sub(1);
        while number != NO_LINK && !prefix.starts_with(self.stored(number)) {
            number = self.links[number as usize];
        }
        number
    }

    /// Reports the owners of every stored prefix of `text`.
    pub fn each_prefix_of(&self, text: &[u8], found: &mut impl FnMut(u32)) {
        let mut number = self.last_not_above(text);
        if number == NO_LINK {
            return;
        }
        // What is on the chain and no longer than the part in common with its start is a prefix of both.
        let common = std::iter::zip(self.stored(number), text).take_while(|(a, b)| a == b).count();
        while number != NO_LINK {
            let place = number as usize;
            if self.starts[place + 1] - self.starts[place] <= common {
                let owners = self.owner_starts[place] as usize..self.owner_starts[place + 1] as usize;
                self.owners[owners].iter().for_each(|&owner| found(owner));
            }
            number = self.links[place];
        }
    }

    fn last_not_above(&self, text: &[u8]) -> u32 {
        let text_key = key(text);
        let below = self.keys.partition_point(|&key| key < text_key);
        let (mut low, mut high) = (below, below + self.keys[below..].partition_point(|&key| key == text_key));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.stored(middle as u32) <= text {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low as u32).wrapping_sub(1)
    }

    fn stored(&self, number: u32) -> &[u8] {
        // Numbers up to the length of `keys` are asked for, and `starts` has one more; while building, the
        // last end is the end of all.
        let number = number as usize;
        let end = self.starts.get(number + 1).copied().unwrap_or(self.bytes.len());
        &self.bytes[self.starts[number]..end]
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The length of the longest prefix.
    pub fn longest(&self) -> usize {
        self.longest
    }

    pub fn heap_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<u64>()
            + self.bytes.capacity()
            + self.starts.capacity() * size_of::<usize>()
            + (self.links.capacity() + self.owners.capacity() + self.owner_starts.capacity())
                * size_of::<u32>()
    }
}

/// The first eight bytes as a number. Different numbers are ordered as the texts are.
fn key(text: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = text.len().min(8);
    first[..len].copy_from_slice(&text[..len]);
    u64::from_be_bytes(first)
}
