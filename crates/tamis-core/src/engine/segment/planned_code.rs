//! The code of a layout that is being planned: the words of each unit as bytes, in about half the space.
//!
//! Jumps are short, and bits have small numbers, so a word is stored with seven bits per byte, lowest first.
//! All bytes but the last have their top bit set, so code can be read from either end.

/// The most bytes that a word takes.
pub const MOST_BYTES: usize = 5;

/// Appends words.
pub fn put_words(words: &[u32], out: &mut Vec<u8>) {
    for word in words {
        // The flag of a unit is the top bit: it comes first.
        let mut rest = word.rotate_left(1);
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }
}

/// Where the last of these words begin.
pub fn last_words(bytes: &[u8], words: usize) -> usize {
    let ends = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte < 0x80);
    // Behind the end of the word before.
    ends.map(|(at, _)| at + 1).nth(words).unwrap_or(0)
}

/// Fills `out` with the first words and returns the bytes that follow.
pub fn read_words<'a>(mut bytes: &'a [u8], out: &mut [u32]) -> &'a [u8] {
    for word in out {
        let (mut rotated, mut shift) = (0, 0);
        while let [byte, following @ ..] = bytes {
            bytes = following;
            rotated |= u32::from(byte & 0x7F) << shift;
            shift += 7;
            if *byte < 0x80 {
                break;
            }
        }
        *word = rotated.rotate_right(1);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_from_either_end() {
        let parts: [&[u32]; 6] =
            [&[0, 1, 63, 64], &[], &[u32::MAX, 1 << 31, (1 << 31) - 1], &[1 << 30], &[8191, 8192, 77], &[]];
        let mut bytes = vec![];
        parts.iter().for_each(|part| put_words(part, &mut bytes));
        let mut rest = bytes.as_slice();
        for part in parts {
            let mut read = vec![0; part.len()];
            rest = read_words(rest, &mut read);
            assert_eq!(read, part);
        }
        assert!(rest.is_empty());
        for part in parts.iter().rev() {
            let start = last_words(&bytes, part.len());
            let mut read = vec![0; part.len()];
            assert!(read_words(&bytes[start..], &mut read).is_empty());
            assert_eq!(read, *part);
            bytes.truncate(start);
        }
        assert!(bytes.is_empty());
    }
}
