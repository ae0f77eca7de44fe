//! The other half of a segment: the data of each subscription, row by row, sorted by id.
//!
//! ```text
//! ids         integers, or offsets into the bytes of strings; rising, so that a row is found by search
//! priorities  one per row; no array at all when every priority is 0
//! starts      one per row; no array at all when everything has started
//! expiries    one per row; no array at all when nothing expires
//! records     the expression as written, weights, tags and payload, encoded; read when asked for
//! tags        names, and for each the rows that have it
//! owners      names, and one per row, counted from 1; no array at all when nothing has an owner
//! point_only  rows whose normal form is exact for point events only
//! ```

use rustc_hash::FxBuildHasher;

use super::record;
use crate::error::{Error, Result};
use crate::event::{TermId, Terms};
use crate::expr::Expr;
use crate::snapshot::SharedSlice;
use crate::subscription::{Id, IdKind, IdRef, Subscription};
use crate::term::Term;

pub const NEVER_EXPIRES: i64 = i64::MAX;
/// The start of what was active from the first.
pub const ALWAYS_STARTED: i64 = i64::MIN;

#[derive(Clone, Default)]
pub struct SubscriptionTable {
    pub int_ids: SharedSlice<i64>,
    pub text_id_off: SharedSlice<u64>,
    pub text_ids: SharedSlice<u8>,
    pub priorities: SharedSlice<f64>,
    pub starts: SharedSlice<i64>,
    pub expiries: SharedSlice<i64>,
    pub record_off: SharedSlice<u64>,
    pub records: SharedSlice<u8>,
    pub tag_off: SharedSlice<u64>,
    pub tags: SharedSlice<u8>,
    pub tag_rows_off: SharedSlice<u32>,
    pub tag_rows: SharedSlice<u32>,
    pub owner_off: SharedSlice<u64>,
    pub owners: SharedSlice<u8>,
    /// 0 for none.
    pub owner_of: SharedSlice<u32>,
    pub point_only: SharedSlice<u32>,
}

impl SubscriptionTable {
    pub fn len(&self) -> usize {
        self.record_off.len().saturating_sub(1)
    }

    pub fn id_kind(&self) -> IdKind {
        if self.text_id_off.is_empty() { IdKind::Int } else { IdKind::Str }
    }

    pub fn int_id(&self, row: u32) -> i64 {
        self.int_ids[row as usize]
    }

    /// Appends the ids of rows of a segment that holds integers.
    pub fn add_int_ids(&self, rows: &[u32], ids: &mut Vec<i64>) {
        let own = &self.int_ids;
        match (own.first(), own.last()) {
            // They are consecutive. Looking each up would read a line of memory for every match.
            (Some(first), Some(last)) if last.checked_sub(*first) == Some(own.len() as i64 - 1) => {
                ids.extend(rows.iter().map(|row| first + i64::from(*row)));
            }
            _ => ids.extend(rows.iter().map(|row| own[*row as usize])),
        }
    }

    /// The id of a row of a segment that holds strings. Bytes are checked when a snapshot is opened.
    pub fn text_id(&self, row: u32) -> &str {
        std::str::from_utf8(slice(&self.text_id_off, &self.text_ids, row as usize)).unwrap_or_default()
    }

