//! Verifies that sections are undamaged: per block, on first use, or everything at once.
//!
//! Reading a whole snapshot on open would cost what mapping saves. So each block of 1 MiB is hashed on first
//! use, and one bit records that it was intact. Damage is not recorded: a damaged block fails every time.
//!
//! Large checks start their own threads instead of using a shared pool, because a pool does not survive `fork`, and a child
//! that waited for it would wait forever.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use super::layout::{BLOCK_BYTES, Section};
use super::reader::{Inner, Snapshot};
use crate::Result;

/// Starting a thread costs about as much as hashing a few blocks.
const BLOCKS_PER_THREAD: usize = 4;

/// Hashing is limited by memory bandwidth, which more threads do not widen.
const MAX_THREADS: usize = 8;

/// One bit per block: it was found intact.
pub(super) struct Checked(Box<[AtomicU64]>);

impl Checked {
    pub fn none_of(blocks: usize) -> Self {
        Self((0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    // Relaxed throughout: a bit says something about bytes that never change, and publishes no other data.

    fn contains(&self, block: usize) -> bool {
        self.0[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1 == 1
    }

    fn insert(&self, block: usize) {
        self.0[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
    }
}

/// What [`Snapshot::verify`] has proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub format_version: u32,
    pub generation: u64,
    /// The size of the whole snapshot.
    pub bytes: usize,
    /// In the order of the file.
    pub sections: Vec<SectionReport>,
}

/// One section in a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionReport {
    pub name: String,
    pub bytes: usize,
    pub element_size: usize,
    pub blocks: usize,
}

impl Snapshot {
    /// Proves that the section called `name` is as it was written. Costs a read of the section the first
    /// time, and nearly nothing afterwards.
    pub fn check(&self, name: &str) -> Result<()> {
        let section = self.find(name)?;
        self.check_blocks(section.blocks.clone())
    }

    /// Proves the blocks that `bytes` of the section called `name` touch; those that were proven before are
    /// not read.
    pub fn check_range(&self, name: &str, bytes: Range<usize>) -> Result<()> {
        let section = self.find(name)?;
        if bytes.start > bytes.end || bytes.end > section.bytes.len() {
            return Err(self.error(format!(
                "bytes {} to {} lie outside section `{name}`, which has {}",
                bytes.start,
                bytes.end,
                section.bytes.len()
            )));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let first = section.blocks.start;
        self.check_blocks(first + bytes.start / BLOCK_BYTES..first + bytes.end.div_ceil(BLOCK_BYTES))
    }

    /// Reads and proves everything, whatever was proven before, down to the zeros between sections.
    pub fn verify(&self) -> Result<Report> {
        let Inner { memory, layout, .. } = &*self.inner;
        let blocks: Vec<usize> = (0..layout.header.block_count as usize).collect();
        self.prove(&blocks)?;

        let ends = layout.sections.iter().map(|section| section.bytes.end);
        let starts = layout.sections.iter().map(|section| section.bytes.start);
        let gaps = std::iter::once(super::layout::HEADER_BYTES)
            .chain(ends)
            .zip(starts.chain([layout.checksums.start]))
            .chain([(layout.checksums.end, layout.header.table_offset as usize)]);
        for (start, end) in gaps {
            if let Some(place) = memory[start..end].iter().position(|&byte| byte != 0) {
                return Err(
                    self.error(format!("byte {} lies between sections and is not zero", start + place))
                );
            }
        }
        let report = |section: &Section| SectionReport {
            name: section.name.to_string(),
            bytes: section.bytes.len(),
            element_size: section.element_size,
            blocks: section.blocks.len(),
        };
        Ok(Report {
            format_version: self.format_version(),
            generation: self.generation(),
            bytes: self.len_bytes(),
            sections: layout.sections.iter().map(report).collect(),
        })
    }

    fn check_blocks(&self, blocks: Range<usize>) -> Result<()> {
        let unproven: Vec<usize> = blocks.filter(|&block| !self.inner.checked.contains(block)).collect();
        self.prove(&unproven)
    }

    /// Hashes `blocks`, remembers the intact ones and reports the first damaged one.
    fn prove(&self, blocks: &[usize]) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        // Of a file that became shorter the rest cannot be read.
        self.check_unchanged()?;
        let first_damaged = AtomicUsize::new(usize::MAX);
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(&block) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
                if self.inner.is_intact(block) {
                    self.inner.checked.insert(block);
                } else {
                    first_damaged.fetch_min(block, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads_for(blocks.len()) {
                // If no thread is to be had, this one does all the work.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        match first_damaged.into_inner() {
            usize::MAX => Ok(()),
            block => self.check_unchanged().and(Err(self.damage(block))),
        }
    }

    fn damage(&self, block: usize) -> crate::Error {
        let section = self.inner.section_of(block);
        let bytes = block_bytes(section, block);
        self.error(format!(
            "section `{}` is damaged: the checksum of its block {} (bytes {} to {} of the file) is wrong",
            section.name,
            block - section.blocks.start,
            bytes.start,
            bytes.end
        ))
    }
}

impl Inner {
    fn section_of(&self, block: usize) -> &Section {
        let sections = &self.layout.sections;
        &sections[sections.partition_point(|section| section.blocks.end <= block)]
    }

    fn is_intact(&self, block: usize) -> bool {
        let checksum = self.layout.checksums.start + block * size_of::<u64>();
        let expected: u64 = bytemuck::pod_read_unaligned(&self.memory[checksum..checksum + size_of::<u64>()]);
        xxh3_64(&self.memory[block_bytes(self.section_of(block), block)]) == expected
    }
}

/// Where `block`, one of `section`'s, lies in the file.
fn block_bytes(section: &Section, block: usize) -> Range<usize> {
    let start = section.bytes.start + (block - section.blocks.start) * BLOCK_BYTES;
    start..section.bytes.end.min(start + BLOCK_BYTES)
}

fn threads_for(blocks: usize) -> usize {
    let wanted = (blocks / BLOCKS_PER_THREAD).min(MAX_THREADS);
    if wanted < 2 {
        return 1;
    }
    std::thread::available_parallelism().map_or(1, |cores| wanted.min(cores.get()))
}
