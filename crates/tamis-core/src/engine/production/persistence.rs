//! Saves the production engine to a snapshot file, and opens it again.
//!
//! A snapshot holds one segment or several, the table of terms and the schema; nothing else is needed.

use std::sync::Arc;

use super::Production;
use super::merge::compact;
use super::view::{Part, View};
use crate::engine::quantified::new_terms;
use crate::engine::segment::Segment;
use crate::engine::segment::sections::{self, Origin};
use crate::error::{Error, Result};
use crate::event::{Schema, Terms};
use crate::expr::parse_term;
use crate::snapshot::{Sink, Snapshot, SnapshotWriter};
use crate::term::Uses;

impl Production {
    /// Writes the current version.
    pub(super) fn write<S: Sink>(
        &self,
        mut writer: SnapshotWriter<S>,
        schema: Option<&Schema>,
    ) -> Result<S::Output> {
        let view = self.view();
        view.parts.iter().try_for_each(|part| part.segment.prepare())?;
        let segments = compact(&view, &self.samples().snapshot())?;
        let (mut ends, mut texts) = (vec![0u64], vec![]);
        for term in view.terms.iter() {
            texts.extend_from_slice(term.name().as_bytes());
            ends.push(texts.len() as u64);
        }
        let uses: Vec<u64> = view
            .terms
            .uses()
            .flat_map(|(term, uses)| [u64::from(term.0), uses.all as u64, uses.of_false as u64])
            .collect();
        writer.section("term_offsets", &ends)?;
        writer.section_bytes("term_texts", &texts)?;
        writer.section("computed_terms", &uses)?;
        let schema = schema.map(Schema::to_json).unwrap_or_default();
        writer.section_bytes("schema", schema.as_bytes())?;
        for (number, segment) in segments.iter().enumerate() {
            sections::write(segment, number, &mut writer)?;
        }
        // Nothing may be kept of a file that was overwritten while it was read.
        view.parts.iter().try_for_each(|part| part.segment.prepare())?;
        writer.finish(view.generation)
    }

    /// The engine that a snapshot holds, and its schema.
    pub fn from_snapshot(snapshot: Snapshot) -> Result<(Self, Option<Schema>)> {
        let snapshot = Arc::new(snapshot);
        for name in ["term_offsets", "term_texts", "computed_terms", "schema"] {
            snapshot.check(name)?;
        }
        let terms = read_terms(&snapshot)?;
        let schema = snapshot.section::<u8>("schema")?;
        let schema = if schema.is_empty() { None } else { Some(Schema::from_json(&schema)?) };
        let numbers = 0..sections::segment_count(&snapshot)?;
        let segments: Vec<Segment> =
            numbers.map(|number| sections::read(&snapshot, number, terms.len())).collect::<Result<_>>()?;
        let rows = segments.iter().map(Segment::len).sum();
        let id_kind = (rows > 0).then(|| segments[0].subscription_table.id_kind());
        let parts = if rows > 0 { Part::of_segments(segments, 0) } else { vec![] };
        if parts.iter().any(|part| Some(part.segment.subscription_table.id_kind()) != id_kind) {
            return Err(Error::Snapshot("its segments have ids of different types".into()));
        }
        let view = View {
            generation: snapshot.generation(),
            terms,
            id_kind,
            len: rows,
            parts: Arc::new(parts),
            ..View::default()
        };
        Ok((Production::from_view(view), schema))
    }

    /// Verifies every byte of the file it was opened from.
    pub(super) fn verify_file(&self) -> Result<()> {
        let view = self.view();
        let mut verified: Vec<&Arc<Snapshot>> = vec![];
        for part in view.parts.iter() {
            if let Some(snapshot) = part.segment.origin.as_ref().map(Origin::snapshot)
                && !verified.iter().any(|other| Arc::ptr_eq(other, snapshot))
            {
                snapshot.verify()?;
                verified.push(snapshot);
            }
            part.segment.prepare()?;
            for row in 0..part.segment.len() as u32 {
                part.segment.subscription(row, &view.terms)?;
            }
        }
        Ok(())
    }
}

/// Attributes are stored by name, other terms by their text, each after those that it is computed from.
fn read_terms(snapshot: &Snapshot) -> Result<Terms> {
    let damaged = || Error::Snapshot("the table of terms is damaged".into());
    let ends = snapshot.section::<u64>("term_offsets")?;
    let texts = snapshot.section::<u8>("term_texts")?;
    let computed = snapshot.section::<u64>("computed_terms")?;
    let mut computed = computed.chunks_exact(3).peekable();
    let mut terms = new_terms();
    for (at, pair) in ends.windows(2).enumerate() {
        let text = texts.get(pair[0] as usize..pair[1] as usize).ok_or_else(damaged)?;
        let text = std::str::from_utf8(text).map_err(|_| damaged())?;
        match computed.next_if(|entry| entry[0] == at as u64) {
            None => {
                terms.intern(text);
            }
            Some(entry) => {
                let term = parse_term(text).map_err(|_| damaged())?;
                terms.intern_term(&term);
                let [all, of_false] =
                    [entry[1], entry[2]].map(|uses| i64::try_from(uses).map_err(|_| damaged()));
                terms.add_uses(&term, Uses { all: all?, of_false: of_false? });
            }
        }
        if terms.len() != at + 1 {
            return Err(damaged());
        }
    }
    if computed.next().is_some() {
        return Err(damaged());
    }
    Ok(terms)
}
