//! Writes a snapshot: one section after another, each hashed block by block.

use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::Path;

use bytemuck::Pod;
use xxhash_rust::xxh3::xxh3_64;

use super::atomic_file::AtomicFile;
use super::layout::{self, ALIGNMENT, BLOCK_BYTES, HEADER_BYTES, Header, OLDEST_VERSION, PAGE, TableEntry};
use crate::{Error, Result};

/// Where a snapshot is written: an [`AtomicFile`], or a `Cursor<Vec<u8>>` for one in memory.
pub trait Sink: Write + Seek {
    /// What there is when everything has been written.
    type Output;

    /// What errors call it.
    fn target(&self) -> String;

    /// Completes the snapshot. Nothing is visible before; if it is dropped instead, nothing ever is.
    fn commit(self) -> io::Result<Self::Output>;
}

impl Sink for AtomicFile {
    type Output = ();

    fn target(&self) -> String {
        self.path().display().to_string()
    }

    fn commit(self) -> io::Result<()> {
        AtomicFile::commit(self)
    }
}

impl Sink for Cursor<Vec<u8>> {
    type Output = Vec<u8>;

    fn target(&self) -> String {
        "a snapshot in memory".into()
    }

    fn commit(self) -> io::Result<Vec<u8>> {
        Ok(self.into_inner())
    }
}

/// Writes a snapshot. Nothing appears at its path before [`finish`](Self::finish) has succeeded, and an
/// existing file is then replaced in one step; after an error, or if the writer is dropped, it is as it was.
///
/// ```no_run
/// use tamis_core::SnapshotWriter;
///
/// let mut writer = SnapshotWriter::create("rules.tamis")?;
/// writer.section("ids", &[7u64, 8, 9])?;
/// writer.section_bytes("texts", b"age > 5")?;
/// writer.finish(1)?;
/// # Ok::<(), tamis_core::Error>(())
/// ```
pub struct SnapshotWriter<S: Sink> {
    sink: S,
    position: u64,
    table: Vec<TableEntry>,
    checksums: Vec<u64>,
    /// Set while a section is being written; if it stays set, that section is incomplete.
    broken: bool,
    version: u32,
}

impl SnapshotWriter<AtomicFile> {
    /// Starts the snapshot that will be at `path`.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file =
            AtomicFile::create(path).map_err(|error| cannot_write(&path.display().to_string(), error))?;
        Self::new(file)
    }
}

impl SnapshotWriter<Cursor<Vec<u8>>> {
    /// Starts a snapshot in memory; [`finish`](Self::finish) returns its bytes.
    pub fn in_memory() -> Self {
        Self::new(Cursor::new(Vec::new())).expect("a vector takes every write")
    }
}

impl<S: Sink> SnapshotWriter<S> {
    /// Starts a snapshot in an empty `sink`.
    pub fn new(sink: S) -> Result<Self> {
        let mut writer = Self {
            sink,
            position: 0,
            table: Vec::new(),
            checksums: Vec::new(),
            broken: false,
            version: OLDEST_VERSION,
        };
        // Keeps the place of the header, which is known at the end.
        writer.write(&[0; HEADER_BYTES])?;
        Ok(writer)
    }

    /// Writes a section of `values`.
    pub fn section<T: Pod>(&mut self, name: &str, values: &[T]) -> Result<()> {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= ALIGNMENT) };
        layout::check_name(name).map_err(Error::Argument)?;
        if self.table.iter().any(|entry| entry.name() == Some(name)) {
            return Err(Error::Argument(format!("the snapshot already has a section `{name}`")));
        }
        let element_size = u32::try_from(size_of::<T>())
            .map_err(|_| Error::Argument(format!("the elements of section `{name}` are too large")))?;
        self.refuse_if_broken()?;

        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.broken = true;
        self.pad_to(if bytes.len() >= BLOCK_BYTES { PAGE } else { ALIGNMENT })?;
        let mut entry = TableEntry::new(name, element_size);
        entry.offset = self.position;
        entry.first_block = self.checksums.len() as u64;
        entry.length = bytes.len() as u64;
        for block in bytes.chunks(BLOCK_BYTES) {
            self.checksums.push(xxh3_64(block));
            self.write(block)?;
        }
        self.table.push(entry);
        self.broken = false;
        Ok(())
    }

    /// Notes that what is written cannot be read by those that know earlier versions only.
    pub fn needs_version(&mut self, version: u32) {
        self.version = self.version.max(version);
    }

    /// Writes a section of bytes.
    pub fn section_bytes(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.section(name, bytes)
    }

    /// Completes the snapshot and makes it visible: durable at its path, or as the bytes of a snapshot in
    /// memory.
    pub fn finish(mut self, generation: u64) -> Result<S::Output> {
        self.refuse_if_broken()?;
        let mut header = Header { format_version: self.version, ..Header::new(generation) };

        self.pad_to(ALIGNMENT)?;
        header.checksums_offset = self.position;
        header.block_count = self.checksums.len() as u64;
        let checksums = std::mem::take(&mut self.checksums);
        header.content_checksum = xxh3_64(bytemuck::cast_slice(&checksums));
        self.write(bytemuck::cast_slice(&checksums))?;

        self.pad_to(ALIGNMENT)?;
        header.table_offset = self.position;
        header.section_count = self.table.len() as u64;
        let table = std::mem::take(&mut self.table);
        header.table_checksum = xxh3_64(bytemuck::cast_slice(&table));
        self.write(bytemuck::cast_slice(&table))?;

        header.total_length = self.position;
        header.seal();
        self.sink.seek(SeekFrom::Start(0)).map_err(|error| cannot_write(&self.sink.target(), error))?;
        self.write(bytemuck::bytes_of(&header))?;
        let target = self.sink.target();
        self.sink.commit().map_err(|error| cannot_write(&target, error))
    }

    fn refuse_if_broken(&self) -> Result<()> {
        if self.broken {
            return Err(Error::Argument(
                "a section of this snapshot could not be written; start again".into(),
            ));
        }
        Ok(())
    }

    fn pad_to(&mut self, alignment: usize) -> Result<()> {
        let padding = self.position.next_multiple_of(alignment as u64) - self.position;
        self.write(&[0; PAGE][..padding as usize])
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes).map_err(|error| cannot_write(&self.sink.target(), error))?;
        self.position += bytes.len() as u64;
        Ok(())
    }
}

fn cannot_write(target: &str, error: io::Error) -> Error {
    Error::Io(io::Error::new(error.kind(), format!("cannot write {target}: {error}")))
}
