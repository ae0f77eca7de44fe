//! A segment in a snapshot file: one section per array, used in place.
//!
//! The sections of the first segment have plain names, `rows`; those of the others begin with their number, `2/rows`.
//!
//! Opening maps the arrays and reads nothing. The first use verifies the checksums of the arrays for matching, and that
//! every offset stays inside, so that no damaged file can cause a crash or a wrong match. Records are verified block by
//! block as they are read.

use std::sync::{Arc, OnceLock};

use bytemuck::{Pod, Zeroable};

use super::Segment;
use super::layout::Layout;
use super::layout_planner::{LayoutBasis, Sharing};
use super::scoring::Scoring;
use super::subscription_table::SubscriptionTable;
use super::validate::validate;
use crate::error::{Error, Result};
use crate::fork::get_or_init;
use crate::predicate::catalog::Catalog;
use crate::predicate::equality::Points;
use crate::predicate::interval_tree::IntervalTree;
use crate::predicate::patterns::ArraysReader;
use crate::predicate::residual::ResidualPredicates;
use crate::snapshot::{SEVERAL_SEGMENTS, Sink, Snapshot, SnapshotWriter};

/// The numbers of a segment that are not arrays.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Numbers {
    bits: u32,
    remembered: u32,
    single_row: u32,
    /// Keeps what follows at multiples of eight bytes.
    unused: u32,
    predicates: u64,
    nodes: u64,
    written_nodes: u64,
}

/// Verified when it is read, not before matching.
const RECORDS: &str = "records";

/// Names every array of a segment once, for writing and for reading.
macro_rules! sections {
    ($visit:ident, $segment:expr) => {
        $visit!("attributes", $segment.layout.catalog.terms);
        $visit!("attribute_entries", $segment.layout.catalog.entry_of);
        $visit!("asks_absence", $segment.layout.catalog.asks_absence);
        $visit!("point_tables", $segment.layout.catalog.points.tables);
        $visit!("point_slots", $segment.layout.catalog.points.slots);
        $visit!("point_keys", $segment.layout.catalog.points.keys);
        $visit!("point_bit_offsets", $segment.layout.catalog.points.bit_off);
        $visit!("point_bits", $segment.layout.catalog.points.bits);
        $visit!("cut_tables", $segment.layout.catalog.cut_tables);
        $visit!("cut_heads", $segment.layout.catalog.cuts.heads);
        $visit!("cut_rests", $segment.layout.catalog.cuts.rests);
        $visit!("interval_lists_tables", $segment.layout.catalog.interval_lists.tables);
        $visit!("interval_lists_starts", $segment.layout.catalog.interval_lists.starts);
        $visit!("interval_lists_offsets", $segment.layout.catalog.interval_lists.off);
        $visit!("interval_lists_keys", $segment.layout.catalog.interval_lists.keys);
        $visit!("interval_tree_nodes", $segment.layout.catalog.interval_tree.nodes);
        $visit!("interval_tree_by_low", $segment.layout.catalog.interval_tree.by_low);
        $visit!("interval_tree_by_high", $segment.layout.catalog.interval_tree.by_high);
        $visit!("strings", $segment.layout.catalog.pool);
        $visit!("access_offsets", $segment.layout.access_off);
        $visit!("access_entries", $segment.layout.entries);
        $visit!("block_bounds", $segment.layout.block_bounds);
        $visit!("heads", $segment.layout.heads);
        $visit!("code", $segment.layout.code);
        $visit!("rows", $segment.layout.rows);
        $visit!("int_ids", $segment.subscription_table.int_ids);
        $visit!("text_id_offsets", $segment.subscription_table.text_id_off);
        $visit!("text_ids", $segment.subscription_table.text_ids);
        $visit!("priorities", $segment.subscription_table.priorities);
        $visit!("starts", $segment.subscription_table.starts);
        $visit!("expiries", $segment.subscription_table.expiries);
        $visit!("record_offsets", $segment.subscription_table.record_off);
        $visit!("records", $segment.subscription_table.records);
        $visit!("tag_offsets", $segment.subscription_table.tag_off);
        $visit!("tags", $segment.subscription_table.tags);
        $visit!("tag_row_offsets", $segment.subscription_table.tag_rows_off);
        $visit!("tag_rows", $segment.subscription_table.tag_rows);
        $visit!("point_only", $segment.subscription_table.point_only);
        $visit!("score_bounds", $segment.scoring.bounds);
        $visit!("score_sketch_places", $segment.scoring.sketches.place);
        $visit!("score_sketches", $segment.scoring.sketches.words);
        $visit!("score_entry_bounds", $segment.scoring.entry_bounds.0);
        $visit!("score_code_offsets", $segment.scoring.code_off);
        $visit!("score_code", $segment.scoring.code);
        $visit!("score_block_bounds", $segment.scoring.block_bounds);
    };
}

