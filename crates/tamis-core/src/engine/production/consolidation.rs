//! Decides when the small segments of an index are merged into one.
//!
//! An event visits every segment and every buffered subscription. Merging by size class (`merge`) keeps their
//! number small while an index changes, but an index that is queried more often than it is changed is fastest
//! as one segment. Every segment records after how many events it was built, so its cost since then is known.
//! Once small segments have cost more than merging them takes, they are merged. So the work never exceeds
//! what an earlier merge would have saved, and later events save more.

use super::bulk::stays_apart;
use super::view::{Part, View};

/// About what an event pays for one more segment and for one more buffered subscription, and what a subscription costs
/// in a merge, in nanoseconds.
const SEGMENT: u64 = 600;
const BUFFERED: u64 = 20;
const MERGED: u64 = 8_000;
/// Fewer subscriptions cost less in the buffer than a segment of them would.
const LEAST_SEALED: usize = 8;

/// Whether matching this many events against the buffer costs more than sealing it first.
pub(super) fn is_sealing_cheaper(events: usize) -> bool {
    events as u64 * BUFFERED > MERGED
}

/// The segments that should become one, together with what is in the buffer; `None` if that would not pay yet. `seen` is
/// how many events came in all, and `buffered` adds up over them how many subscriptions were in the buffer.
///
/// Segments of a file that is mapped stay: rewriting them would give every process its own copy. So do those that a large
/// build left apart.
pub(super) fn overdue(view: &View, seen: u64, buffered: u64) -> Option<Vec<Part>> {
    let may_merge = |part: &&Part| part.segment.origin.is_none() && !stays_apart(part);
    let mut parts: Vec<&Part> = view.parts.iter().filter(may_merge).collect();
    parts.sort_by_key(|part| part.living());
    let aged = |part: &&Part| (part.living(), seen.saturating_sub(part.built_after));
    let count = smallest(parts.iter().map(aged), view.buffer.len(), buffered)?;
    Some(parts[..count].iter().copied().cloned().collect())
}

/// How many of the smallest segments, each with its rows and with the events since it was built, are to be merged.
fn smallest(segments: impl Iterator<Item = (usize, u64)>, in_buffer: usize, buffered: u64) -> Option<usize> {
    let mut rows = in_buffer as u64;
    let mut paid = if in_buffer > 0 { buffered.saturating_mul(BUFFERED) } else { 0 };
    let mut best = (in_buffer >= LEAST_SEALED && paid >= rows * MERGED).then_some(0);
    for (count, (living, age)) in (1..).zip(segments) {
        rows += living as u64;
        // There has to be one segment, so the largest is not to blame.
        if paid > 0 && paid >= rows * MERGED {
            best = Some(count);
        }
        paid = paid.saturating_add(age.saturating_mul(SEGMENT));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(segments: &[(usize, u64)], in_buffer: usize, buffered: u64) -> Option<usize> {
        smallest(segments.iter().copied(), in_buffer, buffered)
    }

    #[test]
    fn what_has_cost_more_than_merging_it_is_merged() {
        assert_eq!(chosen(&[], 0, 0), None);
        assert_eq!(chosen(&[(1_000, u64::MAX / SEGMENT)], 0, 0), None, "one segment is the best there is");
        assert_eq!(chosen(&[], 100, 100 * 300), None);
        assert_eq!(chosen(&[], 100, 100 * 400), Some(0));
        assert_eq!(chosen(&[(1_000, 0)], 0, u64::MAX), None, "what was in the buffer is gone");
        assert_eq!(chosen(&[], 7, 7 * 400_000), None, "a few are better off in the buffer");
        let many = [(128, 1_000); 8];
        assert_eq!(chosen(&many, 0, 0), None);
        assert_eq!(chosen(&many.map(|(rows, _)| (rows, 2_000)), 0, 0), Some(8));
    }

    #[test]
    fn a_large_segment_waits_until_small_ones_have_cost_as_much() {
        let million = (1_000_000, u64::MAX / SEGMENT / 2);
        assert_eq!(chosen(&[million], 100, 100 * 1_024), Some(0));
        assert_eq!(chosen(&[(128, 5_000), (128, 5_000), million], 0, 0), Some(2));
        assert_eq!(chosen(&[(128, 20_000_000), million], 0, 0), Some(2));
    }
}