    pub fn id_ref(&self, row: u32) -> IdRef<'_> {
        match self.id_kind() {
            IdKind::Int => IdRef::Int(self.int_id(row)),
            IdKind::Str => IdRef::Str(self.text_id(row)),
        }
    }

    pub fn id(&self, row: u32) -> Id {
        match self.id_kind() {
            IdKind::Int => Id::Int(self.int_id(row)),
            IdKind::Str => Id::Str(self.text_id(row).into()),
        }
    }

    /// The order of two ids of one kind.
    pub fn compare_ids(&self, row: u32, other: &SubscriptionTable, other_row: u32) -> std::cmp::Ordering {
        match self.id_kind() {
            IdKind::Int => self.int_id(row).cmp(&other.int_id(other_row)),
            IdKind::Str => self.text_id(row).as_bytes().cmp(other.text_id(other_row).as_bytes()),
        }
    }

    pub fn find(&self, id: &Id) -> Option<u32> {
        let (mut from, mut to) = (0, self.len() as u32);
        if let (Id::Int(id), IdKind::Int) = (id, self.id_kind()) {
            // Ids often rise as they come: most segments hold none that large, or that small.
            return match (self.int_ids.first(), self.int_ids.last()) {
                (Some(first), Some(last)) if (first..=last).contains(&id) => {
                    self.int_ids.binary_search(id).ok().map(|row| row as u32)
                }
                _ => None,
            };
        }
        let (Id::Str(id), IdKind::Str) = (id, self.id_kind()) else { return None };
        while from < to {
            let middle = from + (to - from) / 2;
            match self.text_id(middle).as_bytes().cmp(id.as_bytes()) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }

    pub fn priority(&self, row: u32) -> f64 {
        self.priorities.get(row as usize).copied().unwrap_or(0.0)
    }

    pub fn expires(&self, row: u32) -> i64 {
        self.expiries.get(row as usize).copied().unwrap_or(NEVER_EXPIRES)
    }

    pub fn starts(&self, row: u32) -> i64 {
        self.starts.get(row as usize).copied().unwrap_or(ALWAYS_STARTED)
    }

    /// Whether every row is active at any moment.
    pub fn is_timeless(&self) -> bool {
        self.starts.is_empty() && self.expiries.is_empty()
    }

    /// Whether a row has started and has not expired.
    pub fn is_active(&self, row: u32, now: i64) -> bool {
        self.starts(row) <= now && now < self.expires(row)
    }

    pub fn record(&self, row: u32) -> &[u8] {
        slice(&self.record_off, &self.records, row as usize)
    }

    pub fn subscription(&self, row: u32, terms: &Terms) -> Result<Subscription> {
        let mut subscription = record::decode(self.id(row), self.record(row), terms)?;
        subscription.priority = self.priority(row);
        let expires = self.expires(row);
        subscription.expires = (expires != NEVER_EXPIRES).then_some(expires);
        let starts = self.starts(row);
        subscription.starts = (starts != ALWAYS_STARTED).then_some(starts);
        subscription.owner = self.owner(row).map(Into::into);
        Ok(subscription)
    }

    /// The expression of a row as it was written.
    pub fn expression(&self, row: u32, terms: &Terms) -> Result<Expr> {
        record::expression(self.id(row), self.record(row), terms)
    }

    pub fn tag_count(&self) -> usize {
        self.tag_off.len().saturating_sub(1)
    }

    pub fn tag_name(&self, tag: usize) -> &str {
        std::str::from_utf8(slice(&self.tag_off, &self.tags, tag)).unwrap_or_default()
    }

    /// The rows that have a tag, rising.
    pub fn rows_with_tag(&self, name: &str) -> &[u32] {
        let mut tags = 0..self.tag_count();
        match tags.find(|tag| self.tag_name(*tag) == name) {
            Some(tag) => &self.tag_rows[self.tag_rows_off[tag] as usize..self.tag_rows_off[tag + 1] as usize],
            None => &[],
        }
    }

    pub fn owner_count(&self) -> usize {
        self.owner_off.len().saturating_sub(1)
    }

    pub fn owner_name(&self, owner: u32) -> &str {
        std::str::from_utf8(slice(&self.owner_off, &self.owners, owner as usize)).unwrap_or_default()
    }

    /// The number of a row's owner.
    #[inline]
    pub fn owner_number(&self, row: u32) -> Option<u32> {
        self.owner_of.get(row as usize).copied().unwrap_or(0).checked_sub(1)
    }

    pub fn owner(&self, row: u32) -> Option<&str> {
        self.owner_number(row).map(|owner| self.owner_name(owner))
    }

    pub fn bytes(&self) -> [(&'static str, usize); 3] {
        [
            ("ids", self.int_ids.byte_len() + self.text_id_off.byte_len() + self.text_ids.byte_len()),
            ("expressions and payloads", self.record_off.byte_len() + self.records.byte_len()),
            (
                "priorities, starts, expiries, tags and owners",
                self.priorities.byte_len()
                    + self.starts.byte_len()
                    + self.expiries.byte_len()
                    + self.tag_off.byte_len()
                    + self.tags.byte_len()
                    + self.tag_rows_off.byte_len()
                    + self.tag_rows.byte_len()
                    + self.owner_off.byte_len()
                    + self.owners.byte_len()
                    + self.owner_of.byte_len()
                    + self.point_only.byte_len(),
            ),
        ]
    }
}

fn slice<'a>(offsets: &[u64], bytes: &'a [u8], at: usize) -> &'a [u8] {
    bytes.get(offsets[at] as usize..offsets[at + 1] as usize).unwrap_or_default()
}

/// A value per row, of which nothing is stored until one is not the usual one.
#[derive(Default)]
struct Rare<T>(Vec<T>);

impl<T: Copy + PartialEq> Rare<T> {
    /// Adds the value of row number `row`.
    fn push(&mut self, row: usize, value: T, usual: T) {
        if value != usual || !self.0.is_empty() {
            self.0.resize(row, usual);
            self.0.push(value);
        }
    }

