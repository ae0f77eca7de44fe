//! Truncated, flipped, foreign and crafted bytes: a clear error, never a panic or a wrong value behind a
//! check.

use std::io::{Seek, SeekFrom, Write};

use proptest::prelude::*;

use super::super::layout::{
    self, ENTRY_BYTES, FORMAT_VERSION, HEADER_BYTES, Header, OLDEST_VERSION, TableEntry,
};
use super::*;

fn header_of(file: &[u8]) -> Header {
    bytemuck::pod_read_unaligned(&file[..HEADER_BYTES])
}

/// The sample with its header and table entries changed, and their checksums right.
fn crafted(change: impl FnOnce(&mut Header, &mut [TableEntry])) -> Vec<u8> {
    let mut file = sample();
    let mut header = header_of(&file);
    let table = header.table_offset as usize..file.len();
    let mut entries: Vec<TableEntry> =
        file[table.clone()].chunks(ENTRY_BYTES).map(bytemuck::pod_read_unaligned).collect();
    change(&mut header, &mut entries);
    file[..HEADER_BYTES].copy_from_slice(bytemuck::bytes_of(&header));
    file[table].copy_from_slice(bytemuck::cast_slice(&entries));
    layout::reseal(&mut file);
    file
}

#[test]
fn truncated_files_say_how_much_is_missing() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    let file = sample();
    let header = header_of(&file);
    let parts =
        [header.checksums_offset, header.table_offset, header.total_length].map(|offset| offset as usize);
    let near_parts =
        parts.iter().flat_map(|&end| [end - 1, end, end + 1]).filter(|&length| length < file.len());
    let scattered = (0..200).map(|i: usize| i.wrapping_mul(0x9E37_79B9) % file.len());
    for length in (0..=HEADER_BYTES + 1).chain(near_parts).chain(scattered) {
        std::fs::write(&path, &file[..length]).unwrap();
        let expected = match length {
            0 => "the file is empty, not a Tamis snapshot".to_string(),
            _ if length < HEADER_BYTES => {
                format!(
                    "the snapshot is truncated: {} bytes of its header are missing",
                    HEADER_BYTES - length
                )
            }
            _ => {
                let missing = file.len() - length;
                format!("the snapshot is truncated: {missing} of its {} bytes are missing", file.len())
            }
        };
        let expected = format!("{}: {expected}", path.display());
        assert_eq!(refusal(Snapshot::open(&path)), expected);
        assert_eq!(refusal(Snapshot::open_copied(&path)), expected);
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut file = sample();
    let length = file.len();
    file.extend(b"more");
    assert_eq!(
        refusal(Snapshot::from_bytes(file)),
        format!("4 bytes follow the {length} bytes of the snapshot")
    );
}

#[test]
fn every_flipped_bit_of_header_and_table_is_noticed_on_opening() {
    let file = small_sample();
    let table = header_of(&file).table_offset as usize..file.len();
    for place in (0..HEADER_BYTES).chain(table) {
        for bit in 0..8 {
            let mut flipped = file.clone();
            flipped[place] ^= 1 << bit;
            let message = refusal(Snapshot::from_bytes(flipped));
            let expected = if place < 8 {
                "not a Tamis snapshot"
            } else if place < HEADER_BYTES {
                "the header of the snapshot is damaged"
            } else {
                "the section table of the snapshot is damaged"
            };
            assert!(message.starts_with(expected), "byte {place}, bit {bit}: {message}");
        }
    }
}

