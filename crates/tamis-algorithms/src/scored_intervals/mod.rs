//! Conjunctions of intervals on scored interval indexes (Machanavajjhala et al. 2008). The structure is the
//! kernel's own, which also reads rows in the order of priority with it.

#[cfg(test)]
mod tests;

use tamis_core::engine::contract::Work;
use tamis_core::engine::scored_intervals::ScoredIntervals;
use tamis_core::error::{Error, Result};
use tamis_core::event::{Attributes, Event, Value};
use tamis_core::query::Measure;
use tamis_core::ranked::Structure;
use tamis_core::subscription::Subscription;

use crate::algorithm::Algorithm;
use crate::options;

impl Algorithm for ScoredIntervals {
    fn insert(&mut self, row: u32, subscription: &Subscription, attributes: &mut Attributes) -> Result<()> {
        self.insert(row, subscription, attributes)
    }

    fn remove(&mut self, row: u32, _: &Subscription, _: &Attributes) {
        self.remove(row);
    }

    fn matches(&self, event: &Event<'_>, _: &Attributes, found: &mut dyn FnMut(u32)) -> Work {
        self.matches(event, found)
    }

    fn best_by(
        &self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<Work> {
        self.best_by(event, measure, least_wanted, offer)
    }

    fn rescore(&mut self, row: u32, subscription: &Subscription, attributes: &Attributes) {
        self.rescore(row, subscription, attributes);
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        self.bytes()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counters()
    }

    fn set_option(&mut self, name: &str, value: &Value) -> Result<()> {
        match name {
            "structure" => self.settings.structure = Structure::named(options::text(name, value)?)?,
            "branching" => {
                let branching = options::size(name, value)? as usize;
                if branching < 2 {
                    return Err(Error::Argument("the option `branching` is at least 2, not 1".into()));
                }
                self.settings.branching = branching;
            }
            _ => return Err(options::unknown(name, &["structure", "branching"])),
        }
        Ok(())
    }
}
