//! The owners of the subscriptions of a view, numbered over all its segments and its buffer.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::view::View;
use crate::subscription::Location;

/// Every owner once. Owners of removed subscriptions count until their segment is rewritten.
#[derive(Default)]
pub struct Owners {
    names: Vec<Box<str>>,
    /// By part, the numbers of the owners of its subscriptions.
    by_part: Vec<Vec<u32>>,
    buffered: Vec<Option<u32>>,
}

impl Owners {
    pub fn of(view: &View) -> Self {
        let mut numbers: HashMap<String, u32, FxBuildHasher> = HashMap::default();
        let mut number = |name: &str| {
            let next = numbers.len() as u32;
            *numbers.entry_ref(name).or_insert(next)
        };
        let by_part = view.parts.iter().map(|part| {
            let subscription_table = &part.segment.subscription_table;
            (0..subscription_table.owner_count() as u32)
                .map(|owner| number(subscription_table.owner_name(owner)))
                .collect()
        });
        let by_part = by_part.collect();
        let owners = view.buffer.iter().map(|buffered| buffered.subscription.owner.as_deref());
        let buffered = owners.map(|owner| owner.map(&mut number)).collect();
        let mut names = vec![Box::from(""); numbers.len()];
        numbers.into_iter().for_each(|(name, number)| names[number as usize] = name.into());
        Self { names, by_part, buffered }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn name(&self, owner: u32) -> &str {
        &self.names[owner as usize]
    }

    /// The number of the owner of a subscription.
    #[inline]
    pub fn number(&self, view: &View, location: Location) -> Option<u32> {
        match location {
            Location::Buffer(at) => self.buffered[at as usize],
            Location::Row { part, row } => {
                let here = view.parts[part as usize].segment.subscription_table.owner_number(row)?;
                Some(self.by_part[part as usize][here as usize])
            }
        }
    }
}
