//! Saving an index to a snapshot file, and opening it again.
//!
//! A snapshot holds one segment, the names of the attributes and the schema: all there is to know.

use std::path::Path;
use std::sync::Arc;

use super::index::{AUTO, Engine, Index};
use super::production::Production;
use super::production::merge::compact;
use super::production::view::{Part, View};
use super::segment::stored;
use crate::error::{Error, Result};
use crate::event::{Attributes, Schema};
use crate::snapshot::{Sink, Snapshot, SnapshotWriter};

impl Index {
    /// Writes the current version to a file, which it replaces at once or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write(SnapshotWriter::create(path)?)
    }

    /// The bytes that [`save`](Self::save) would write.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.write(SnapshotWriter::in_memory())
    }

    /// Opens a saved index by mapping it into memory; what it holds is verified on first use.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_snapshot(Snapshot::open(path)?)
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::from_snapshot(Snapshot::from_bytes(bytes)?)
    }

    fn write<S: Sink>(&self, mut writer: SnapshotWriter<S>) -> Result<S::Output> {
        let Engine::Production(production) = self.engine() else {
            return Err(Error::Argument(format!(
                "an index with algorithm {:?} can't be saved; only the production index ({AUTO:?}) can",
                self.algorithm()
            )));
        };
        let view = production.view();
        view.parts.iter().try_for_each(|part| part.segment.prepare())?;
        let segment = compact(&view, &production.samples().snapshot())?;
        let (mut ends, mut names) = (vec![0u64], vec![]);
        for name in view.attributes.names() {
            names.extend_from_slice(name.as_bytes());
            ends.push(names.len() as u64);
        }
        writer.section("attribute_name_offsets", &ends)?;
        writer.section_bytes("attribute_names", &names)?;
        let schema = self.schema().map(Schema::to_json).unwrap_or_default();
        writer.section_bytes("schema", schema.as_bytes())?;
        stored::write(&segment, &mut writer)?;
        writer.finish(view.generation)
    }

    fn from_snapshot(snapshot: Snapshot) -> Result<Self> {
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
        Ok(Self::with_engine(AUTO, Engine::Production(Production::from_view(view)), schema))
    }

    /// Verifies every byte of the file this index was opened from, records and payloads included.
    pub fn verify(&self) -> Result<()> {
        let Engine::Production(production) = self.engine() else { return Ok(()) };
        let view = production.view();
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