    /// Adds the values of another: one has `rows` rows, the other `more`.
    fn append(&mut self, rows: usize, other: Self, more: usize, usual: T) {
        if !self.0.is_empty() || !other.0.is_empty() {
            self.0.resize(rows, usual);
            self.0.extend(other.0);
            self.0.resize(rows + more, usual);
        }
    }
}

/// Collects rows in rising order of id.
#[derive(Default)]
pub struct SubscriptionTableBuilder {
    int_ids: Vec<i64>,
    text_id_off: Vec<u64>,
    text_ids: Vec<u8>,
    rows: usize,
    priorities: Rare<f64>,
    starts: Rare<i64>,
    expiries: Rare<i64>,
    record_off: Vec<u64>,
    records: Vec<u8>,
    /// For the expression of one record while it is encoded.
    room: Vec<u8>,
    tags: std::collections::BTreeMap<Box<str>, Vec<u32>>,
    /// Numbered in the order of their first rows.
    owners: hashbrown::HashMap<String, u32, FxBuildHasher>,
    owner_of: Rare<u32>,
    point_only: Vec<u32>,
}

impl SubscriptionTableBuilder {
    /// Adds a row. `number` gives the number that stands for a term; it is asked in the order in which predicates are
    /// written.
    pub fn push(
        &mut self,
        subscription: &Subscription,
        point_only: bool,
        number: &mut dyn FnMut(&Term) -> TermId,
    ) -> Result<()> {
        let starts = subscription.starts.unwrap_or(ALWAYS_STARTED);
        let expires = subscription.expires.unwrap_or(NEVER_EXPIRES);
        self.push_fields(subscription.id.as_ref(), subscription.priority, [starts, expires], point_only)?;
        self.push_tags(&subscription.tags);
        self.push_owner(subscription.owner.as_deref());
        record::encode(subscription, &mut self.records, &mut self.room, number);
        Ok(())
    }

    /// Adds a row as another segment of the same index holds it.
    pub fn push_copy(&mut self, other: &SubscriptionTable, row: u32, point_only: bool) -> Result<()> {
        let active = [other.starts(row), other.expires(row)];
        self.push_fields(other.id_ref(row), other.priority(row), active, point_only)?;
        if other.tag_count() > 0 {
            self.push_tags(&record::tags(other.id(row), other.record(row))?);
        }
        self.push_owner(other.owner(row));
        self.records.extend_from_slice(other.record(row));
        Ok(())
    }

    fn push_fields(
        &mut self,
        id: IdRef<'_>,
        priority: f64,
        [starts, expires]: [i64; 2],
        point_only: bool,
    ) -> Result<()> {
        let row = self.len() as u32;
        if row == u32::MAX - 1 {
            return Err(Error::Argument("a segment holds at most 4 billion subscriptions".into()));
        }
        match id {
            IdRef::Int(id) => self.int_ids.push(id),
            IdRef::Str(id) => {
                self.text_id_off.push(self.text_ids.len() as u64);
                self.text_ids.extend_from_slice(id.as_bytes());
            }
        }
        self.priorities.push(self.rows, priority, 0.0);
        self.starts.push(self.rows, starts, ALWAYS_STARTED);
        self.expiries.push(self.rows, expires, NEVER_EXPIRES);
        self.rows += 1;
        self.record_off.push(self.records.len() as u64);
        if point_only {
            self.point_only.push(row);
        }
        Ok(())
    }

    /// Of the row that was added last.
    fn push_tags(&mut self, tags: &[Box<str>]) {
        let row = self.len() as u32 - 1;
        for tag in tags {
            let rows = self.tags.entry(tag.clone()).or_default();
            if rows.last() != Some(&row) {
                rows.push(row);
            }
        }
    }

    /// Of the row that was added last.
    fn push_owner(&mut self, owner: Option<&str>) {
        let number = owner.map_or(0, |owner| self.owner_number(owner));
        self.owner_of.push(self.rows - 1, number, 0);
    }

    /// The number of an owner, counted from 1.
    fn owner_number(&mut self, owner: &str) -> u32 {
        let next = self.owners.len() as u32 + 1;
        *self.owners.entry_ref(owner).or_insert(next)
    }

