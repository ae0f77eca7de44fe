//! The weights that an event gives to attributes, and which attributes count at all.

use crate::event::{Event, TermId, Terms};

/// The factor of every attribute for one event, looked up in constant time.
#[derive(Clone, Debug)]
pub struct Scale {
    /// By attribute; empty when every factor is 1. Terms beyond it have the factor `rest`.
    factors: Vec<f64>,
    /// Which attributes count, by number; empty when all do.
    counted: Vec<bool>,
    /// The greatest factor of any attribute.
    most: f64,
}

impl Scale {
    /// Every attribute counts 1.
    pub const PLAIN: Scale = Scale { factors: vec![], counted: vec![], most: 1.0 };

    /// The weights of an event. With `dimensions`, only these attributes count.
    pub fn new(event: &Event<'_>, dimensions: Option<&[Box<str>]>, terms: &Terms) -> Self {
        if event.weights.is_empty() && dimensions.is_none() {
            return Self::PLAIN;
        }
        let mut factors = vec![1.0; terms.len()];
        for (attribute, weight) in &event.weights {
            factors[attribute.0 as usize] = *weight;
        }
        let mut counted = vec![];
        if let Some(dimensions) = dimensions {
            counted = vec![false; terms.len()];
            for attribute in dimensions.iter().filter_map(|name| terms.get(name)) {
                counted[attribute.0 as usize] = true;
            }
            for (factor, counts) in factors.iter_mut().zip(&counted) {
                *factor = if *counts { *factor } else { 0.0 };
            }
        }
        let most = factors.iter().copied().fold(0.0, f64::max);
        Self { factors, counted, most }
    }

    /// Whether every attribute counts 1.
    pub fn is_plain(&self) -> bool {
        self.factors.is_empty()
    }

    /// 0 for an attribute that is left out.
    #[inline]
    pub fn factor(&self, attribute: TermId) -> f64 {
        self.factors.get(attribute.0 as usize).copied().unwrap_or(1.0)
    }

    /// Whether the attribute is left out: its predicates do not even make a relaxed match.
    #[inline]
    pub fn leaves_out(&self, attribute: TermId) -> bool {
        self.counted.get(attribute.0 as usize) == Some(&false)
    }

    /// The attributes that count, if some are left out.
    pub fn counted(&self) -> Option<impl Iterator<Item = TermId>> {
        let numbered = || self.counted.iter().enumerate();
        let counting = || numbered().filter(|(_, counts)| **counts).map(|(number, _)| TermId(number as u32));
        (!self.counted.is_empty()).then(counting)
    }

    /// The greatest factor of any attribute.
    pub fn most(&self) -> f64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_and_dimensions_make_factors() {
        let mut terms = Terms::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| terms.intern(name));
        let event = Event { weights: vec![(a, 0.5), (c, 3.0)], ..Event::default() };
        let scale = Scale::new(&event, None, &terms);
        assert_eq!([a, b, c].map(|attribute| scale.factor(attribute)), [0.5, 1.0, 3.0]);
        assert_eq!(scale.most(), 3.0);
        let scale = Scale::new(&event, Some(&["a".into(), "unknown".into()]), &terms);
        assert_eq!([a, b, c].map(|attribute| scale.factor(attribute)), [0.5, 0.0, 0.0]);
        assert_eq!([a, b, c].map(|attribute| scale.leaves_out(attribute)), [false, true, true]);
        assert_eq!(scale.counted().unwrap().collect::<Vec<_>>(), [a]);
        assert_eq!(scale.most(), 0.5);
        assert!(Scale::new(&Event::default(), None, &terms).is_plain());
    }
}
