//! The positions of the rows of one key: times, or numbers of rows. Most keys have few rows, which are stored
//! inline.

use std::collections::VecDeque;

/// As many as lie in place.
const FEW: usize = 4;

#[derive(Debug)]
pub(crate) enum Positions {
    Few {
        len: u8,
        places: [i64; FEW],
    },
    #[allow(clippy::box_collection)] // a word, so that few are small
    Many(Box<VecDeque<i64>>),
}

impl Default for Positions {
    fn default() -> Self {
        Self::Few { len: 0, places: [0; FEW] }
    }
}

impl Positions {
    pub fn len(&self) -> usize {
        match self {
            Self::Few { len, .. } => usize::from(*len),
            Self::Many(positions) => positions.len(),
        }
    }

    pub fn at(&self, place: usize) -> i64 {
        match self {
            Self::Few { places, .. } => places[place],
            Self::Many(positions) => positions[place],
        }
    }

    pub fn push(&mut self, position: i64) {
        match self {
            Self::Few { len, places } if usize::from(*len) < FEW => {
                places[usize::from(*len)] = position;
                *len += 1;
            }
            Self::Few { places, .. } => {
                let mut positions = VecDeque::with_capacity(2 * FEW);
                positions.extend(*places);
                positions.push_back(position);
                *self = Self::Many(Box::new(positions));
            }
            Self::Many(positions) => positions.push_back(position),
        }
    }

    /// Drops the first ones. Half of those that fit lie in place again, so that a window that gains and loses a row is not
    /// moved each time.
    pub fn drop_first(&mut self, count: usize) {
        match self {
            Self::Few { len, places } => {
                places.copy_within(count..usize::from(*len), 0);
                *len -= count as u8;
            }
            Self::Many(positions) => {
                positions.drain(..count);
                if positions.len() <= FEW / 2 {
                    *self = positions.iter().copied().collect();
                }
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).map(|place| self.at(place))
    }

    /// Outside of the enum; by what there is alone, not by how it came about.
    pub fn bytes(&self) -> usize {
        if self.len() <= FEW { 0 } else { self.len() * size_of::<i64>() }
    }
}

impl FromIterator<i64> for Positions {
    fn from_iter<I: IntoIterator<Item = i64>>(positions: I) -> Self {
        let mut collected = Self::default();
        positions.into_iter().for_each(|position| collected.push(position));
        collected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_a_queue_whatever_their_number() {
        let (mut positions, mut expected) = (Positions::default(), VecDeque::new());
        for round in 0..200i64 {
            for more in 0..round % 7 {
                positions.push(round * 10 + more);
                expected.push_back(round * 10 + more);
            }
            let gone = (round as usize * 5 % 9).min(expected.len());
            positions.drop_first(gone);
            expected.drain(..gone);
            assert_eq!(positions.iter().collect::<VecDeque<_>>(), expected);
            assert_eq!(positions.len(), expected.len());
        }
    }
}
