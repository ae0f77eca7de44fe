//! Validates a mapped segment before it is used: every number must point inside its array.

use super::layout::{ACCEPTS, BLOCK, Layout, UnitHead, code_place};
use super::program::{ACCEPT, CodeKind, Leaf, REJECT, THRESHOLD};
use super::scoring::Scoring;
use super::subscription_table::SubscriptionTable;
use super::unit_evaluation::MOST_COUNTED;
use crate::predicate::catalog::{Catalog, NO_ATTRIBUTE};
use crate::predicate::interval_tree::NONE;

type Check = Result<(), String>;

pub fn validate(
    layout: &Layout,
    subscription_table: &SubscriptionTable,
    scoring: &Scoring,
    terms: usize,
) -> Check {
    ensure(layout.catalog.terms.iter().all(|entry| (entry.attribute as usize) < terms), "attributes")?;
    catalog(&layout.catalog, layout.keys())?;
    access(layout)?;
    code(layout)?;
    below("rows", &layout.rows, subscription_table.len())?;
    scoring.validate(subscription_table.len(), layout.entries.len(), layout.catalog.bits).or_else(wrong)?;
    self::subscription_table(subscription_table)
}

fn wrong<T>(what: impl Into<String>) -> Result<T, String> {
    Err(format!("the section `{}` is inconsistent", what.into()))
}

fn ensure(holds: bool, what: &str) -> Check {
    if holds { Ok(()) } else { wrong(what) }
}

/// Offsets rise from 0 to the length of what they divide.
fn offsets<T: Copy + Into<u64>>(what: &str, offsets: &[T], runs: usize, end: usize) -> Check {
    ensure(offsets.len() == runs + 1, what)?;
    ensure(offsets[0].into() == 0 && offsets[runs].into() == end as u64, what)?;
    ensure(offsets.windows(2).all(|pair| pair[0].into() <= pair[1].into()), what)
}

fn below(what: &str, values: &[u32], limit: usize) -> Check {
    ensure(values.iter().all(|value| (*value as usize) < limit), what)
}

fn run(first: u32, len: u32, end: usize) -> bool {
    first as usize + len as usize <= end
}

fn catalog(catalog: &Catalog, keys: u32) -> Check {
    let bits = catalog.bits;
    ensure(bits >= 1 && keys >= bits, "numbers")?;
    for (at, entry) in catalog.terms.iter().enumerate() {
        let named = [entry.present, entry.absent].into_iter().chain(entry.defined).chain(entry.clean);
        ensure(named.into_iter().all(|bit| bit < bits), "attributes")?;
        ensure(entry.first_bit <= entry.end_bit && entry.end_bit <= bits, "attributes")?;
        ensure(run(entry.first_points, entry.points, catalog.points.tables.len()), "attributes")?;
        ensure(run(entry.first_cuts, entry.cuts, catalog.cut_tables.len()), "attributes")?;
        ensure(catalog.entry_of.get(entry.attribute as usize) == Some(&(at as u32)), "attribute_entries")?;
    }
    let known = |at: &u32| *at == NO_ATTRIBUTE || (*at as usize) < catalog.terms.len();
    ensure(catalog.entry_of.iter().all(known), "attribute_entries")?;
    below("asks_absence", &catalog.asks_absence, catalog.terms.len())?;

    let points = &catalog.points;
    offsets("point_bit_offsets", &points.bit_off, points.keys.len(), points.bits.len())?;
    below("point_bits", &points.bits, bits as usize)?;
    for table in points.tables.iter() {
        let slots = table.mask as usize + 1;
        ensure(slots.is_power_of_two(), "point_tables")?;
        ensure(table.first_slot as usize + slots <= points.slots.len(), "point_tables")?;
        ensure(run(table.first_entry, table.entries, points.keys.len()), "point_tables")?;
        let of_table = &points.slots[table.first_slot as usize..table.first_slot as usize + slots];
        ensure(of_table.iter().all(|slot| *slot <= table.entries), "point_slots")?;
        ensure(of_table.contains(&0), "point_slots")?;
    }
    for table in catalog.cut_tables.iter() {
        ensure(run(table.first, table.len, catalog.cuts.heads.len()), "cut_tables")?;
        ensure(run(table.above, table.len, bits as usize), "cut_tables")?;
        ensure(table.below as usize + table.len as usize == table.above as usize, "cut_tables")?;
        ensure(
            table.tree == NONE || (table.tree as usize) < catalog.interval_tree.nodes.len(),
            "cut_tables",
        )?;
        ensure(
            table.list == NONE || (table.list as usize) < catalog.interval_lists.tables.len(),
            "cut_tables",
        )?;
    }
    ensure(catalog.cuts.heads.len() == catalog.cuts.rests.len(), "cut_rests")?;
    let interval_lists = &catalog.interval_lists;
    offsets(
        "interval_lists_offsets",
        &interval_lists.off,
        interval_lists.starts.len(),
        interval_lists.keys.len(),
    )?;
    let is_inside = |[first, pieces]: &[u32; 2]| run(*first, *pieces, interval_lists.starts.len());
    ensure(interval_lists.tables.iter().all(is_inside), "interval_lists_tables")?;
    below("interval_lists_keys", &interval_lists.keys, keys as usize)?;
    let interval_tree = &catalog.interval_tree;
    for (at, node) in interval_tree.nodes.iter().enumerate() {
        ensure(run(node.first, node.len, interval_tree.by_low.len()), "interval_tree_nodes")?;
        // A child comes after its parent, so no walk goes round in circles.
        let later =
            |child: u32| child == NONE || child as usize > at && (child as usize) < interval_tree.nodes.len();
        ensure(later(node.left) && later(node.right), "interval_tree_nodes")?;
        let keys = &interval_tree.by_low[node.first as usize..(node.first + node.len) as usize];
        ensure(keys.is_sorted_by(|a, b| a[1].checked_add(1) == Some(b[1])), "interval_tree_by_low")?;
    }
    ensure(interval_tree.by_low.len() == interval_tree.by_high.len(), "interval_tree_by_high")?;
    let in_range = |[_, key]: &[u32; 2]| *key < keys;
    ensure(interval_tree.by_low.iter().all(in_range), "interval_tree_by_low")?;
    ensure(interval_tree.by_high.iter().all(in_range), "interval_tree_by_high")?;
    catalog.residual.validate(catalog.terms.len(), bits)
}

