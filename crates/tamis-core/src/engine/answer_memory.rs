//! Memory of answers that is used again.
//!
//! Memory that is new to a process has to be cleared and mapped page by page, which takes longer than writing a hundred million matches
//! to it. So columns that were written for a caller come back here when the last reader drops them, up to a limit. What
//! no answer took for some time is given back to the system.
//!
//! A thread that cannot get the lock soon allocates new memory, or returns its memory to the system. So a forked child in which the
//! lock stays locked is only slower.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_array::{ArrayRef, Int64Array};
use arrow_buffer::{Buffer, ScalarBuffer};
use bytes::Bytes;

/// At most this much is kept for later.
const KEPT_BYTES: usize = 2 << 30;
/// Columns of fewer values are not worth it.
const LEAST: usize = 1 << 17;
/// Room is a multiple of this, so that columns of about one length fit into each other's place.
const STEP: usize = 1 << 17;
/// A column that this many answers did not use is freed. A call counts as one answer, however many chunks its table has: otherwise
/// the first chunks would free what the last ones need.
const KEPT_ANSWERS: u64 = 16;
/// How often the lock is tried.
const TRIES: usize = 1000;

/// Columns of integers that nobody reads any more.
#[derive(Debug, Default)]
pub struct AnswerMemory {
    unused: Mutex<Vec<Unused>>,
    /// How many answers there were.
    answers: AtomicU64,
}

/// A column that nobody reads, and how many answers there were when it came back.
#[derive(Debug)]
struct Unused {
    column: Vec<i64>,
    since: u64,
}

impl AnswerMemory {
    fn lock(&self) -> Option<MutexGuard<'_, Vec<Unused>>> {
        (0..TRIES).find_map(|_| {
            std::hint::spin_loop();
            self.unused.try_lock().ok()
        })
    }

    /// Bytes that are kept for later.
    pub fn bytes(&self) -> usize {
        self.lock().map_or(0, |unused| bytes_of(&unused))
    }

    /// Notes that an answer begins, and gives up what the last ones did not need.
    pub(super) fn begin_answer(&self) {
        let now = self.answers.fetch_add(1, Ordering::Relaxed);
        let is_old = |unused: &mut Unused| unused.since + KEPT_ANSWERS <= now;
        let old: Vec<Unused> =
            self.lock().map_or(vec![], |mut unused| unused.extract_if(.., is_old).collect());
        drop(old); // after the lock: this may take long
    }

    /// An empty column with room for so many values, and whether its memory was used before.
    pub(super) fn take(&self, values: usize) -> (Vec<i64>, bool) {
        if values < LEAST {
            return (Vec::with_capacity(values), false);
        }
        let room = values.next_multiple_of(STEP);
        let found = self.lock().and_then(|mut unused| {
            let fitting = unused.iter().enumerate().filter(|(_, unused)| {
                let capacity = unused.column.capacity();
                (values..=2 * room).contains(&capacity)
            });
            // The smallest. Of several, the one that was used last: others get old.
            let by_size = |(_, unused): &(usize, &Unused)| (unused.column.capacity(), Reverse(unused.since));
            let at = fitting.min_by_key(by_size)?.0;
            Some(unused.swap_remove(at).column)
        });
        let is_used = found.is_some();
        (found.unwrap_or_else(|| Vec::with_capacity(room)), is_used)
    }

    /// A column that comes back when nobody reads it any more.
    pub(super) fn lend(self: &Arc<Self>, values: Vec<i64>) -> ArrayRef {
        if values.capacity() < LEAST {
            return Arc::new(Int64Array::from(values));
        }
        let lent = Bytes::from_owner(Lent { values, memory: self.clone() });
        Arc::new(Int64Array::new(ScalarBuffer::from(Buffer::from(lent)), None))
    }

    fn give_back(&self, mut values: Vec<i64>) {
        values.clear();
        if let Some(mut unused) = self.lock()
            && bytes_of(&unused) + size_of::<i64>() * values.capacity() <= KEPT_BYTES
        {
            let since = self.answers.load(Ordering::Relaxed);
            unused.push(Unused { column: values, since });
        }
    }
}

fn bytes_of(unused: &[Unused]) -> usize {
    unused.iter().map(|unused| size_of::<i64>() * unused.column.capacity()).sum()
}

/// The values of a column, for as long as somebody reads it.
struct Lent {
    values: Vec<i64>,
    memory: Arc<AnswerMemory>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.values)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.memory.give_back(std::mem::take(&mut self.values));
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;

    fn column(memory: &Arc<AnswerMemory>, values: std::ops::Range<i64>) -> ArrayRef {
        let (mut column, _) = memory.take(values.clone().count());
        column.extend(values);
        memory.lend(column)
    }

    #[test]
    fn a_column_is_used_again_when_its_last_reader_is_gone() {
        let memory = Arc::new(AnswerMemory::default());
        let many = LEAST as i64;
        let first = column(&memory, 0..many);
        let slice = first.slice(1, 2);
        let address = first.as_primitive::<Int64Type>().values().as_ptr();
        drop(first);
        assert_eq!(memory.bytes(), 0, "a slice reads it");
        let other = column(&memory, 0..many);
        assert_ne!(other.as_primitive::<Int64Type>().values().as_ptr(), address);
        assert_eq!(slice.as_primitive::<Int64Type>().values()[..], [1, 2]);
        drop(slice);
        assert!(memory.bytes() >= 8 * LEAST);
        let again = column(&memory, 5..many);
        assert_eq!(memory.bytes(), 8 * LEAST, "too short for it");
        drop(again);
        let again = column(&memory, 5..many + 5);
        assert_eq!(again.as_primitive::<Int64Type>().values().as_ptr(), address);
        assert_eq!(again.as_primitive::<Int64Type>().value(0), 5);
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn short_columns_are_not_kept() {
        let memory = Arc::new(AnswerMemory::default());
        drop(column(&memory, 0..10));
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn what_no_answer_takes_is_given_up() {
        let memory = Arc::new(AnswerMemory::default());
        let many = LEAST as i64;
        memory.begin_answer();
        drop((column(&memory, 0..many), column(&memory, 0..many)));
        assert_eq!(memory.bytes(), 2 * 8 * LEAST);
        for _ in 0..KEPT_ANSWERS {
            memory.begin_answer();
            drop(column(&memory, 0..many));
        }
        assert_eq!(memory.bytes(), 2 * 8 * LEAST, "one was used, the other not for long enough");
        memory.begin_answer();
        assert_eq!(memory.bytes(), 8 * LEAST, "the one that was used");
        (0..=KEPT_ANSWERS).for_each(|_| memory.begin_answer());
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn a_lock_that_is_held_for_good_costs_time_only() {
        let memory = Arc::new(AnswerMemory::default());
        drop(column(&memory, 0..LEAST as i64));
        let held = memory.unused.lock();
        let other = column(&memory, 0..LEAST as i64);
        assert_eq!(other.len(), LEAST);
        drop(other);
        drop(held);
        assert!(memory.bytes() > 0);
    }
}
