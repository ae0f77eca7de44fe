//! Snapshots: immutable files of named, checksummed sections of plain-old-data that a process maps into
//! memory.
//!
//! This module is only the container and does not know what the sections mean: an index writes its flat
//! arrays with a [`SnapshotWriter`] and gets them back as [`SharedSlice`]s from a [`Snapshot`], without copying.
//!
//! | file | explains |
//! |---|---|
//! | `layout` | what the bytes of the file are, and which files are refused |
//! | `writer` | how sections are written, one after the other |
//! | `atomic_file` | how a file is replaced as a whole or not at all |
//! | `reader` | how a file is opened and its sections found |
//! | `integrity` | how blocks are checked, on first use or all together |
//! | `shared_slice` | how a slice of plain values can live in a file: all `unsafe` of snapshots |
//!
//! ```
//! use tamis_core::{Snapshot, SnapshotWriter};
//!
//! let mut writer = SnapshotWriter::in_memory();
//! writer.section("priorities", &[3.5f64, 0.0])?;
//! let bytes = writer.finish(1)?;
//!
//! let snapshot = Snapshot::from_bytes(bytes)?;
//! snapshot.check("priorities")?;
//! assert_eq!(*snapshot.section::<f64>("priorities")?, [3.5, 0.0]);
//! # Ok::<(), tamis_core::Error>(())
//! ```

mod atomic_file;
mod fuzz;
mod integrity;
mod layout;
mod reader;
mod shared_slice;
mod writer;

#[cfg(test)]
mod tests;

pub use atomic_file::AtomicFile;
#[doc(hidden)]
pub use fuzz::fuzz_snapshot;
pub use layout::SEVERAL_SEGMENTS;
pub use reader::Snapshot;
pub use shared_slice::SharedSlice;
pub use writer::{Sink, SnapshotWriter};