fn access(layout: &Layout) -> Check {
    ensure(!layout.access_off.is_empty() && !layout.heads.is_empty(), "access_offsets")?;
    let fired = layout.access_off[layout.keys() as usize] as usize;
    ensure(fired <= layout.entries.len(), "access_offsets")?;
    offsets("access_offsets", &layout.access_off, layout.keys() as usize, fired)?;
    let bounds = layout.block_bounds.len();
    ensure(bounds == 0 || bounds == layout.entries.len().div_ceil(BLOCK), "block_bounds")?;
    ensure(layout.remembered <= layout.units() && layout.single_row <= layout.remembered, "numbers")?;
    let good = |[unit, test]: &[u32; 2]| {
        *unit & !ACCEPTS < layout.units()
            && Leaf(*test).as_unit().is_none()
            && Leaf(*test).bit() < layout.catalog.bits
    };
    ensure(layout.entries.iter().all(good), "access_entries")
}

fn code(layout: &Layout) -> Check {
    let units = layout.units() as usize;
    let column = |of: fn(&UnitHead) -> u32| layout.heads.iter().map(of).collect::<Vec<u32>>();
    offsets("heads", &column(|head| code_place(head.code) as u32), units, layout.code.len())?;
    offsets("heads", &column(|head| head.rows), units, layout.rows.len())?;
    let waiting = column(|head| head.waiting);
    ensure(waiting.is_sorted() && waiting[units] as usize == layout.entries.len(), "heads")?;
    let single_row = &layout.heads[layout.single_row as usize..=layout.remembered as usize];
    let is_single_row =
        |pair: &[UnitHead]| pair[1].rows - pair[0].rows == 1 && pair[1].waiting == pair[0].waiting;
    ensure(single_row.windows(2).all(is_single_row), "heads")?;
    let good_leaf = |leaf: u32| match Leaf(leaf).as_unit() {
        Some(unit) => unit < layout.remembered,
        None => Leaf(leaf).bit() < layout.catalog.bits,
    };
    for unit in 0..layout.units() {
        let (kind, words) = layout.code_of(unit);
        match kind {
            CodeKind::Conjunction | CodeKind::Disjunction => {
                ensure(words.iter().all(|leaf| good_leaf(*leaf)), "code")?;
            }
            CodeKind::Count => {
                let (Some(needed), leaves) = (words.first(), words.get(1..).unwrap_or_default()) else {
                    return ensure(false, "code");
                };
                let is_threshold = *needed >= THRESHOLD && leaves.len() < MOST_COUNTED;
                let fits = is_threshold || *needed < THRESHOLD && leaves.len() % 2 == 0;
                ensure(fits && leaves.iter().all(|leaf| good_leaf(*leaf)), "code")?;
            }
            CodeKind::Jumps => {
                ensure(words.len() % 2 == 0, "code")?;
                for (at, pair) in words.chunks_exact(2).enumerate() {
                    let target = pair[1] >> 1;
                    // Only forwards, so that every program ends.
                    let forward = target as usize > at && (target as usize) <= words.len() / 2;
                    ensure(good_leaf(pair[0]) && (forward || target == ACCEPT || target == REJECT), "code")?;
                }
            }
        }
    }
    acyclic(layout)
}

