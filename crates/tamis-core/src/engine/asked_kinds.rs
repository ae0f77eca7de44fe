//! Which attributes the subscriptions of an index ask for, and values of which kinds they expect there.
//!
//! A reader of wide records needs no other columns, and a value of a kind that nobody expects makes every
//! predicate on it undefined, which is worth a warning.

use std::collections::BTreeMap;

use super::reader::Reader;
use crate::event::AttrId;
use crate::event::value::Kind;
use crate::expr::ast::Expr;
use crate::expr::atoms::AtomTable;
use crate::expr::normal_form::normal_form;

const KINDS: [Kind; 6] = [Kind::Bool, Kind::Number, Kind::Str, Kind::Timestamp, Kind::Array, Kind::Record];

/// Attributes by name, with the kinds of values that some predicate expects. No kinds: any value will do, as
/// for `IS NULL`. Removed subscriptions count until their segment is rewritten.
pub fn asked_kinds(reader: &Reader) -> BTreeMap<String, Vec<Kind>> {
    let mut masks: BTreeMap<AttrId, u32> = BTreeMap::new();
    let mut attributes = reader.attributes().clone();
    match reader {
        Reader::View(view) => {
            for part in view.parts.iter() {
                for entry in part.segment.layout.catalog.attributes.iter() {
                    *masks.entry(AttrId(entry.attribute)).or_default() |= entry.expected_kinds;
                }
            }
            for buffered in view.buffer.iter() {
                note(&buffered.atoms, &mut masks);
            }
        }
        Reader::Classic(state) => {
            let mut note_expression = |expression: &Expr| {
                let mut atoms = AtomTable::default();
                normal_form(expression, &mut attributes, &mut atoms);
                note(&atoms, &mut masks);
            };
            state.rows.iter().flatten().for_each(|held| note_expression(&held.expression));
        }
    }
    let kinds = |mask: u32| KINDS.into_iter().filter(|kind| mask >> *kind as u32 & 1 == 1).collect();
    masks.into_iter().map(|(id, mask)| (attributes.name(id).to_string(), kinds(mask))).collect()
}

fn note(atoms: &AtomTable, masks: &mut BTreeMap<AttrId, u32>) {
    for atom in atoms.iter() {
        let expected = atom.operator.rules().expects(&atom.operands);
        *masks.entry(atom.attribute).or_default() |= expected.map_or(0, |kind| 1 << kind as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Id, Index, Subscription};
    use crate::expr::parser::parse;

    fn holding(algorithm: &str, texts: &[String]) -> Index {
        let index = Index::new(algorithm, None).unwrap();
        for (id, text) in texts.iter().enumerate() {
            index.add(Subscription::new(Id::Int(id as i64), parse(text).unwrap())).unwrap();
        }
        index
    }

    #[test]
    fn the_same_in_the_buffer_in_segments_and_in_published_algorithms() {
        let few: Vec<String> =
            ["age > 3 AND name = 'a'", "NOT (age = 'old') OR x IS NULL"].map(String::from).into();
        let many: Vec<String> = few.iter().cycle().take(100).cloned().collect();
        let expected = BTreeMap::from([
            ("age".to_owned(), vec![Kind::Number, Kind::Str]),
            ("name".to_owned(), vec![Kind::Str]),
            ("x".to_owned(), vec![]),
        ]);
        for (algorithm, texts) in [("auto", &few), ("auto", &many), ("scan", &few)] {
            assert_eq!(asked_kinds(&holding(algorithm, texts).reader().unwrap()), expected);
        }
    }
}
