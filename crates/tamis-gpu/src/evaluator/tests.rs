//! The operations of a plan as a driver sees them: a copy may be in progress until its stream has been waited
//! for.

use std::ops::Range;
use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::driver::Address;

/// Memory of this process; nothing is launched. Copies from pinned memory are under way until the stream is waited for.
#[derive(Default)]
struct Copies {
    under_way: Arc<Mutex<usize>>,
    pinned: Mutex<Vec<Range<usize>>>,
}

impl Copies {
    fn finish(&self) {
        *self.under_way.lock().unwrap() = 0;
    }
}

impl Driver for Copies {
    fn describe(&self) -> Json {
        json!({})
    }

    fn free_memory(&self) -> DeviceResult<u64> {
        Ok(1 << 30)
    }

    fn warps(&self) -> u64 {
        1
    }

    fn allocate(&self, bytes: usize) -> DeviceResult<Address> {
        let words = vec![0u64; bytes.div_ceil(8).max(1)].into_boxed_slice();
        Ok(Box::into_raw(words).cast::<u64>().expose_provenance() as Address)
    }

    fn release(&self, address: Address, bytes: usize) {
        let words = std::ptr::with_exposed_provenance_mut::<u64>(address as usize);
        // SAFETY: it was allocated with this size, and is released once.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(words, bytes.div_ceil(8).max(1))) });
    }

    fn allocate_pinned(&self, bytes: usize) -> DeviceResult<Address> {
        let address = self.allocate(bytes)?;
        self.pinned.lock().unwrap().push(address as usize..address as usize + bytes);
        Ok(address)
    }

    fn release_pinned(&self, address: Address, bytes: usize) {
        self.pinned.lock().unwrap().retain(|pinned| pinned.start != address as usize);
        self.release(address, bytes);
    }

    fn new_stream(&self) -> DeviceResult<Stream> {
        Ok(0)
    }

    fn end_stream(&self, _: Stream) {}

    fn upload(&self, _: Stream, _: Address, bytes: &[u8]) -> DeviceResult<()> {
        let is_pinned = |pinned: &Range<usize>| pinned.contains(&bytes.as_ptr().addr());
        *self.under_way.lock().unwrap() += usize::from(self.pinned.lock().unwrap().iter().any(is_pinned));
        Ok(())
    }

    fn download(&self, _: Stream, _: Address, into: &mut [u8]) -> DeviceResult<()> {
        self.finish();
        into.fill(0);
        Ok(())
    }

    fn wait(&self, _: Stream) -> DeviceResult<()> {
        self.finish();
        Ok(())
    }

    fn fill_with_zeros(&self, _: Stream, _: Address, _: usize) -> DeviceResult<()> {
        Ok(())
    }

    fn launch(&self, _: Stream, _: Kernel, _: u64, _: &[u64]) -> DeviceResult<()> {
        Ok(())
    }
}

/// A plan with one predicate, no unit, and this many rows, which hold for every event.
fn plan(rows: usize) -> Plan {
    Plan {
        bits: 2,
        mask_of_bit: vec![0, 1],
        is_read: vec![true, true],
        shared_masks: 2,
        masks: 2,
        mask_of_row: vec![0; rows],
        point_offsets: vec![0],
        ..Plan::default()
    }
}

#[test]
fn no_copy_is_under_way_when_a_query_is_answered() {
    let driver = Copies::default();
    let under_way = driver.under_way.clone();
    let device = Evaluator::new(Box::new(driver), None, false).unwrap();
    let tokens = Tokens { events: 1, bits: vec![[0, 1]], ..Tokens::default() };
    for rows in [0, 1, 1000] {
        let kept = Arc::new(KeptRows::new(vec![0; rows / 32 + 1]));
        for kept in [None, Some(&kept)] {
            let plan = device.load(&plan(rows)).unwrap();
            let check = |what: &str| {
                let left = std::mem::take(&mut *under_way.lock().unwrap());
                assert_eq!(left, 0, "{what} of {rows} rows, filtered: {}", kept.is_some());
            };
            check("loading");
            for most in [1, u32::MAX] {
                let query = RowQuery { order: RowOrder::Id, events: 1, most };
                plan.rows(&tokens, kept, query).unwrap();
                check("rows");
            }
            plan.counts(&tokens, kept).unwrap();
            check("counts");
            plan.best_by_relevance(&tokens, kept, RelevanceQuery { k: 3, min_score: 0.0 }).unwrap();
            check("the best by relevance");
            plan.row_counts(&tokens, kept, &mut vec![0; rows]).unwrap();
            check("row counts");
        }
    }
}

#[test]
fn pinned_memory_is_accounted_for() {
    let device = Evaluator::new(Box::<Copies>::default(), None, false).unwrap();
    assert_eq!(device.pinned_bytes(), 0);
    let plan = device.load(&plan(1)).unwrap();
    let tokens = Tokens { events: 1, bits: vec![[0, 1]; 100_000], ..Tokens::default() };
    plan.counts(&tokens, None).unwrap();
    let (first, sent) = (device.pinned_bytes(), 8 * 100_000);
    assert!(first >= sent, "{first} bytes for {sent}");
    plan.counts(&tokens, None).unwrap();
    assert_eq!(device.pinned_bytes(), first, "what was there is used again");
    let words = Words::new(&device.shared, 1 << 20).unwrap();
    assert!(device.pinned_bytes() >= first + (4 << 20), "what is in use counts, too");
    drop(words);
}
