//! The bytes of a snapshot file, and the rules by which a file is refused before anything in it is used.
//!
//! ```text
//!        0 ┌──────────────────────────────────────────────┐
//!          │ header, 128 bytes                            │ see `Header`; ends with its own checksum
//!      128 ├──────────────────────────────────────────────┤
//!          │ section 0: plain-old-data                    │ starts at a multiple of 64; a large one of 4096,
//!          ├ ─ ─ zeros up to the next start ─ ─ ─ ─ ─ ─ ─ ┤ so that its blocks are whole pages
//!          │ section 1                                    │
//!          │ …                                            │
//!          ├──────────────────────────────────────────────┤ checksums_offset, a multiple of 64
//!          │ u64 per block: its xxh3-64                   │ a block is 1 MiB of a section, the last one less;
//!          │ section 0's blocks, section 1's blocks, …    │ an empty section has none
//!          ├──────────────────────────────────────────────┤ table_offset, a multiple of 64
//!          │ section table, 64 bytes per section          │ see `TableEntry`; in the order of the file
//!          └──────────────────────────────────────────────┘ total_length
//! ```
//!
//! The table comes last because sections are streamed: their number and lengths are known at the end. Only
//! the header, which has a fixed size, is written twice.
//!
//! Numbers have the byte order of the machine that wrote the file (a mapped array must be readable as it is);
//! the byte-order mark refuses files of the other kind. *Every* version keeps the shape of the header, so
//! that a reader can tell "damaged" from "from a later version".
//!
//! The header's checksum covers the header, which holds the checksum of the table, so what opening relies on
//! is proven intact. The block checksums need none of their own: a damaged one makes its block fail.
//!
//! Opening reads the header and the table only. What it accepts satisfies [`Layout`]'s promise even if
//! someone crafted the file with correct checksums.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_64;

/// The latest version of the container, which this kernel reads and writes.
pub const FORMAT_VERSION: u32 = SEVERAL_SEGMENTS;

/// The earliest version that it reads. It writes this one wherever nothing of the file is new since then.
pub const OLDEST_VERSION: u32 = 12;

/// The version since which a file may hold several segments.
pub const SEVERAL_SEGMENTS: u32 = 13;

/// Sections are checksummed, and checked on first touch, in blocks of this many bytes.
pub const BLOCK_BYTES: usize = 1 << 20;

/// The longest name of a section, in bytes.
pub const MAX_NAME_BYTES: usize = 32;

/// The line ending after the name makes transfers show that translate line endings, as in PNG.
pub(super) const MAGIC: [u8; 8] = *b"TAMIS\0\r\n";

const BYTE_ORDER: u32 = 0x0A0B_0C0D;

/// Where sections may start: one cache line, and more than any plain type asks for.
pub(super) const ALIGNMENT: usize = 64;

/// Where sections of a block or more start.
pub(super) const PAGE: usize = 4096;

/// The first bytes of a snapshot. The shape is the same in every version.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Header {
    pub magic: [u8; 8],
    pub byte_order: u32,
    pub format_version: u32,
    pub generation: u64,
    pub total_length: u64,
    pub section_count: u64,
    pub table_offset: u64,
    pub checksums_offset: u64,
    pub block_count: u64,
    pub table_checksum: u64,
    /// xxh3-64 of the block checksums: headers of different content differ, also where length and generation agree.
    /// Nothing but the identity of the file rests on it.
    pub content_checksum: u64,
    pub reserved: [u64; 5],
    /// xxh3-64 of all bytes before it: the identity of the file.
    pub header_checksum: u64,
}

/// One line of the section table.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct TableEntry {
    /// UTF-8, filled up with zeros.
    pub name: [u8; MAX_NAME_BYTES],
    pub offset: u64,
    pub length: u64,
    pub element_size: u32,
    pub reserved: u32,
    /// Where the checksums of this section's blocks start, as an index into the block checksums.
    pub first_block: u64,
}

pub(super) const HEADER_BYTES: usize = size_of::<Header>();
pub(super) const ENTRY_BYTES: usize = size_of::<TableEntry>();
const CHECKSUM_BYTES: usize = size_of::<u64>();
/// Where the header's own checksum is.
pub(super) const SEALED_BYTES: usize = HEADER_BYTES - CHECKSUM_BYTES;

