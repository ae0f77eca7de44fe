//! Conditions that compare the value of a subject, in a few bytes each.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::ast::Comparison;
use crate::compiled::compare;
use crate::number::number;

/// What a simple condition asks of the nodes of its subject: that there is one, or that one has such a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SimpleTest<'a> {
    Exists,
    Text(&'a str),
    Number(Comparison, f64),
    /// That the first node contains a text, which is not empty.
    Contains(&'a str),
    StartsWith(&'a str),
}

impl SimpleTest<'_> {
    pub fn holds(&self, value: &str) -> bool {
        match self {
            Self::Exists => true,
            Self::Text(text) => value == *text,
            Self::Number(comparison, operand) => compare(number(value), *comparison, *operand),
            Self::Contains(text) => value.contains(*text),
            Self::StartsWith(text) => value.starts_with(*text),
        }
    }

    /// Whether it asks the first node only.
    pub fn is_of_first(&self) -> bool {
        matches!(self, Self::Contains(_) | Self::StartsWith(_))
    }

    /// Lists are sorted by it: those of one comparison lie together, in the order of their thresholds.
    pub fn order(&self) -> (u32, u64) {
        match self {
            Self::Exists => (0, 0),
            Self::Text(_) => (1, 0),
            Self::Number(comparison, number) => {
                let bits = number_bits(*number);
                let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
                (2 + *comparison as u32, ordered)
            }
            Self::Contains(_) => (10, 0),
            Self::StartsWith(_) => (11, 0),
        }
    }

    /// How selective it is likely to be, from 1.
    pub fn rank(&self) -> u32 {
        match self {
            Self::Exists => 1,
            Self::Number(Comparison::Equal, _) | Self::Text(_) => 4,
            Self::Number(..) => 2,
            Self::Contains(_) | Self::StartsWith(_) => 3,
        }
    }
}

/// Distinct simple conditions in 12 bytes each.
#[derive(Default)]
pub(super) struct SimpleConditions {
    all: Vec<Packed>,
    pool: String,
    numbers: HashTable<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Packed {
    /// The test in the highest bits, then the subject.
    head: u32,
    /// Offset and length of a text; the two halves of a number.
    value: [u32; 2],
}

const SUBJECT_BITS: u32 = 28;
const TEXT: u32 = 1;
const FIRST_COMPARISON: u32 = 2;
const CONTAINS: u32 = FIRST_COMPARISON + COMPARISONS.len() as u32;
const STARTS_WITH: u32 = CONTAINS + 1;
/// The comparisons that simple conditions have, in the order of their codes.
pub(super) const COMPARISONS: [Comparison; 5] = [
    Comparison::Equal,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

pub(super) fn number_bits(number: f64) -> u64 {
    // Both zeros are equal.
    (number + 0.0).to_bits()
}

/// A number as it is stored.
pub(super) fn number_words(number: f64) -> [u32; 2] {
    let bits = number_bits(number);
    [(bits >> 32) as u32, bits as u32]
}

impl SimpleConditions {
    pub fn subject(&self, id: u32) -> u32 {
        self.all[id as usize].head & ((1 << SUBJECT_BITS) - 1)
    }

    pub fn test(&self, id: u32) -> SimpleTest<'_> {
        let Packed { head, value: [first, second] } = self.all[id as usize];
        let text = || &self.pool[first as usize..(first + second) as usize];
        match head >> SUBJECT_BITS {
            0 => SimpleTest::Exists,
            TEXT => SimpleTest::Text(text()),
            CONTAINS => SimpleTest::Contains(text()),
            STARTS_WITH => SimpleTest::StartsWith(text()),
            code => {
                let number = f64::from_bits(u64::from(first) << 32 | u64::from(second));
                SimpleTest::Number(COMPARISONS[(code - FIRST_COMPARISON) as usize], number)
            }
        }
    }

    /// The value of a test as it is stored: of a text where it lies, of a number its bits.
    pub fn value(&self, id: u32) -> [u32; 2] {
        self.all[id as usize].value
    }

    /// The text that is stored so; of a condition that has one.
    pub fn text_at(&self, [start, len]: [u32; 2]) -> &str {
        &self.pool[start as usize..(start + len) as usize]
    }

    pub fn intern(&mut self, subject: u32, test: SimpleTest<'_>) -> u32 {
        let hash = |subject: u32, test: SimpleTest<'_>| match test {
            SimpleTest::Exists => FxBuildHasher.hash_one((subject, 0)),
            SimpleTest::Text(text) => FxBuildHasher.hash_one((subject, text)),
            SimpleTest::Contains(text) => FxBuildHasher.hash_one((subject, CONTAINS, text)),
            SimpleTest::StartsWith(text) => FxBuildHasher.hash_one((subject, STARTS_WITH, text)),
            SimpleTest::Number(comparison, number) => {
                FxBuildHasher.hash_one((subject, comparison, number_bits(number)))
            }
        };
        let found = self
            .numbers
            .find(hash(subject, test), |id| self.subject(*id) == subject && self.test(*id) == test);
        if let Some(id) = found {
            return *id;
        }
        let mut keep = |text: &str| {
            let place = [self.pool.len() as u32, text.len() as u32];
            self.pool.push_str(text);
            place
        };
        let (code, value) = match test {
            SimpleTest::Exists => (0, [0, 0]),
            SimpleTest::Text(text) => (TEXT, keep(text)),
            SimpleTest::Contains(text) => (CONTAINS, keep(text)),
            SimpleTest::StartsWith(text) => (STARTS_WITH, keep(text)),
            SimpleTest::Number(comparison, number) => {
                let code = COMPARISONS.iter().position(|known| *known == comparison).expect("it is simple");
                (FIRST_COMPARISON + code as u32, number_words(number))
            }
        };
        let id = self.all.len() as u32;
        self.all.push(Packed { head: code << SUBJECT_BITS | subject, value });
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.insert_unique(hash(subject, test), id, |id| hash(self.subject(*id), self.test(*id)));
        self.numbers = numbers;
        id
    }

    /// Nothing will be added.
    pub fn finish(&mut self) {
        self.numbers = HashTable::new();
        self.all.shrink_to_fit();
        self.pool.shrink_to_fit();
    }

    pub fn heap_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Packed>() + self.pool.capacity()
    }
}