/// Those that are there if some subscription has an owner.
macro_rules! owner_sections {
    ($visit:ident, $segment:expr) => {
        $visit!("owner_offsets", $segment.subscription_table.owner_off);
        $visit!("owners", $segment.subscription_table.owners);
        $visit!("owner_of_row", $segment.subscription_table.owner_of);
    };
}

/// What the names of the sections of a segment begin with.
fn prefix(number: usize) -> String {
    if number == 0 { String::new() } else { format!("{number}/") }
}

/// How many segments a snapshot has. All of its sections must belong to one of them.
pub fn segment_count(snapshot: &Snapshot) -> Result<usize> {
    let numbers = |number: usize| format!("{}numbers", prefix(number));
    let count = (1..).find(|number| !snapshot.has_section(&numbers(*number))).expect("files are finite");
    let segment_of = |name: &str| name.split_once('/').map_or(Some(0), |(number, _)| number.parse().ok());
    match snapshot.section_names().find(|name| segment_of(name).is_none_or(|number: usize| number >= count)) {
        Some(name) => Err(Error::Snapshot(format!("the section `{name}` belongs to no segment"))),
        None => Ok(count),
    }
}

/// Writes all arrays of a segment.
pub fn write<S: Sink>(segment: &Segment, number: usize, writer: &mut SnapshotWriter<S>) -> Result<()> {
    let prefix = prefix(number);
    if number > 0 {
        writer.needs_version(SEVERAL_SEGMENTS);
    }
    macro_rules! put {
        ($name:literal, $array:expr) => {
            writer.section(&format!("{prefix}{}", $name), &$array)?;
        };
    }
    sections!(put, segment);
    if segment.subscription_table.owner_count() > 0 {
        owner_sections!(put, segment);
    }
    let mut residual = vec![];
    segment.layout.catalog.residual.encode(&mut residual);
    writer.section_bytes(&format!("{prefix}residual"), &residual)?;
    let patterns = segment.layout.catalog.residual.arrays();
    if !patterns.numbers.is_empty() {
        writer.section(&format!("{prefix}pattern_numbers"), &patterns.numbers)?;
        writer.section(&format!("{prefix}pattern_wide"), &patterns.wide)?;
        writer.section_bytes(&format!("{prefix}pattern_bytes"), &patterns.bytes)?;
    }
    let numbers = Numbers {
        bits: segment.layout.catalog.bits,
        remembered: segment.layout.remembered,
        single_row: segment.layout.single_row,
        unused: 0,
        predicates: segment.sharing.predicates as u64,
        nodes: segment.sharing.nodes as u64,
        written_nodes: segment.sharing.written_nodes as u64,
    };
    writer.section(&format!("{prefix}numbers"), &[numbers])
}

