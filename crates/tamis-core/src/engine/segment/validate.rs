//! Every number in a mapped segment points inside: what comes from a file is believed only after this.

use super::evaluation::MOST_COUNTED;
use super::layout::{ACCEPTS, BLOCK, Layout, UnitHead, code_place};
use super::ledger::Ledger;
use super::program::{ACCEPT, CodeKind, Leaf, REJECT, THRESHOLD};
use super::scoring::Scoring;
use crate::predicate::catalog::{Catalog, NO_ATTRIBUTE};
use crate::predicate::stabbing::NONE;

type Check = Result<(), String>;

pub fn validate(layout: &Layout, ledger: &Ledger, scoring: &Scoring) -> Check {
    catalog(&layout.catalog, layout.keys())?;
    access(layout)?;
    code(layout)?;
    below("rows", &layout.rows, ledger.len())?;
    scoring.validate(ledger.len(), layout.entries.len(), layout.catalog.bits).or_else(wrong)?;
    self::ledger(ledger)
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
        ensure(table.tree == NONE || (table.tree as usize) < catalog.stabbing.nodes.len(), "cut_tables")?;
        ensure(table.list == NONE || (table.list as usize) < catalog.listing.tables.len(), "cut_tables")?;
    }
    ensure(catalog.cuts.heads.len() == catalog.cuts.rests.len(), "cut_rests")?;
    let listing = &catalog.listing;
    offsets("listing_offsets", &listing.off, listing.starts.len(), listing.keys.len())?;
    let is_inside = |[first, pieces]: &[u32; 2]| run(*first, *pieces, listing.starts.len());
    ensure(listing.tables.iter().all(is_inside), "listing_tables")?;
    below("listing_keys", &listing.keys, keys as usize)?;
    let stabbing = &catalog.stabbing;
    for (at, node) in stabbing.nodes.iter().enumerate() {
        ensure(run(node.first, node.len, stabbing.by_low.len()), "stabbing_nodes")?;
        // A child comes after its parent, so no walk goes round in circles.
        let later =
            |child: u32| child == NONE || child as usize > at && (child as usize) < stabbing.nodes.len();
        ensure(later(node.left) && later(node.right), "stabbing_nodes")?;
    }
    ensure(stabbing.by_low.len() == stabbing.by_high.len(), "stabbing_by_high")?;
    let in_range = |[_, key]: &[u32; 2]| *key < keys;
    ensure(stabbing.by_low.iter().all(in_range), "stabbing_by_low")?;
    ensure(stabbing.by_high.iter().all(in_range), "stabbing_by_high")?;
    catalog.asked.validate(catalog.terms.len(), bits)
}

fn access(layout: &Layout) -> Check {
    ensure(!layout.access_off.is_empty() && !layout.heads.is_empty(), "access_offsets")?;
    let fired = layout.access_off[layout.keys() as usize] as usize;
    ensure(fired <= layout.entries.len(), "access_offsets")?;
    offsets("access_offsets", &layout.access_off, layout.keys() as usize, fired)?;
    let bounds = layout.block_bounds.len();
    ensure(bounds == 0 || bounds == layout.entries.len().div_ceil(BLOCK), "block_bounds")?;
    ensure(layout.remembered <= layout.units() && layout.lone <= layout.remembered, "numbers")?;
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
    let lone = &layout.heads[layout.lone as usize..=layout.remembered as usize];
    let is_lone = |pair: &[UnitHead]| pair[1].rows - pair[0].rows == 1 && pair[1].waiting == pair[0].waiting;
    ensure(lone.windows(2).all(is_lone), "heads")?;
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
                let (Some(asked), leaves) = (words.first(), words.get(1..).unwrap_or_default()) else {
                    return ensure(false, "code");
                };
                let is_threshold = *asked >= THRESHOLD && leaves.len() < MOST_COUNTED;
                let fits = is_threshold || *asked < THRESHOLD && leaves.len() % 2 == 0;
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

fn ledger(ledger: &Ledger) -> Check {
    let rows = ledger.len();
    offsets("record_offsets", &ledger.record_off, rows, ledger.records.len())?;
    if ledger.text_id_off.is_empty() {
        ensure(ledger.int_ids.len() == rows, "int_ids")?;
        ensure(ledger.int_ids.is_sorted_by(|a, b| a < b), "int_ids")?;
    } else {
        offsets("text_id_offsets", &ledger.text_id_off, rows, ledger.text_ids.len())?;
        let id = |row: usize| {
            &ledger.text_ids[ledger.text_id_off[row] as usize..ledger.text_id_off[row + 1] as usize]
        };
        for row in 0..rows {
            let is_text = std::str::from_utf8(id(row)).is_ok();
            ensure(is_text && (row == 0 || id(row - 1) < id(row)), "text_ids")?;
        }
    }
    ensure(ledger.priorities.is_empty() || ledger.priorities.len() == rows, "priorities")?;
    ensure(ledger.expiries.is_empty() || ledger.expiries.len() == rows, "expiries")?;
    offsets("tag_offsets", &ledger.tag_off, ledger.tag_count(), ledger.tags.len())?;
    offsets("tag_row_offsets", &ledger.tag_rows_off, ledger.tag_count(), ledger.tag_rows.len())?;
    below("tag_rows", &ledger.tag_rows, rows)?;
    ensure(ledger.owner_of.is_empty() || ledger.owner_of.len() == rows, "owner_of_row")?;
    below("owner_of_row", &ledger.owner_of, ledger.owner_count() + 1)?;
    if ledger.owner_count() > 0 {
        offsets("owner_offsets", &ledger.owner_off, ledger.owner_count(), ledger.owners.len())?;
    }
    below("point_only", &ledger.point_only, rows)
}
