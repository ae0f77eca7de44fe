//! The families of Boolean terms in use, and their finders. A finder is rarely rebuilt: new members get an
//! additional small one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TermId;
use super::computed::{ComputedTerms, Inputs};
use crate::term::Term;
use crate::term::boolean::{EachInTurn, Finder, Finders, Member};

/// The finders of one family. Together they find each member that is in use; large ones are made seldom.
#[derive(Clone)]
pub(super) struct Family {
    name: Box<str>,
    pub parts: Vec<Arc<FamilyPart>>,
}

pub(super) struct FamilyPart {
    /// Places among all computed terms, rising.
    places: Vec<usize>,
    pub ids: Vec<TermId>,
    members: Vec<Member>,
    pub finder: Box<dyn Finder>,
}

impl ComputedTerms {
    /// The families of Boolean terms in use, whose places are given.
    pub fn families(&self, in_use: &[usize], finders: Option<&dyn Finders>) -> Vec<Family> {
        let mut by_name: BTreeMap<&str, Vec<(usize, Member)>> = BTreeMap::new();
        for &at in in_use {
            let known = self.at(at);
            if let (Term::Boolean(term), Inputs::OfBoolean(inputs)) = (&known.term, &known.inputs) {
                let wants_false = known.uses.of_false > 0;
                let member = Member { term: term.clone(), inputs: inputs.clone(), wants_false };
                by_name.entry(term.family()).or_default().push((at, member));
            }
        }
        let last = |name: &str| {
            let plan = self.last_plan.as_deref()?;
            plan.families.iter().find(|family| *family.name == *name)
        };
        let family = |(name, members): (&str, Vec<(usize, Member)>)| Family {
            name: name.into(),
            parts: self.family_parts(members, last(name).map_or(&[], |family| &family.parts), finders),
        };
        by_name.into_iter().map(family).collect()
    }

    /// Finders for all members. Those of the last plan are kept, unless half of their members are gone; what is new gets
    /// one of its own, together with those that are not much larger, as segments of a log-structured store do.
    fn family_parts(
        &self,
        members: Vec<(usize, Member)>,
        last: &[Arc<FamilyPart>],
        finders: Option<&dyn Finders>,
    ) -> Vec<Arc<FamilyPart>> {
        let place_of = |at: &usize| members.binary_search_by_key(at, |(place, _)| *place).ok();
        let mut is_held = vec![false; members.len()];
        let held_by = |part: &FamilyPart| -> Vec<usize> {
            let held = part.places.iter().zip(&part.members);
            let fits = |member: &Member, now: &Member| member.wants_false == now.wants_false;
            held.filter_map(|(at, member)| place_of(at).filter(|now| fits(member, &members[*now].1)))
                .collect()
        };
        let mut parts: Vec<Arc<FamilyPart>> = vec![];
        for part in last {
            let held = held_by(part);
            if held.len() * 2 >= part.places.len() {
                held.iter().for_each(|now| is_held[*now] = true);
                parts.push(part.clone());
            }
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.places.len()));
        let mut new = is_held.iter().filter(|held| !**held).count();
        if new == 0 {
            return parts;
        }
        while let Some(smallest) = parts.pop_if(|part| part.places.len() <= 2 * new) {
            for now in held_by(&smallest) {
                is_held[now] = false;
            }
            new += smallest.places.len();
        }
        // What another part still holds stays there.
        for part in &parts {
            held_by(part).iter().for_each(|now| is_held[*now] = true);
        }
        let (mut places, mut ids, mut taken) = (vec![], vec![], vec![]);
        for ((at, member), held) in members.iter().zip(is_held) {
            if !held {
                places.push(*at);
                ids.push(self.at(*at).id);
                taken.push(member.clone());
            }
        }
        let finder =
            finders.and_then(|finders| finders.finder(&taken)).or_else(|| taken[0].term.finder(&taken));
        let finder = finder.unwrap_or_else(|| Box::new(EachInTurn(taken.clone())));
        parts.push(Arc::new(FamilyPart { places, ids, members: taken, finder }));
        parts
    }
}
