//! Upper bounds of the scores of all conjunctions below a node.
//!
//! There are two bounds, each valid by itself. Events with weights use the lower one, others the second:
//!
//! - *by attribute*, as published: for every attribute of the event, the greatest weight that any conjunction below has on it.
//!   It leaves out attributes that the event lacks, but adds up weights of different conjunctions.
//! - *altogether*: the greatest total weight of a single conjunction below. It is one number, so c-nodes and
//!   buckets have it too. For events without weights it is the score of the heaviest conjunction itself.
//!
//! Summaries are compressed: a weight takes four bytes and is rounded up, so that a bound stays valid.

use super::conjunction::Conjunction;
use tamis_core::event::{Event, TermId};
use tamis_core::query::{Scale, up};

/// Which of the two bounds are used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Bounding {
    #[default]
    Both,
    ByAttribute,
    Altogether,
}

#[derive(Debug, Default, PartialEq)]
pub struct Summary {
    /// Sorted by attribute.
    by_attribute: Vec<(TermId, f32)>,
    /// Of these, what also counts when the attribute is absent.
    when_absent: Vec<(TermId, f32)>,
    /// The most that one conjunction weighs.
    altogether: f64,
}

impl Summary {
    pub fn widen(&mut self, conjunction: &Conjunction) {
        for weight in &conjunction.weights {
            let most = rounded_up(weight.most);
            raise(&mut self.by_attribute, weight.attribute, most);
            if weight.when_absent {
                raise(&mut self.when_absent, weight.attribute, most);
            }
        }
        self.altogether = self.altogether.max(conjunction.total);
    }

    pub fn clear(&mut self) {
        self.by_attribute.clear();
        self.when_absent.clear();
        self.altogether = 0.0;
    }

    /// The most that one conjunction weighs.
    pub fn altogether(&self) -> f64 {
        self.altogether
    }

    /// No relevance below the node is higher. A bound that is below `least_wanted` may be any such bound.
    pub fn bound(&self, event: &Event<'_>, scale: &Scale, by: Bounding, least_wanted: f64) -> f64 {
        let altogether = match by {
            Bounding::ByAttribute => f64::INFINITY,
            _ => scaled(self.altogether, scale),
        };
        // For an event without weights, one number is nearly the score itself; the other bound, a search for
        // each of its attributes, was measured to cost more than it rules out.
        let is_enough = by == Bounding::Altogether || by == Bounding::Both && scale.is_plain();
        if is_enough || altogether < least_wanted {
            return altogether;
        }
        altogether.min(self.bound_by_attribute(event, scale))
    }

    /// Whether something below the node can score what is wanted; until enough was found, anything can.
    pub fn can_reach(&self, event: &Event<'_>, scale: &Scale, by: Bounding, least_wanted: f64) -> bool {
        least_wanted == f64::NEG_INFINITY || self.bound(event, scale, by, least_wanted) >= least_wanted
    }

    fn bound_by_attribute(&self, event: &Event<'_>, scale: &Scale) -> f64 {
        let of = |attribute: TermId, most: f32| match most {
            f32::INFINITY => f64::INFINITY,
            most => most as f64 * scale.factor(attribute),
        };
        let mut sum = 0.0;
        let mut rest = &self.by_attribute[..];
        // Both are sorted: each attribute is looked for after the one before it.
        for (attribute, _) in &event.values {
            rest = &rest[rest.partition_point(|(held, _)| held < attribute)..];
            match rest.first() {
                Some((held, most)) if held == attribute => sum += of(*held, *most),
                Some(_) => {}
                None => break,
            }
        }
        for (attribute, most) in &self.when_absent {
            if event.get(*attribute).is_none() {
                sum += of(*attribute, *most);
            }
        }
        up(sum)
    }

    /// Whether it covers the weights of a conjunction.
    #[cfg(test)]
    pub fn covers(&self, conjunction: &Conjunction) -> bool {
        let covers = |list: &[(TermId, f32)], attribute: TermId, most: f64| {
            list.iter().any(|(held, bound)| *held == attribute && *bound as f64 >= most)
        };
        self.altogether >= conjunction.total
            && conjunction.weights.iter().all(|weight| {
                covers(&self.by_attribute, weight.attribute, weight.most)
                    && (!weight.when_absent || covers(&self.when_absent, weight.attribute, weight.most))
            })
    }

    pub fn bytes(&self) -> usize {
        (self.by_attribute.capacity() + self.when_absent.capacity()) * size_of::<(TermId, f32)>()
    }
}

/// The highest score for an event of a conjunction with this total weight.
pub fn scaled(altogether: f64, scale: &Scale) -> f64 {
    if altogether == f64::INFINITY { altogether } else { up(altogether * scale.most()) }
}

/// The total weight that a conjunction needs for a score. Rounded down, so that nothing is left out which
/// [`scaled`] would keep.
pub fn least_weight(score: f64, scale: &Scale) -> f64 {
    let weight = score / scale.most();
    if weight.is_finite() { weight - weight.abs() * 1e-9 - 1e-290 } else { f64::NEG_INFINITY }
}

fn raise(list: &mut Vec<(TermId, f32)>, attribute: TermId, most: f32) {
    match list.binary_search_by_key(&attribute, |(attribute, _)| *attribute) {
        Ok(at) => list[at].1 = list[at].1.max(most),
        Err(at) => list.insert(at, (attribute, most)),
    }
}

/// The least 32-bit float that is not below a weight.
fn rounded_up(weight: f64) -> f32 {
    let near = weight as f32;
    if (near as f64) < weight { near.next_up() } else { near }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use tamis_core::event::Terms;

    proptest! {
        #[test]
        fn what_weighs_less_scores_less(score in -1.0..1e6f64, below in 0.0..1.0f64, factor in 0.0..3.0f64) {
            let mut terms = Terms::default();
            let attribute = terms.intern("a");
            let event = Event { weights: vec![(attribute, factor)], ..Event::default() };
            let scale = Scale::new(&event, None, &terms);
            let least = least_weight(score, &scale);
            let lighter = least * below;
            if lighter > 0.0 && lighter < least {
                prop_assert!(scaled(lighter, &scale) < score, "{lighter} of {least} for {score}");
            }
            if least > 0.0 {
                prop_assert!(scaled(least * 1.00001, &scale) >= score * 0.99999);
            }
        }

        #[test]
        fn rounding_never_lowers_a_weight(weight in 0.0..1e300f64, small in 0.0..1.0f64) {
            for weight in [weight, small, weight * 1e-300] {
                let rounded = rounded_up(weight);
                prop_assert!(rounded as f64 >= weight);
                prop_assert!(rounded.is_infinite() || (rounded.next_down() as f64) < weight || weight == 0.0);
            }
        }
    }
}
