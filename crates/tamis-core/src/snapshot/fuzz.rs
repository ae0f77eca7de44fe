//! The entry point of fuzzers: reading arbitrary bytes as a snapshot neither panics nor reads out of bounds.

use super::layout;
use super::reader::Snapshot;

/// Opens `data` as a snapshot and does everything that can be done with it; then again with the checksums of
/// header and table made right, which a fuzzer would hardly ever guess, to reach the checks behind them.
pub fn fuzz_snapshot(data: &[u8]) {
    read_everything(data.to_vec());
    let mut resealed = data.to_vec();
    layout::reseal(&mut resealed);
    read_everything(resealed);
}

fn read_everything(data: Vec<u8>) {
    let Ok(snapshot) = Snapshot::from_bytes(data) else { return };
    for name in snapshot.section_names() {
        let _ = snapshot.section::<u8>(name).map(|bytes| bytes.iter().fold(0, |sum, &byte| sum ^ byte));
        let _ = snapshot.section::<u32>(name).map(|words| words.len());
        let _ = snapshot.section::<u64>(name).map(|words| words.len());
        let _ = snapshot.section::<[u64; 8]>(name).map(|lines| lines.len());
        let _ = snapshot.check_range(name, 1..usize::MAX);
        let length = snapshot.find(name).expect("it was just listed").bytes.len();
        let _ = snapshot.check_range(name, length / 2..length);
        if snapshot.check(name).is_ok() {
            snapshot.check_range(name, 0..length).expect("an intact section has intact blocks");
        }
    }
    if snapshot.verify().is_ok() {
        assert!(snapshot.section_names().all(|name| snapshot.check(name).is_ok()));
    }
}
