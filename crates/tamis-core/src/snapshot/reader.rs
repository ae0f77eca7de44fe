//! Opens a snapshot and finds its sections.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;

use super::integrity::Checked;
use super::layout::{Header, Layout, SEALED_BYTES, Section};
use super::shared_slice::{Memory, SharedSlice};
use crate::{Error, Result};

/// An open snapshot. Clones share it; buffers taken from it keep it alive.
///
/// Opening proves the header and the section table (their checksums, and that every section lies inside the
/// file); the content of a section is proven by [`check`](Self::check), [`check_range`](Self::check_range) or
/// [`verify`](Self::verify). A damaged section that was not checked gives wrong values, never undefined
/// behaviour.
///
/// The file may be replaced while it is open ([`SnapshotWriter`](super::SnapshotWriter) renames a new one
/// over it): an open snapshot stays what it was. It must not be modified or truncated in place;
/// [`check_unchanged`](Self::check_unchanged) notices another snapshot in its place, and
/// [`open_copied`](Self::open_copied) is safe from it.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub memory: Arc<Memory>,
    pub layout: Layout,
    pub checked: Checked,
    path: Option<PathBuf>,
}

impl Snapshot {
    /// Maps the snapshot at `path` into memory, read-only. Takes microseconds whatever its size; processes
    /// that map the same file share one copy.
    ///
    /// If another program truncates the file in place while it is mapped, reading the lost part ends the
    /// process (SIGBUS).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path.as_ref(), Memory::map)
    }

    /// Reads the snapshot at `path` into the heap instead of mapping it: for file systems on which the file
    /// might be truncated or overwritten in place.
    pub fn open_copied(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path.as_ref(), |mut file, len| Memory::copy(&mut file, len))
    }

    /// Opens a snapshot from its bytes, as [`as_bytes`](Self::as_bytes) gives them. They are copied once, to
    /// where sections are aligned.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let describe = |reason| describe(None, reason);
        // Refused before anything is copied, as for a file.
        Header::read(&bytes, bytes.len() as u64).map_err(describe)?;
        let memory = Memory::copy(&mut bytes.as_slice(), bytes.len())?;
        Self::from_memory(memory, None)
    }

    fn open_with(path: &Path, load: impl Fn(&File, usize) -> io::Result<Memory>) -> Result<Self> {
        let cannot_open = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot open {}: {error}", path.display()))
        };
        // Asked before opening, which would wait for the other end of a pipe.
        let kind = std::fs::metadata(path).map_err(cannot_open)?.file_type();
        if !kind.is_file() {
            let what = if kind.is_dir() { "a folder" } else { "no regular file" };
            return Err(describe(Some(path), format!("it is {what}, not a Tamis snapshot")));
        }
        let mut file = File::open(path).map_err(cannot_open)?;
        let length = file.metadata().map_err(cannot_open)?.len();
        // The header is read, not mapped, so that what is mapped or copied is known to be a snapshot of that
        // length.
        let header = read_header(&mut file).map_err(cannot_open)?;
        Header::read(&header, length).map_err(|reason| describe(Some(path), reason))?;
        let length = usize::try_from(length)
            .map_err(|_| describe(Some(path), "it is larger than the address space".into()))?;
        let memory = load(&file, length).map_err(cannot_open)?;
        Self::from_memory(memory, Some(path.to_owned()))
    }

    fn from_memory(memory: Memory, path: Option<PathBuf>) -> Result<Self> {
        let layout = Layout::read(&memory).map_err(|reason| describe(path.as_deref(), reason))?;
        let checked = Checked::none_of(layout.header.block_count as usize);
        Ok(Self { inner: Arc::new(Inner { memory: Arc::new(memory), layout, checked, path }) })
    }

    /// The section called `name`, whose elements must have the size of `T`. Its content is not checked.
    pub fn section<T: Pod>(&self, name: &str) -> Result<SharedSlice<T>> {
        let section = self.find(name)?;
        if section.element_size != size_of::<T>() {
            return Err(self.error(format!(
                "the elements of section `{name}` have {} bytes, not {}",
                section.element_size,
                size_of::<T>()
            )));
        }
        SharedSlice::within(&self.inner.memory, section.bytes.clone()).ok_or_else(|| {
            self.error(format!("section `{name}` is not aligned for {}", std::any::type_name::<T>()))
        })
    }

    /// Whether the header is still the one that was opened: one cache line is looked at. Whoever copies another
    /// snapshot over this file writes its header first, so what was read *before* a check that holds is right.
    pub fn is_unchanged(&self) -> bool {
        let Inner { memory, layout, .. } = &*self.inner;
        memory.current_word(SEALED_BYTES) == layout.header.header_checksum
    }

    /// An error if the file was overwritten in place since it was opened.
    pub fn check_unchanged(&self) -> Result<()> {
        if self.is_unchanged() {
            return Ok(());
        }
        Err(self.error(
            "the file was overwritten while it was open, so what was read from it is lost; write a new file and \
             rename it over the old one, as saving an index does, and open it again"
                .into(),
        ))
    }

    /// The names of all sections, in the order in which they were written.
    pub fn section_names(&self) -> impl Iterator<Item = &str> {
        self.inner.layout.sections.iter().map(|section| &*section.name)
    }

    /// Whether there is a section called `name`.
    pub fn has_section(&self, name: &str) -> bool {
        self.inner.layout.find(name).is_some()
    }

    /// The generation that was given when the snapshot was written.
    pub fn generation(&self) -> u64 {
        self.inner.layout.header.generation
    }

    /// The version of the file format.
    pub fn format_version(&self) -> u32 {
        self.inner.layout.header.format_version
    }

    /// The path from which it was opened; `None` for one from bytes.
    pub fn path(&self) -> Option<&Path> {
        self.inner.path.as_deref()
    }

    /// The size of the whole snapshot in bytes.
    pub fn len_bytes(&self) -> usize {
        self.inner.memory.len()
    }

    /// The whole snapshot as it is in the file, for transfer to another process; the other side calls
    /// [`from_bytes`](Self::from_bytes).
    pub fn as_bytes(&self) -> &[u8] {
        &self.inner.memory
    }

    pub(super) fn find(&self, name: &str) -> Result<&Section> {
        self.inner
            .layout
            .find(name)
            .ok_or_else(|| self.error(format!("the snapshot has no section `{name}`")))
    }

    pub(super) fn error(&self, reason: String) -> Error {
        describe(self.path(), reason)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("path", &self.path())
            .field("generation", &self.generation())
            .field("len_bytes", &self.len_bytes())
            .field("sections", &self.inner.layout.sections.len())
            .finish()
    }
}

/// The first bytes of `file`, at most as many as a header has; `file` is left at its start.
fn read_header(file: &mut File) -> io::Result<Vec<u8>> {
    use std::io::{Read, Seek};
    let mut header = Vec::with_capacity(super::layout::HEADER_BYTES);
    file.take(super::layout::HEADER_BYTES as u64).read_to_end(&mut header)?;
    file.rewind()?;
    Ok(header)
}

fn describe(path: Option<&Path>, reason: String) -> Error {
    match path {
        Some(path) => Error::Snapshot(format!("{}: {reason}", path.display())),
        None => Error::Snapshot(reason),
    }
}
