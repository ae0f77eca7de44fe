//! Real files and processes: replacement under readers, folders and disks that refuse, sharing between
//! processes.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::*;

/// Set in the processes that tests start: the path the child works on.
const CHILD_PATH: &str = "TAMIS_TEST_SNAPSHOT_PATH";

/// This test program, told to run the test `name` only, in a shell that first runs `setup`.
fn child(name: &str, setup: &str, path: &Path) -> Command {
    let module = module_path!().split_once("::").unwrap().1;
    let script = format!("{setup} exec \"$0\" --exact {module}::{name} --nocapture --include-ignored");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(std::env::current_exe().unwrap()).env(CHILD_PATH, path);
    command
}

/// Runs a child to its end and returns what it printed.
#[track_caller]
fn run(mut child: Command) -> String {
    let output = child.output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text
}

fn child_path() -> PathBuf {
    std::env::var_os(CHILD_PATH).expect("only another test starts this one").into()
}

#[test]
fn a_replaced_file_stays_what_it_was_for_those_who_have_it_open() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    save_sample(&path, 1);
    let old = Snapshot::open(&path).unwrap();
    let mut writer = SnapshotWriter::create(&path).unwrap();
    writer.section("small", &[9u32]).unwrap();
    assert_is_sample(&Snapshot::open(&path).unwrap());
    writer.finish(2).unwrap();

    let new = Snapshot::open(&path).unwrap();
    assert_eq!((old.generation(), new.generation()), (1, 2));
    assert_eq!(*new.section::<u32>("small").unwrap(), [9]);
    assert_is_sample(&old);
    assert_eq!(folder.file_names(), ["rules.tamis"]);
}

#[test]
fn a_file_that_is_overwritten_in_place_is_noticed() {
    let snapshot_of = |values: &[u32], generation: u64| {
        let mut writer = SnapshotWriter::in_memory();
        writer.section("values", values).unwrap();
        writer.finish(generation).unwrap()
    };
    let original = snapshot_of(&[1, 2, 3], 5);
    let others = [
        ("the same size and generation", snapshot_of(&[1, 2, 4], 5)),
        ("older", snapshot_of(&[1, 2, 3], 4)),
        ("newer", snapshot_of(&[1, 2, 3], 6)),
        ("smaller", snapshot_of(&[], 5)),
        ("larger", snapshot_of(&[7; 5000], 5)),
        ("no snapshot at all", vec![7; original.len()]),
        ("zeros", vec![0; original.len()]),
    ];
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    for (what, other) in others {
        std::fs::write(&path, &original).unwrap();
        let (mapped, copied) = (Snapshot::open(&path).unwrap(), Snapshot::open_copied(&path).unwrap());
        mapped.check("values").unwrap();
        std::fs::write(&path, &original).unwrap();
        assert!(mapped.is_unchanged(), "the same content changes nothing");
        std::fs::write(&path, other).unwrap();
        assert!(!mapped.is_unchanged(), "{what}");
        let message = refusal(mapped.check_unchanged());
        let named = format!("{}: the file was overwritten while it was open", path.display());
        assert!(message.starts_with(&named) && message.contains("rename it over the old one"), "{message}");
        copied.check_unchanged().unwrap();
        assert_eq!(*copied.section::<u32>("values").unwrap(), [1, 2, 3]);
    }
}

#[test]
fn readers_see_whole_snapshots_while_a_writer_replaces_them() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    let save = |generation: u64| {
        let mut writer = SnapshotWriter::create(&path).unwrap();
        writer.section("generation", &vec![generation; 1000 * generation as usize]).unwrap();
        writer.finish(generation).unwrap();
    };
    save(1);
    let done = AtomicBool::new(false);
    let rounds = std::thread::scope(|scope| {
        let readers = [true, false].map(|mapped| {
            let (path, done) = (&path, &done);
            scope.spawn(move || {
                let mut last = 0;
                let mut rounds = 0;
                while !done.load(Ordering::Relaxed) {
                    let snapshot =
                        if mapped { Snapshot::open(path) } else { Snapshot::open_copied(path) }.unwrap();
                    snapshot.verify().unwrap();
                    let values = snapshot.section::<u64>("generation").unwrap();
                    assert_eq!(values.len() as u64, 1000 * snapshot.generation());
                    assert!(values.iter().all(|&value| value == snapshot.generation()));
                    assert!(snapshot.generation() >= last, "an older version came back");
                    last = snapshot.generation();
                    rounds += 1;
                }
                rounds
            })
        });
        (2..=30).for_each(save);
        done.store(true, Ordering::Relaxed);
        readers.map(|reader| reader.join().unwrap())
    });
    assert!(rounds.iter().all(|&rounds| rounds > 0), "{rounds:?}");
    assert_eq!(Snapshot::open(&path).unwrap().generation(), 30);
}