#[test]
fn flipped_bytes_of_a_section_are_found_with_their_place() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    let file = sample();
    let large = Snapshot::from_bytes(file.clone()).unwrap().find("large").unwrap().bytes.clone();
    for place in [0, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 5, large.len() - 1] {
        let mut flipped = file.clone();
        flipped[large.start + place] ^= 0x10;
        std::fs::write(&path, &flipped).unwrap();
        let snapshot = Snapshot::open(&path).unwrap();

        let block = place / BLOCK_BYTES;
        let start = large.start + block * BLOCK_BYTES;
        let end = large.end.min(start + BLOCK_BYTES);
        let expected = format!(
            "{}: section `large` is damaged: the checksum of its block {block} \
             (bytes {start} to {end} of the file) is wrong",
            path.display()
        );
        assert_eq!(refusal(snapshot.check("large")), expected);
        assert_eq!(refusal(snapshot.check("large")), expected, "damage is not forgotten");
        assert_eq!(refusal(snapshot.verify()), expected);
        for (name, range) in [("small", 0..12), ("texts", 0..7)] {
            snapshot.check(name).unwrap();
            snapshot.check_range(name, range).unwrap();
        }
        for other in 0..4 {
            let touched = snapshot.check_range("large", other * BLOCK_BYTES..other * BLOCK_BYTES + 1);
            assert_eq!(touched.is_err(), other == block);
        }
    }
}

#[test]
fn of_several_damaged_blocks_the_first_is_named() {
    let mut writer = SnapshotWriter::in_memory();
    writer.section("blocks", &vec![7u8; 40 * BLOCK_BYTES]).unwrap();
    let mut file = writer.finish(1).unwrap();
    let start = Snapshot::from_bytes(file.clone()).unwrap().find("blocks").unwrap().bytes.start;
    for block in [39, 11, 12, 30] {
        file[start + block * BLOCK_BYTES] = 8;
    }
    let snapshot = Snapshot::from_bytes(file).unwrap();
    for _ in 0..5 {
        assert!(refusal(snapshot.check("blocks")).contains("its block 11 "));
        assert!(refusal(snapshot.verify()).contains("its block 11 "));
    }
}

#[test]
fn what_was_checked_is_not_read_again() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    save_sample(&path, 1);
    let snapshot = Snapshot::open(&path).unwrap();
    snapshot.check_range("large", 0..BLOCK_BYTES + 1).unwrap();

    // Break the rule that files are not modified in place, to see which blocks are read.
    let start = snapshot.find("large").unwrap().bytes.start;
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let zeros = vec![0; snapshot.find("large").unwrap().bytes.len()];
    file.seek(SeekFrom::Start(start as u64)).unwrap();
    file.write_all(&zeros).unwrap();

    snapshot.check_range("large", 5..2 * BLOCK_BYTES).unwrap();
    assert!(refusal(snapshot.check_range("large", 5..2 * BLOCK_BYTES + 1)).contains("block 2 "));
    assert!(refusal(snapshot.check("large")).contains("block 2 "));
    assert!(refusal(snapshot.verify()).contains("block 0 "), "verify trusts nothing");
}

#[test]
fn damaged_checksums_and_padding_are_found_too() {
    let file = sample();
    let header = header_of(&file);
    let mut flipped = file.clone();
    flipped[header.checksums_offset as usize] ^= 1;
    let snapshot = Snapshot::from_bytes(flipped).unwrap();
    assert!(refusal(snapshot.check("small")).contains("section `small` is damaged"));
    snapshot.check("large").unwrap();

    for place in [HEADER_BYTES + 12, header.checksums_offset as usize - 1, header.table_offset as usize - 1] {
        let mut flipped = file.clone();
        assert_eq!(flipped[place], 0);
        flipped[place] = 1;
        let snapshot = Snapshot::from_bytes(flipped).unwrap();
        let message = refusal(snapshot.verify());
        assert_eq!(message, format!("byte {place} lies between sections and is not zero"));
    }
}

#[test]
fn foreign_files_are_called_foreign() {
    let folder = TestFolder::new();
    let path = folder.path("rules.tamis");
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".repeat(20);
    let text = b"age > 5 AND country = 'CA'\n".repeat(20);
    let short = b"TAM-".to_vec();
    let line_ending = |byte| if byte == b'\n' { vec![b'\r', b'\n'] } else { vec![byte] };
    let translated = small_sample().into_iter().flat_map(line_ending).collect();
    for content in [png, text, short, vec![0; 4096], translated] {
        std::fs::write(&path, content).unwrap();
        for opened in [Snapshot::open(&path), Snapshot::open_copied(&path)] {
            assert!(refusal(opened).contains("not a Tamis snapshot"));
        }
    }
    assert!(refusal(Snapshot::open(&folder.0)).contains("it is a folder, not a Tamis snapshot"));
    assert!(refusal(Snapshot::open("/dev/zero")).contains("it is no regular file"));
    let missing = Snapshot::open(folder.path("missing.tamis")).unwrap_err();
    assert!(matches!(&missing, Error::Io(error) if error.kind() == std::io::ErrorKind::NotFound));
    assert!(missing.to_string().contains("missing.tamis"), "{missing}");
}

