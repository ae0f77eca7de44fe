//! Writes a file that appears at its path complete, or not at all.
//!
//! It is written under a temporary name in the same folder, made durable, and only then renamed over its
//! path, which POSIX does in one step. Whatever goes wrong before that (a full disk, an error of the caller,
//! a panic), the temporary file is removed and a file that was at the path is untouched. A process that is
//! killed leaves the temporary file (`.NAME.PID-NUMBER.tmp`) behind; it may be deleted.
//!
//! Readers that have the old file open or mapped keep it: the rename changes what the name means, not the old
//! file. The new file inherits neither the permissions nor the owner of the old one, and a symbolic link at the
//! path is replaced, not followed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Large enough that small sections are written together; larger pieces go straight to the file.
const BUFFER_BYTES: usize = 256 * 1024;

/// A file on its way to a path; see the module.
pub struct AtomicFile {
    file: BufWriter<File>,
    temporary: TemporaryPath,
    path: PathBuf,
}

/// A file that is removed when this is dropped.
struct TemporaryPath(PathBuf);

impl Drop for TemporaryPath {
    fn drop(&mut self) {
        // After a rename it is gone already; otherwise the error cannot be reported any more.
        let _ = fs::remove_file(&self.0);
    }
}

impl AtomicFile {
    /// Starts the file that [`commit`](Self::commit) will put at `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        let (temporary, file) = create_beside(path)?;
        Ok(Self { file: BufWriter::with_capacity(BUFFER_BYTES, file), temporary, path: path.to_owned() })
    }

    /// The path at which the file will appear.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the content durable and puts the file at its path.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.temporary.0, &self.path)?;
        sync_folder(folder_of(&self.path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Creates a new file in the folder of `path`: a rename is atomic only within one file system.
fn create_beside(path: &Path) -> io::Result<(TemporaryPath, File)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name =
        path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}-{number}.tmp", std::process::id()));
        let temporary = folder_of(path).join(temporary);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((TemporaryPath(temporary), file)),
            // Left behind by a killed process that had our id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
    }
}

/// Makes a rename in `folder` durable.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some file systems cannot sync a folder; they have no stronger promise to give.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}

/// Folders cannot be opened as files here; the system orders the rename itself.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
