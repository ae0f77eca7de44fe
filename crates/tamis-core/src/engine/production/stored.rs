//! Saving the production engine to a snapshot file, and opening it again.
//!
//! A snapshot holds one segment, the names of the attributes and the schema: all there is to know.

use std::sync::Arc;

use super::Production;
use super::merge::compact;
use super::view::{Part, View};
use crate::engine::segment::stored;
use crate::error::{Error, Result};
use crate::event::{Attributes, Schema};
use crate::snapshot::{Sink, Snapshot, SnapshotWriter};

impl Production {
    /// Writes the current version.
    pub(super) fn write<S: Sink>(
        &self,
        mut writer: SnapshotWriter<S>,
        schema: Option<&Schema>,
    ) -> Result<S::Output> {
        let view = self.view();
        view.parts.iter().try_for_each(|part| part.segment.prepare())?;
        let segment = compact(&view, &self.samples().snapshot())?;
        let (mut ends, mut names) = (vec![0u64], vec![]);
        for name in view.attributes.names() {
            names.extend_from_slice(name.as_bytes());
            ends.push(names.len() as u64);
        }
        writer.section("attribute_name_offsets", &ends)?;
        writer.section_bytes("attribute_names", &names)?;
        let schema = schema.map(Schema::to_json).unwrap_or_default();
        writer.section_bytes("schema", schema.as_bytes())?;
        stored::write(&segment, &mut writer)?;
        // Nothing may be kept of a file that was overwritten while it was read.
        view.parts.iter().try_for_each(|part| part.segment.prepare())?;
        writer.finish(view.generation)
    }

    /// The engine that a snapshot holds, and its schema.
    pub fn from_snapshot(snapshot: Snapshot) -> Result<(Self, Option<Schema>)> {
        let snapshot = Arc::new(snapshot);
        for name in ["attribute_name_offsets", "attribute_names", "schema"] {
            snapshot.check(name)?;
        }
        let attributes = read_names(&snapshot)?;
        let schema = snapshot.section::<u8>("schema")?;
        let schema = if schema.is_empty() { None } else { Some(Schema::from_json(&schema)?) };
        let segment = stored::read(&snapshot)?;
        let rows = segment.len();
        let view = View {
            generation: snapshot.generation(),
            attributes,
            id_kind: (rows > 0).then(|| segment.ledger.id_kind()),
            len: rows,
            parts: Arc::new(if rows > 0 { vec![Part::new(segment)] } else { vec![] }),
            ..View::default()
        };
        Ok((Production::from_view(view), schema))
    }

    /// Verifies every byte of the file it was opened from.
    pub(super) fn verify_file(&self) -> Result<()> {
        let view = self.view();
        for part in view.parts.iter() {
            if let Some(origin) = &part.segment.origin {
                origin.snapshot().verify()?;
            }
            part.segment.prepare()?;
            for row in 0..part.segment.len() as u32 {
                part.segment.subscription(row, &view.attributes)?;
            }
        }
        Ok(())
    }
}

fn read_names(snapshot: &Snapshot) -> Result<Attributes> {
    let damaged = || Error::Snapshot("the names of the attributes are damaged".into());
    let ends = snapshot.section::<u64>("attribute_name_offsets")?;
    let names = snapshot.section::<u8>("attribute_names")?;
    let mut attributes = Attributes::default();
    for pair in ends.windows(2) {
        let name = names.get(pair[0] as usize..pair[1] as usize).ok_or_else(damaged)?;
        attributes.intern(std::str::from_utf8(name).map_err(|_| damaged())?);
    }
    if attributes.len() + 1 != ends.len() {
        return Err(damaged());
    }
    Ok(attributes)
}
