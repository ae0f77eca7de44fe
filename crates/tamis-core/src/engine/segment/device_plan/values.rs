//! The tables in which a device looks values up.

use crate::engine::device::{Keys, NO_MASK, Plan, ValueTable};
use crate::predicate::catalog::Catalog;
use crate::predicate::delegated::{KeyedTable, head_and_distance};
use crate::predicate::keys::join;

/// Adds the tables of a catalog to a plan whose predicates have masks.
pub fn plan(catalog: &Catalog, plan: &mut Plan) {
    let mask_of = |bit: u32| if bit == 0 { NO_MASK } else { plan.mask_of_bit[bit as usize] };
    let table = |KeyedTable { points, cuts, bits, distance }: KeyedTable| {
        let (cut_table, cuts) = match cuts {
            Some(number) => (number, Some(&catalog.cut_tables[number as usize])),
            None => (0, None),
        };
        ValueTable {
            first_point: points.start,
            points: points.end - points.start,
            first_cut: cuts.map_or(0, |cuts| cuts.first),
            cuts: cuts.map_or(0, |cuts| cuts.len),
            cut_table,
            masks: bits.map(mask_of),
            rest: distance << 1,
        }
    };
    plan.value_tables = catalog.keyed_tables().map(table).collect();
    // Texts are among them, too: no table leads there.
    let points = catalog.points.keys.iter().map(|key| head_and_distance(join(*key)));
    let (heads, rests) = points.map(|(head, distance)| (head, distance << 1)).unzip();
    plan.point_keys = Keys { heads, rests };
    plan.cut_keys = Keys { heads: catalog.cuts.heads.to_vec(), rests: catalog.cuts.rests.to_vec() };
}