    /// Adds all rows of another behind its own. If the other's attributes have other numbers here, the
    /// records are rewritten: `renumber` has the attributes there and here.
    pub fn append(
        &mut self,
        other: SubscriptionTableBuilder,
        renumber: Option<(&Terms, &mut Terms)>,
    ) -> Result<()> {
        let first_row = self.len() as u32;
        let (first_text, first_record) = (self.text_ids.len() as u64, self.records.len() as u64);
        self.int_ids.extend(other.int_ids);
        self.text_id_off.extend(other.text_id_off.iter().map(|at| at + first_text));
        self.text_ids.extend(other.text_ids);
        self.priorities.append(self.rows, other.priorities, other.rows, 0.0);
        self.starts.append(self.rows, other.starts, other.rows, ALWAYS_STARTED);
        self.expiries.append(self.rows, other.expiries, other.rows, NEVER_EXPIRES);
        let mut owner_of = other.owner_of;
        if !owner_of.0.is_empty() {
            let mut numbers = vec![0; other.owners.len() + 1];
            // In the order of their numbers there, so that the rows decide and not the table.
            let mut owners: Vec<_> = other.owners.into_iter().collect();
            owners.sort_unstable_by_key(|(_, number)| *number);
            for (owner, there) in owners {
                numbers[there as usize] = self.owner_number(&owner);
            }
            owner_of.0.iter_mut().for_each(|number| *number = numbers[*number as usize]);
        }
        self.owner_of.append(self.rows, owner_of, other.rows, 0);
        self.rows += other.rows;
        self.point_only.extend(other.point_only.iter().map(|row| row + first_row));
        for (tag, rows) in other.tags {
            self.tags.entry(tag).or_default().extend(rows.iter().map(|row| row + first_row));
        }
        let Some((there, here)) = renumber else {
            self.record_off.extend(other.record_off.iter().map(|at| at + first_record));
            self.records.extend(other.records);
            return Ok(());
        };
        for (at, from) in other.record_off.iter().enumerate() {
            let to = other.record_off.get(at + 1).map_or(other.records.len(), |to| *to as usize);
            // Damage is impossible here, so the id that an error would name does not matter.
            let subscription = record::decode(Id::Int(0), &other.records[*from as usize..to], there)?;
            self.record_off.push(self.records.len() as u64);
            record::encode(&subscription, &mut self.records, &mut self.room, &mut |term| {
                here.intern_term(term)
            });
        }
        Ok(())
    }

    /// The bytes of all records so far.
    pub fn record_bytes(&self) -> usize {
        self.records.len()
    }

    /// Makes room for more rows with this many bytes of records.
    pub fn reserve(&mut self, rows: usize, record_bytes: usize) {
        // One more: the end of the last record.
        self.record_off.reserve_exact(rows + 1);
        self.records.reserve_exact(record_bytes);
        if self.text_id_off.is_empty() {
            self.int_ids.reserve_exact(rows);
        } else {
            self.text_id_off.reserve_exact(rows + 1);
        }
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    /// One per row, or none when all are 0.
    pub fn priorities(&self) -> &[f64] {
        &self.priorities.0
    }

    pub fn finish(mut self) -> SubscriptionTable {
        self.record_off.push(self.records.len() as u64);
        if !self.text_id_off.is_empty() {
            self.text_id_off.push(self.text_ids.len() as u64);
        }
        let (mut tag_off, mut tags, mut tag_rows_off, mut tag_rows) =
            (vec![0u64], vec![], vec![0u32], vec![]);
        for (name, rows) in &self.tags {
            tags.extend_from_slice(name.as_bytes());
            tag_off.push(tags.len() as u64);
            tag_rows.extend_from_slice(rows);
            tag_rows_off.push(tag_rows.len() as u32);
        }
        let mut names: Vec<_> = self.owners.into_iter().collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        let (mut owner_off, mut owners) = (vec![], vec![]);
        for (name, _) in names {
            owner_off.push(owners.len() as u64);
            owners.extend_from_slice(name.as_bytes());
        }
        if !owner_off.is_empty() {
            owner_off.push(owners.len() as u64);
        }
        SubscriptionTable {
            int_ids: shrunk(self.int_ids),
            text_id_off: shrunk(self.text_id_off),
            text_ids: shrunk(self.text_ids),
            priorities: shrunk(self.priorities.0),
            starts: shrunk(self.starts.0),
            expiries: shrunk(self.expiries.0),
            record_off: shrunk(self.record_off),
            records: shrunk(self.records),
            tag_off: tag_off.into(),
            tags: tags.into(),
            tag_rows_off: tag_rows_off.into(),
            tag_rows: tag_rows.into(),
            owner_off: owner_off.into(),
            owners: owners.into(),
            owner_of: shrunk(self.owner_of.0),
            point_only: self.point_only.into(),
        }
    }
}

fn shrunk<T: bytemuck::Pod>(mut values: Vec<T>) -> SharedSlice<T> {
    values.shrink_to_fit();
    values.into()
}