#[test]
fn other_versions_and_byte_orders_are_told_from_damage() {
    for version in [OLDEST_VERSION - 1, FORMAT_VERSION + 1] {
        let message = refusal(Snapshot::from_bytes(crafted(|header, _| header.format_version = version)));
        let expected = format!(
            "the snapshot has format version {version}, this Tamis reads versions {OLDEST_VERSION} to {FORMAT_VERSION};"
        );
        assert!(message.starts_with(&expected), "{message}");
    }
    for version in OLDEST_VERSION..=FORMAT_VERSION {
        assert!(Snapshot::from_bytes(crafted(|header, _| header.format_version = version)).is_ok());
    }
    let swapped = crafted(|header, _| header.byte_order = header.byte_order.swap_bytes());
    assert!(refusal(Snapshot::from_bytes(swapped)).contains("the other byte order"));
}

/// Files whose checksums are right but whose numbers are not: each must be refused, without overflow, panic
/// or an allocation of the claimed size.
#[test]
fn crafted_counts_and_offsets_are_refused() {
    type Change = fn(&mut Header, &mut [TableEntry]);
    let header_changes: &[Change] = &[
        |header, _| header.total_length = u64::MAX,
        |header, _| header.total_length = 0,
        |header, _| header.section_count = u64::MAX,
        |header, _| header.section_count = u64::MAX / ENTRY_BYTES as u64 + 2,
        |header, _| header.section_count -= 1,
        |header, _| header.section_count = 0,
        |header, _| header.table_offset = u64::MAX - 63,
        |header, _| header.table_offset += 64,
        |header, _| header.table_offset -= 64,
        |header, _| header.table_offset -= 8,
        |header, _| header.checksums_offset = u64::MAX - 63,
        |header, _| header.checksums_offset = header.table_offset,
        |header, _| header.checksums_offset = 0,
        |header, _| header.checksums_offset += 8,
        |header, _| header.block_count = u64::MAX,
        |header, _| header.block_count = u64::MAX / 8 + 1,
        |header, _| header.block_count += 1,
        |header, _| header.block_count -= 1,
    ];
    let table_changes: &[Change] = &[
        |_, table| table[0].offset = 0,
        |_, table| table[0].offset = u64::MAX,
        |_, table| table[0].offset = u64::MAX - 63,
        |_, table| table[0].offset += 4,
        |_, table| table[1].offset = table[0].offset,
        |_, table| table[3].offset = table[1].offset,
        |_, table| table.swap(0, 1),
        |header, table| table[3].offset = header.checksums_offset,
        |_, table| table[1].length = u64::MAX,
        |_, table| table[1].length = u64::MAX - table[1].offset + 1,
        |_, table| table[1].length += 8192,
        |_, table| table[1].length += 1,
        |_, table| table[1].length = 0,
        |_, table| table[1].element_size = 0,
        |_, table| table[1].element_size = u32::MAX,
        |_, table| table[0].element_size = 5,
        |_, table| table[1].first_block = u64::MAX,
        |_, table| table[1].first_block = 0,
        |_, table| table[0].name = [0; 32],
        |_, table| table[0].name = [0xFF; 32],
        |_, table| table[0].name[10] = b'x',
        |_, table| table[3].name = table[0].name,
    ];
    for (number, change) in header_changes.iter().chain(table_changes).enumerate() {
        let result = Snapshot::from_bytes(crafted(change));
        assert!(matches!(result, Err(Error::Snapshot(_))), "change {number} was not refused");
    }
}

#[test]
fn a_section_may_grow_into_its_padding_only_where_its_checksum_is_right() {
    let snapshot = Snapshot::from_bytes(crafted(|_, table| table[0].length += 4)).unwrap();
    assert_eq!(*snapshot.section::<u32>("small").unwrap(), [1, 2, 3, 0]);
    assert!(refusal(snapshot.check("small")).contains("section `small` is damaged"));
}

