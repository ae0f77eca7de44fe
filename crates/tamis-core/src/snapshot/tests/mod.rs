//! Sections are read back as they were written; shared helpers. `damage` tests damaged bytes, `files` the file
//! system.

mod damage;
mod files;

use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::layout::{BLOCK_BYTES, OLDEST_VERSION};
use super::{AtomicFile, SharedSlice, Sink, Snapshot, SnapshotWriter};
use crate::{Error, Result};

/// A folder of its own for one test, removed at the end.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("tamis-snapshot-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file_names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Values that differ from block to block.
fn numbers(count: u64) -> Vec<u64> {
    (0..count).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect()
}

/// More than three blocks.
const MANY: u64 = 3 * (BLOCK_BYTES / 8) as u64 + 1000;

/// Four sections: small, large, empty and of bytes.
fn write_sample<S: Sink>(writer: &mut SnapshotWriter<S>) -> Result<()> {
    writer.section("small", &[1u32, 2, 3])?;
    writer.section("large", &numbers(MANY))?;
    writer.section::<f64>("empty", &[])?;
    writer.section_bytes("texts", b"age > 5")
}

fn sample() -> Vec<u8> {
    let mut writer = SnapshotWriter::in_memory();
    write_sample(&mut writer).unwrap();
    writer.finish(42).unwrap()
}

fn save_sample(path: &Path, generation: u64) {
    let mut writer = SnapshotWriter::create(path).unwrap();
    write_sample(&mut writer).unwrap();
    writer.finish(generation).unwrap();
}

/// The message of a refusal, which must be the snapshot's fault and not, say, the disk's.
#[track_caller]
fn refusal<T>(result: Result<T>) -> String {
    match result {
        Err(Error::Snapshot(message)) => message,
        Err(other) => panic!("another kind of error: {other:?}"),
        Ok(_) => panic!("not refused"),
    }
}

fn assert_is_sample(snapshot: &Snapshot) {
    assert_eq!(snapshot.section_names().collect::<Vec<_>>(), ["small", "large", "empty", "texts"]);
    assert_eq!(*snapshot.section::<u32>("small").unwrap(), [1, 2, 3]);
    assert_eq!(*snapshot.section::<u64>("large").unwrap(), numbers(MANY));
    assert!(snapshot.section::<f64>("empty").unwrap().is_empty());
    assert_eq!(*snapshot.section::<u8>("texts").unwrap(), *b"age > 5");
    assert_eq!(snapshot.format_version(), OLDEST_VERSION);
    for name in snapshot.section_names() {
        snapshot.check(name).unwrap();
    }
    let report = snapshot.verify().unwrap();
    assert_eq!(report.sections.iter().map(|section| section.blocks).collect::<Vec<_>>(), [1, 4, 0, 1]);
    assert_eq!(report.bytes, snapshot.len_bytes());
}

#[test]
fn every_way_in_gives_back_what_was_written() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    save_sample(&path, 42);
    let opened = [
        Snapshot::open(&path).unwrap(),
        Snapshot::open_copied(&path).unwrap(),
        Snapshot::from_bytes(sample()).unwrap(),
    ];
    for snapshot in &opened {
        assert_is_sample(snapshot);
        assert_eq!(snapshot.generation(), 42);
        assert_eq!(snapshot.as_bytes(), sample(), "writing is deterministic");
        assert_is_sample(&Snapshot::from_bytes(snapshot.as_bytes().to_vec()).unwrap());
    }
    assert_eq!(opened[0].path(), Some(path.as_path()));
    assert_eq!(opened[2].path(), None);
}

#[test]
fn a_snapshot_without_sections_is_one() {
    let snapshot = Snapshot::from_bytes(SnapshotWriter::in_memory().finish(0).unwrap()).unwrap();
    assert_eq!(snapshot.section_names().count(), 0);
    assert!(snapshot.verify().unwrap().sections.is_empty());
}

#[test]
fn sections_start_on_cache_lines_and_large_ones_on_pages() {
    let snapshot = Snapshot::from_bytes(sample()).unwrap();
    let base = snapshot.as_bytes().as_ptr() as usize;
    for (name, alignment) in [("small", 64), ("large", 4096), ("texts", 64)] {
        let start = snapshot.find(name).unwrap().bytes.start;
        assert!(start.is_multiple_of(alignment), "{name} starts at {start}");
        assert!((base + start).is_multiple_of(64));
    }
}