/// Maps the arrays of a segment, whose predicates look at some of that many terms.
pub fn read(snapshot: &Arc<Snapshot>, number: usize, terms: usize) -> Result<Segment> {
    let prefix = prefix(number);
    let named = |name: &str| format!("{prefix}{name}");
    snapshot.check(&named("numbers"))?;
    let numbers = snapshot.section::<Numbers>(&named("numbers"))?;
    let numbers = numbers.first().ok_or_else(|| Error::Snapshot("the section `numbers` is empty".into()))?;
    let residual = snapshot.section::<u8>(&named("residual"))?;
    let patterns = snapshot.has_section(&named("pattern_numbers")).then(|| -> Result<_> {
        Ok(ArraysReader {
            numbers: snapshot.section(&named("pattern_numbers"))?,
            wide: snapshot.section(&named("pattern_wide"))?,
            bytes: snapshot.section(&named("pattern_bytes"))?,
        })
    });
    let mut segment = Segment {
        layout: Layout {
            catalog: Catalog {
                points: Points::default(),
                interval_tree: IntervalTree::default(),
                residual: Arc::new(ResidualPredicates::stored(residual, patterns.transpose()?)),
                bits: numbers.bits,
                ..Catalog::default()
            },
            remembered: numbers.remembered,
            single_row: numbers.single_row,
            ..Layout::default()
        },
        subscription_table: SubscriptionTable::default(),
        scoring: Scoring::default(),
        sharing: Sharing {
            predicates: numbers.predicates as usize,
            nodes: numbers.nodes as usize,
            written_nodes: numbers.written_nodes as usize,
        },
        layout_basis: LayoutBasis::default(),
        forms: None,
        origin: Some(Origin::new(snapshot.clone(), number, terms)),
        ..Segment::default()
    };
    macro_rules! take {
        ($name:literal, $array:expr) => {
            $array = snapshot.section(&named($name))?;
        };
    }
    sections!(take, segment);
    if snapshot.has_section(&named("owner_of_row")) {
        owner_sections!(take, segment);
    }
    Ok(segment)
}

/// The file behind a segment, and whether it has been verified.
pub struct Origin {
    snapshot: Arc<Snapshot>,
    /// What the names of its sections begin with, and the name of the one with records.
    prefix: String,
    records: String,
    /// How many terms the file has.
    terms: usize,
    verified: OnceLock<std::result::Result<(), String>>,
}

impl Origin {
    fn new(snapshot: Arc<Snapshot>, number: usize, terms: usize) -> Self {
        let prefix = prefix(number);
        let records = format!("{prefix}{RECORDS}");
        Self { snapshot, prefix, records, terms, verified: OnceLock::new() }
    }

    /// Whether the section belongs to this segment. The first one also answers for what all have in common.
    fn has(&self, section: &str) -> bool {
        match self.prefix.is_empty() {
            true => !section.contains('/'),
            false => section.starts_with(&self.prefix),
        }
    }

    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Verifies the arrays that matching reads, the first time; and that they were not overwritten, every time.
    pub fn verify_once(
        &self,
        layout: &Layout,
        subscription_table: &SubscriptionTable,
        scoring: &Scoring,
    ) -> Result<()> {
        self.snapshot.check_unchanged()?;
        let verified = get_or_init(&self.verified, || {
            self.verify(layout, subscription_table, scoring).map_err(|error| error.to_string())
        });
        verified.clone().map_err(Error::Snapshot)
    }

    pub fn is_verified(&self) -> bool {
        matches!(self.verified.get(), Some(Ok(()))) && self.snapshot.is_unchanged()
    }

    fn verify(
        &self,
        layout: &Layout,
        subscription_table: &SubscriptionTable,
        scoring: &Scoring,
    ) -> Result<()> {
        let names: Vec<String> = self.snapshot.section_names().map(Into::into).collect();
        for name in names.iter().filter(|name| self.has(name) && **name != self.records) {
            self.snapshot.check(name)?;
        }
        validate(layout, subscription_table, scoring, self.terms).map_err(|problem| {
            let path = self.snapshot.path().map_or("snapshot".into(), |path| path.display().to_string());
            Error::Snapshot(format!("{path}: {problem}"))
        })
    }

    /// Verifies the part of a cold section that is about to be read.
    pub fn check_records(&self, from: u64, to: u64) -> Result<()> {
        self.snapshot.check_unchanged()?;
        self.snapshot.check_range(&self.records, from as usize..to as usize)
    }
}