// Part of the format: a change here needs a new version.
const _: () = assert!(HEADER_BYTES == 128 && ENTRY_BYTES == 64);

impl Header {
    /// A header with everything but the places of the parts.
    pub fn new(generation: u64) -> Self {
        Self {
            magic: MAGIC,
            byte_order: BYTE_ORDER,
            format_version: OLDEST_VERSION,
            generation,
            ..Self::zeroed()
        }
    }

    /// Sets the header's own checksum.
    pub fn seal(&mut self) {
        self.header_checksum = xxh3_64(&bytemuck::bytes_of(self)[..SEALED_BYTES]);
    }

    /// Reads the header at the start of `bytes`, which belong to a file of `length` bytes.
    pub fn read(bytes: &[u8], length: u64) -> Result<Self, String> {
        let seen = &bytes[..bytes.len().min(MAGIC.len())];
        if seen.is_empty() {
            return Err("the file is empty, not a Tamis snapshot".into());
        }
        if !MAGIC.starts_with(seen) {
            return Err("not a Tamis snapshot (it does not start with `TAMIS`)".into());
        }
        let Some(header) = bytes.get(..HEADER_BYTES) else {
            let missing = HEADER_BYTES - bytes.len();
            return Err(format!("the snapshot is truncated: {missing} bytes of its header are missing"));
        };
        let header: Header = bytemuck::pod_read_unaligned(header);
        if header.byte_order == BYTE_ORDER.swap_bytes() {
            return Err(
                "the snapshot was written on a machine of the other byte order; build it again here".into()
            );
        }
        if xxh3_64(&bytes[..SEALED_BYTES]) != header.header_checksum || header.byte_order != BYTE_ORDER {
            return Err("the header of the snapshot is damaged (its checksum is wrong)".into());
        }
        if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&header.format_version) {
            let version = header.format_version;
            return Err(format!(
                "the snapshot has format version {version}, this Tamis reads versions {OLDEST_VERSION} to {FORMAT_VERSION}; \
                 open it with a Tamis that reads version {version}, or build it again"
            ));
        }
        match header.total_length {
            total if total > length => {
                Err(format!("the snapshot is truncated: {} of its {total} bytes are missing", total - length))
            }
            total if total < length => {
                Err(format!("{} bytes follow the {total} bytes of the snapshot", length - total))
            }
            _ => Ok(header),
        }
    }
}

impl TableEntry {
    /// An entry whose place is not known yet. The name was checked with [`check_name`].
    pub fn new(name: &str, element_size: u32) -> Self {
        let mut entry = Self { element_size, ..Self::zeroed() };
        entry.name[..name.len()].copy_from_slice(name.as_bytes());
        entry
    }

    /// The name, or `None` if it is empty, not UTF-8 or not filled up with zeros.
    pub fn name(&self) -> Option<&str> {
        let len = self.name.iter().position(|&byte| byte == 0).unwrap_or(MAX_NAME_BYTES);
        let (name, filling) = self.name.split_at(len);
        let valid = len > 0 && filling.iter().all(|&byte| byte == 0);
        valid.then(|| std::str::from_utf8(name).ok())?
    }
}

/// Refuses names that do not fit a table entry.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains('\0') {
        return Err(format!("a section's name has 1 to {MAX_NAME_BYTES} bytes and no NUL, unlike {name:?}"));
    }
    Ok(())
}

/// Where everything in one snapshot lies.
///
/// The promise: all ranges lie inside the file; sections are aligned, disjoint and in the order of the file,
/// hold whole elements and have different names; each block belongs to exactly one section.
pub(super) struct Layout {
    pub header: Header,
    pub sections: Vec<Section>,
    /// Indices into `sections`, in the order of their names.
    pub by_name: Vec<u32>,
    /// Where the block checksums lie.
    pub checksums: Range<usize>,
}

/// Where one section lies.
pub(super) struct Section {
    pub name: Box<str>,
    pub bytes: Range<usize>,
    pub element_size: usize,
    /// Its blocks, numbered through the whole file.
    pub blocks: Range<usize>,
}