#[test]
fn a_section_is_asked_for_by_its_name_and_element_size() {
    let snapshot = Snapshot::from_bytes(sample()).unwrap();
    assert!(snapshot.has_section("small") && !snapshot.has_section("smal"));
    assert_eq!(refusal(snapshot.section::<u32>("smal")), "the snapshot has no section `smal`");
    assert_eq!(refusal(snapshot.check("smal")), "the snapshot has no section `smal`");
    let message = refusal(snapshot.section::<u64>("small"));
    assert_eq!(message, "the elements of section `small` have 4 bytes, not 8");
}

#[test]
fn ranges_outside_a_section_cannot_be_checked() {
    let snapshot = Snapshot::from_bytes(sample()).unwrap();
    snapshot.check_range("small", 0..12).unwrap();
    snapshot.check_range("small", 12..12).unwrap();
    snapshot.check_range("empty", 0..0).unwrap();
    for range in [0..13, 12..usize::MAX, std::ops::Range { start: 2, end: 1 }] {
        assert!(refusal(snapshot.check_range("small", range)).contains("lie outside section `small`"));
    }
}

#[test]
fn names_that_do_not_fit_are_refused_and_harm_nothing() {
    let mut writer = SnapshotWriter::in_memory();
    writer.section(&"n".repeat(32), &[1u8]).unwrap();
    for name in ["", "with\0nul", &"n".repeat(32), &"n".repeat(33), "ééééééééééééééééé"] {
        assert!(matches!(writer.section(name, &[1u8]), Err(Error::Argument(_))), "{name}");
    }
    let snapshot = Snapshot::from_bytes(writer.finish(1).unwrap()).unwrap();
    assert_eq!(snapshot.section_names().collect::<Vec<_>>(), ["n".repeat(32)]);
}

/// A sink that is full after this many bytes.
struct Full(Cursor<Vec<u8>>, usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.1.saturating_sub(self.0.get_ref().len());
        if room == 0 && !bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no more"));
        }
        self.0.write(&bytes[..bytes.len().min(room)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Full {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Sink for Full {
    type Output = Vec<u8>;

    fn target(&self) -> String {
        "a full disk".into()
    }

    fn commit(self) -> io::Result<Vec<u8>> {
        Ok(self.0.into_inner())
    }
}

#[test]
fn a_section_that_failed_spoils_the_snapshot() {
    let mut writer = SnapshotWriter::new(Full(Cursor::default(), 1000)).unwrap();
    let failed = writer.section("half", &[7u8; 2000]);
    assert_eq!(failed.unwrap_err().to_string(), "cannot write a full disk: no more");
    let refusal = "a section of this snapshot could not be written; start again";
    assert_eq!(writer.section("other", &[1u8]).unwrap_err().to_string(), refusal);
    assert_eq!(writer.finish(1).unwrap_err().to_string(), refusal);
}

#[test]
fn buffers_share_their_values_and_outlive_the_snapshot() {
    let buffer = {
        let snapshot = Snapshot::from_bytes(sample()).unwrap();
        snapshot.section::<u64>("large").unwrap()
    };
    let clone = buffer.clone();
    assert_eq!(clone.as_ptr(), buffer.as_ptr());
    drop(buffer);
    assert_eq!(*clone, numbers(MANY));
    assert!(clone.is_in_snapshot());

    let owned = SharedSlice::from(vec![1u16, 2]);
    assert_eq!((owned.byte_len(), owned.clone().as_ptr()), (4, owned.as_ptr()));
    assert!(!owned.is_in_snapshot());
    assert!(SharedSlice::<u64>::default().is_empty() && SharedSlice::<u64>::from(vec![]).is_empty());
    let sum: u16 = std::thread::spawn(move || owned.iter().sum()).join().unwrap();
    assert_eq!(sum, 3);
}

#[test]
fn values_that_move_to_huge_pages_in_pieces_stay_what_they_were() {
    // More than a piece, a whole number of them, and one value more.
    for len in [1usize << 20, 3 << 20, (3 << 20) + 1] {
        let moved = SharedSlice::from((0..len as u32).collect::<Vec<_>>());
        assert_eq!(moved.len(), len);
        assert!(moved.iter().enumerate().all(|(at, value)| *value == at as u32));
    }
}