#[test]
fn threads_may_check_the_same_snapshot_together() {
    let snapshot = Snapshot::from_bytes(sample()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let snapshot = snapshot.clone();
            scope.spawn(move || {
                for block in 0..4 {
                    let start = ((block + thread) % 4) * BLOCK_BYTES;
                    snapshot.check_range("large", start..start + 100).unwrap();
                }
                snapshot.check("large").unwrap();
                snapshot.verify().unwrap();
            });
        }
    });
}

#[test]
fn an_abandoned_writer_leaves_nothing_behind() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    save_sample(&path, 1);
    let mut writer = SnapshotWriter::create(&path).unwrap();
    writer.section("large", &numbers(MANY)).unwrap();
    assert_eq!(folder.file_names().len(), 2, "the temporary file is in the same folder");
    drop(writer);
    assert_eq!(folder.file_names(), ["rules.tamis"]);
    assert_is_sample(&Snapshot::open(&path).unwrap());
}

#[test]
fn a_path_that_cannot_be_written_is_named_with_the_reason() {
    let folder = TestFolder::new();
    std::fs::write(folder.path("file"), "").unwrap();
    let cases = [
        (folder.path("missing/rules.tamis"), "No such file or directory"),
        (folder.path("file/rules.tamis"), "Not a directory"),
        (folder.0.clone(), "it is a folder"),
        (PathBuf::from("/proc/rules.tamis"), ""), // nobody may create files there, not even root
    ];
    for (path, reason) in cases {
        let Err(Error::Io(error)) = SnapshotWriter::create(&path) else { panic!("{path:?} was accepted") };
        let message = error.to_string();
        assert!(message.starts_with(&format!("cannot write {}: {reason}", path.display())), "{message}");
    }
    assert_eq!(folder.file_names(), ["file"]);
}

/// A sink that is full after some bytes, as a disk can be at any point.
struct SmallDisk {
    file: AtomicFile,
    left: usize,
}

impl std::io::Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let written = self.file.write(&bytes[..bytes.len().min(self.left)])?;
        self.left -= written;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl std::io::Seek for SmallDisk {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

impl Sink for SmallDisk {
    type Output = ();

    fn target(&self) -> String {
        self.file.target()
    }

    fn commit(self) -> std::io::Result<()> {
        self.file.commit()
    }
}

#[test]
fn a_disk_that_is_full_at_any_point_leaves_the_old_file() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    let save = |space: usize| -> Result<()> {
        let mut writer =
            SnapshotWriter::new(SmallDisk { file: AtomicFile::create(&path).unwrap(), left: space })?;
        writer.section("ids", &[7u64, 8, 9])?;
        writer.section_bytes("texts", b"age > 5")?;
        writer.finish(2)
    };
    save_sample(&path, 1);
    let mut space = 0;
    while let Err(error) = save(space) {
        assert_eq!(error.to_string(), format!("cannot write {}: no storage space", path.display()));
        assert_eq!(Snapshot::open(&path).unwrap().generation(), 1);
        assert_eq!(folder.file_names(), ["rules.tamis"]);
        space += 1;
    }
    assert_eq!(Snapshot::open(&path).unwrap().generation(), 2);
    assert_eq!(space, Snapshot::open(&path).unwrap().len_bytes() + 128, "the header is written twice");
}

#[test]
fn a_file_that_the_system_refuses_to_grow_leaves_the_old_file() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    save_sample(&path, 1);
    // 1 MiB in blocks of 512 bytes; without the trap the system would end the process.
    run(child("child_writes_into_a_limit", "ulimit -f 2048; trap '' XFSZ;", &path));
    assert_is_sample(&Snapshot::open(&path).unwrap());
    assert_eq!(folder.file_names(), ["rules.tamis"]);
}

#[test]
#[ignore = "started by another test"]
fn child_writes_into_a_limit() {
    let path = child_path();
    let mut writer = SnapshotWriter::create(&path).unwrap();
    let error = write_sample(&mut writer).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write {}: File too large (os error 27)", path.display()));
    assert!(writer.finish(2).is_err());
}

#[test]
#[cfg(target_os = "linux")]
fn processes_that_map_the_same_file_share_its_memory() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    save_sample(&path, 1);
    let snapshot = Snapshot::open(&path).unwrap();
    assert_is_sample(&snapshot);
    let printed = run(child("child_maps_the_file", "", &path));
    assert!(printed.contains("generation 1"), "{printed}");
    assert_is_sample(&snapshot);
}

#[test]
#[ignore = "started by another test"]
#[cfg(target_os = "linux")]
fn child_maps_the_file() {
    let path = child_path();
    let snapshot = Snapshot::open(&path).unwrap();
    assert_is_sample(&snapshot);
    println!("generation {}", snapshot.generation());
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (_, mapping) = maps.split_once(path.to_str().unwrap()).expect("the file is mapped");
    let shared_kib = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap();
    let shared: usize =
        mapping.lines().skip(1).take(20).filter(|line| line.starts_with("Shared_")).map(shared_kib).sum();
    assert!(
        shared * 1024 >= 3 * BLOCK_BYTES,
        "only {shared} KiB are shared with the other process:\n{mapping}"
    );
}