impl Layout {
    /// Reads the layout of the snapshot `file`, or says why it cannot be one.
    pub fn read(file: &[u8]) -> Result<Self, String> {
        let header = Header::read(file, file.len() as u64)?;
        let table = part(file, header.table_offset, header.section_count, ENTRY_BYTES)
            .ok_or("the section table lies outside the snapshot")?;
        if xxh3_64(&file[table.clone()]) != header.table_checksum {
            return Err("the section table of the snapshot is damaged (its checksum is wrong)".into());
        }
        let checksums = part(file, header.checksums_offset, header.block_count, CHECKSUM_BYTES)
            .filter(|checksums| HEADER_BYTES <= checksums.start)
            .filter(|checksums| checksums.end <= table.start && table.end == file.len())
            .ok_or("the block checksums lie outside their place in the snapshot")?;

        let mut sections: Vec<Section> = Vec::with_capacity(table.len() / ENTRY_BYTES);
        let mut previous_end = HEADER_BYTES;
        let mut block_count = 0;
        for entry in file[table].chunks_exact(ENTRY_BYTES) {
            let entry: TableEntry = bytemuck::pod_read_unaligned(entry);
            let name = entry
                .name()
                .ok_or_else(|| format!("section number {} has an invalid name", sections.len()))?;
            let bytes = part(file, entry.offset, entry.length, 1)
                .filter(|bytes| previous_end <= bytes.start && bytes.end <= checksums.start)
                .ok_or_else(|| format!("section `{name}` lies outside its place in the snapshot"))?;
            let element_size = entry.element_size as usize;
            if element_size == 0 || !bytes.len().is_multiple_of(element_size) {
                return Err(format!(
                    "section `{name}` has {} bytes, no whole number of elements of {element_size} bytes",
                    bytes.len()
                ));
            }
            let blocks = block_count..block_count + bytes.len().div_ceil(BLOCK_BYTES);
            if entry.first_block != blocks.start as u64 {
                return Err(format!("section `{name}` claims the block checksums of another section"));
            }
            previous_end = bytes.end;
            block_count = blocks.end;
            sections.push(Section { name: name.into(), bytes, element_size, blocks });
        }
        if header.block_count != block_count as u64 {
            return Err(format!("{} block checksums for {block_count} blocks", header.block_count));
        }
        let by_name = order_by_name(&sections)?;
        Ok(Self { header, sections, by_name, checksums })
    }

    /// The section called `name`.
    pub fn find(&self, name: &str) -> Option<&Section> {
        let found = self.by_name.binary_search_by(|&i| (*self.sections[i as usize].name).cmp(name));
        found.ok().map(|position| &self.sections[self.by_name[position] as usize])
    }
}

/// The bytes of `count` elements of `size` bytes at `offset`: `None` if that is not inside `file` or not
/// aligned.
fn part(file: &[u8], offset: u64, count: u64, size: usize) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(count).ok()?.checked_mul(size)?)?;
    (end <= file.len() && start.is_multiple_of(ALIGNMENT)).then_some(start..end)
}

fn order_by_name(sections: &[Section]) -> Result<Vec<u32>, String> {
    let count = u32::try_from(sections.len()).map_err(|_| "too many sections".to_string())?;
    let mut by_name: Vec<u32> = (0..count).collect();
    let name = |i: u32| &*sections[i as usize].name;
    by_name.sort_unstable_by_key(|&i| name(i));
    match by_name.windows(2).find(|pair| name(pair[0]) == name(pair[1])) {
        Some(pair) => Err(format!("two sections are called `{}`", name(pair[0]))),
        None => Ok(by_name),
    }
}

/// Makes the checksums of the header and of the table right again in a changed `file`, as far as they lie
/// inside it: for tests and fuzzing of the rules that are behind the checksums.
pub(super) fn reseal(file: &mut [u8]) {
    let Some(header) = file.get(..HEADER_BYTES) else { return };
    let mut header: Header = bytemuck::pod_read_unaligned(header);
    if let Some(table) = part(file, header.table_offset, header.section_count, ENTRY_BYTES) {
        header.table_checksum = xxh3_64(&file[table]);
    }
    header.seal();
    file[..HEADER_BYTES].copy_from_slice(bytemuck::bytes_of(&header));
}