#[test]
fn checksums_inside_the_header_are_refused_where_no_section_is_in_their_way() {
    let mut file = SnapshotWriter::in_memory().finish(1).unwrap();
    let header = Header { checksums_offset: 0, ..header_of(&file) };
    file[..HEADER_BYTES].copy_from_slice(bytemuck::bytes_of(&header));
    layout::reseal(&mut file);
    assert!(refusal(Snapshot::from_bytes(file)).contains("checksums lie outside their place"));
}

#[test]
fn the_fuzzing_entry_reaches_intact_and_damaged_snapshots() {
    let file = sample();
    super::super::fuzz_snapshot(&file);
    super::super::fuzz_snapshot(&crafted(|_, table| table[0].length += 4));
    super::super::fuzz_snapshot(&file[..200]);
    super::super::fuzz_snapshot(b"");
}

/// A small file, so that mutations hit every part of it.
fn small_sample() -> Vec<u8> {
    let mut writer = SnapshotWriter::in_memory();
    writer.section("ids", &[7u64, 8, 9]).unwrap();
    writer.section("bits", &[1u8, 0, 1]).unwrap();
    writer.section::<u32>("none", &[]).unwrap();
    writer.finish(3).unwrap()
}

#[derive(Clone, Debug)]
enum Mutation {
    Set(prop::sample::Index, u8),
    SetWord(prop::sample::Index, u64),
    Truncate(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Copy(prop::sample::Index, prop::sample::Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = any::<prop::sample::Index>;
    let bytes = prop::collection::vec(any::<u8>(), 1..100);
    let word = prop_oneof![any::<u64>(), 0..300u64, (0..300u64).prop_map(|small| u64::MAX - small)];
    prop_oneof![
        4 => (place(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        4 => (place(), word).prop_map(|(at, word)| Mutation::SetWord(at, word)),
        1 => place().prop_map(Mutation::Truncate),
        1 => (place(), bytes).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        2 => (place(), place(), 1..128usize).prop_map(|(from, to, len)| Mutation::Copy(from, to, len)),
    ]
}

fn mutate(file: &mut Vec<u8>, mutation: &Mutation) {
    if file.is_empty() {
        return;
    }
    match mutation {
        Mutation::Set(at, byte) => *at.get_mut(file) = *byte,
        Mutation::SetWord(at, word) => {
            let start = at.index(file.len()) / 8 * 8;
            file.iter_mut().skip(start).zip(word.to_ne_bytes()).for_each(|(byte, new)| *byte = new);
        }
        Mutation::Truncate(at) => file.truncate(at.index(file.len())),
        Mutation::Insert(at, bytes) => {
            let at = at.index(file.len());
            file.splice(at..at, bytes.iter().copied());
        }
        Mutation::Copy(from, to, len) => {
            let from = from.index(file.len());
            let piece = file[from..file.len().min(from + len)].to_vec();
            let to = to.index(file.len());
            file.iter_mut().skip(to).zip(piece).for_each(|(byte, new)| *byte = new);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_snapshots_are_refused_or_give_back_the_same_values(
        mutations in prop::collection::vec(mutation(), 1..6),
    ) {
        let mut file = small_sample();
        mutations.iter().for_each(|mutation| mutate(&mut file, mutation));
        if let Ok(snapshot) = Snapshot::from_bytes(file.clone()) {
            prop_assert_eq!(snapshot.generation(), 3);
            prop_assert_eq!(snapshot.section_names().collect::<Vec<_>>(), ["ids", "bits", "none"]);
            if snapshot.check("ids").is_ok() {
                prop_assert_eq!(&*snapshot.section::<u64>("ids").unwrap(), &[7, 8, 9]);
            }
            if snapshot.check("bits").is_ok() {
                prop_assert_eq!(&*snapshot.section::<u8>("bits").unwrap(), &[1, 0, 1]);
            }
            if snapshot.verify().is_ok() {
                prop_assert_eq!(file.clone(), small_sample());
            }
        }
        super::super::fuzz_snapshot(&file);
    }
}