/// No unit needs itself, however indirectly.
fn acyclic(layout: &Layout) -> Check {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let needs = |unit: u32| -> Vec<u32> {
        let (kind, words) = layout.code_of(unit);
        let (first, step) = kind.leaf_words();
        words.iter().skip(first).step_by(step).filter_map(|leaf| Leaf(*leaf).as_unit()).collect()
    };
    let mut marks = vec![Mark::New; layout.remembered as usize];
    for start in 0..layout.remembered {
        if marks[start as usize] != Mark::New {
            continue;
        }
        marks[start as usize] = Mark::Open;
        let mut path = vec![(start, needs(start))];
        while let Some((unit, rest)) = path.last_mut() {
            match rest.pop() {
                None => {
                    marks[*unit as usize] = Mark::Done;
                    path.pop();
                }
                Some(next) => match marks[next as usize] {
                    Mark::Done => {}
                    Mark::Open => return wrong("code"),
                    Mark::New => {
                        marks[next as usize] = Mark::Open;
                        path.push((next, needs(next)));
                    }
                },
            }
        }
    }
    Ok(())
}

fn subscription_table(subscription_table: &SubscriptionTable) -> Check {
    let rows = subscription_table.len();
    offsets("record_offsets", &subscription_table.record_off, rows, subscription_table.records.len())?;
    if subscription_table.text_id_off.is_empty() {
        ensure(subscription_table.int_ids.len() == rows, "int_ids")?;
        ensure(subscription_table.int_ids.is_sorted_by(|a, b| a < b), "int_ids")?;
    } else {
        offsets("text_id_offsets", &subscription_table.text_id_off, rows, subscription_table.text_ids.len())?;
        let id = |row: usize| {
            &subscription_table.text_ids[subscription_table.text_id_off[row] as usize
                ..subscription_table.text_id_off[row + 1] as usize]
        };
        for row in 0..rows {
            let is_text = std::str::from_utf8(id(row)).is_ok();
            ensure(is_text && (row == 0 || id(row - 1) < id(row)), "text_ids")?;
        }
    }
    ensure(
        subscription_table.priorities.is_empty() || subscription_table.priorities.len() == rows,
        "priorities",
    )?;
    ensure(subscription_table.starts.is_empty() || subscription_table.starts.len() == rows, "starts")?;
    ensure(subscription_table.expiries.is_empty() || subscription_table.expiries.len() == rows, "expiries")?;
    offsets(
        "tag_offsets",
        &subscription_table.tag_off,
        subscription_table.tag_count(),
        subscription_table.tags.len(),
    )?;
    offsets(
        "tag_row_offsets",
        &subscription_table.tag_rows_off,
        subscription_table.tag_count(),
        subscription_table.tag_rows.len(),
    )?;
    below("tag_rows", &subscription_table.tag_rows, rows)?;
    ensure(
        subscription_table.owner_of.is_empty() || subscription_table.owner_of.len() == rows,
        "owner_of_row",
    )?;
    below("owner_of_row", &subscription_table.owner_of, subscription_table.owner_count() + 1)?;
    if subscription_table.owner_count() > 0 {
        offsets(
            "owner_offsets",
            &subscription_table.owner_off,
            subscription_table.owner_count(),
            subscription_table.owners.len(),
        )?;
    }
    below("point_only", &subscription_table.point_only, rows)
}
