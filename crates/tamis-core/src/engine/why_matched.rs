//! Why a subscription matches an event or does not: its expression, and the other conditions of the query.
//!
//! Both answers use the same version of the index, the same event and the same filter as a match, so they never disagree
//! with it. `expr::explain` and `expr::why_not` cover only the expression.

use serde_json::json;

use super::contract::{Version, Workspace};
use crate::error::{Error, Result};
use crate::event::timestamp::format_timestamp;
use crate::event::{Event, Terms, ValueRef};
use crate::expr::eval::evaluate;
use crate::expr::explain::{self, Explanation};
use crate::expr::why_not::{self, WhyNot};
use crate::query::Filter;
use crate::subscription::{Id, Subscription};
use crate::term::STRINGS;

/// A reason other than its expression why a subscription does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    StartsLater {
        starts: i64,
        now: i64,
    },
    Expired {
        expires: i64,
        now: i64,
    },
    /// It has none of those of which it needs one.
    HasNone {
        tags: Vec<Box<str>>,
        any: Vec<Box<str>>,
    },
    /// It lacks some of those of which it needs all.
    Lacks {
        tags: Vec<Box<str>>,
        missing: Vec<Box<str>>,
    },
    /// It has some of those of which it may have none.
    Has {
        excluded: Vec<Box<str>>,
    },
}

impl Exclusion {
    /// Empty exactly if the filter keeps the subscription.
    pub fn of(subscription: &Subscription, filter: &Filter<'_>) -> Vec<Self> {
        let tags = &subscription.tags;
        let pick = |list: &[Box<str>], present: bool| -> Vec<Box<str>> {
            list.iter().filter(|tag| tags.contains(tag) == present).cloned().collect()
        };
        let mut found = vec![];
        if let Some(starts) = subscription.starts.filter(|starts| *starts > filter.now) {
            found.push(Exclusion::StartsLater { starts, now: filter.now });
        }
        if let Some(expires) = subscription.expires.filter(|expires| *expires <= filter.now) {
            found.push(Exclusion::Expired { expires, now: filter.now });
        }
        if let Some(any) = filter.tags.any.as_ref().filter(|any| pick(any, true).is_empty()) {
            found.push(Exclusion::HasNone { tags: tags.clone(), any: any.clone() });
        }
        let missing = pick(&filter.tags.all, false);
        if !missing.is_empty() {
            found.push(Exclusion::Lacks { tags: tags.clone(), missing });
        }
        let excluded = pick(&filter.tags.none, true);
        if !excluded.is_empty() {
            found.push(Exclusion::Has { excluded });
        }
        found
    }

    /// The current state: `it expired at 2026-01-31 12:00:00 UTC, and it is 2026-02-01 00:00:00 UTC`.
    pub fn text(&self) -> String {
        match self {
            Exclusion::StartsLater { starts, now } => {
                let [starts, now] = [starts, now].map(|moment| format_timestamp(*moment));
                format!("it starts at {starts} UTC, and it is {now} UTC")
            }
            Exclusion::Expired { expires, now } => {
                let [expires, now] = [expires, now].map(|moment| format_timestamp(*moment));
                format!("it expired at {expires} UTC, and it is {now} UTC")
            }
            Exclusion::HasNone { tags, .. } | Exclusion::Lacks { tags, .. } if tags.is_empty() => {
                "it has no tags".into()
            }
            Exclusion::HasNone { tags, .. } | Exclusion::Lacks { tags, .. } => {
                format!("its tags are {}", listed(tags))
            }
            Exclusion::Has { excluded } => format!("it has the {}", tags_text(excluded)),
        }
    }

    /// What would change it: `a query before then, or a later expiry`.
    pub fn needs(&self) -> String {
        match self {
            Exclusion::StartsLater { .. } => "a query from then on, or an earlier start".into(),
            Exclusion::Expired { .. } => "a query before then, or a later expiry".into(),
            Exclusion::HasNone { any, .. } if any.is_empty() => {
                "a query that names a tag, or leaves tags out".into()
            }
            Exclusion::HasNone { any, .. } if any.len() > 1 => format!("one of the {}", tags_text(any)),
            Exclusion::HasNone { any: needed, .. } | Exclusion::Lacks { missing: needed, .. } => {
                format!("the {}", tags_text(needed))
            }
            Exclusion::Has { excluded } if excluded.len() == 1 => "to be without it".into(),
            Exclusion::Has { .. } => "to be without them".into(),
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let kind = match self {
            Exclusion::StartsLater { .. } => "starts",
            Exclusion::Expired { .. } => "expired",
            Exclusion::HasNone { .. } => "tags",
            Exclusion::Lacks { .. } => "tags_all",
            Exclusion::Has { .. } => "tags_none",
        };
        json!({"kind": kind, "text": self.text(), "needs": self.needs()})
    }
}

fn tags_text(tags: &[Box<str>]) -> String {
    format!("{} {}", if tags.len() == 1 { "tag" } else { "tags" }, listed(tags))
}

fn listed(tags: &[Box<str>]) -> String {
    tags.iter().map(|tag| format!("`{tag}`")).collect::<Vec<_>>().join(", ")
}

/// The expression of a subscription with the truth of every node, and what else decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    pub explanation: Explanation,
    pub exclusions: Vec<Exclusion>,
    /// Set if it is a match although its expression is not true: an engine may compare the intervals around values.
    pub is_approximate: bool,
}

impl Explained {
    pub fn matches(&self) -> bool {
        self.is_approximate || self.explanation.outcome.can_be_true && self.exclusions.is_empty()
    }

    /// The tree, whose root also has `exclusions` and `approximate` where there are any.
    pub fn to_json(&self) -> serde_json::Value {
        let mut tree = self.explanation.to_json();
        add_exclusions(&mut tree, &self.exclusions);
        if self.is_approximate {
            tree["approximate"] = json!(true);
        }
        tree
    }
}

/// The changes that would make a subscription match.
#[derive(Clone, Debug, PartialEq)]
pub struct WhyNoMatch {
    /// The result for its expression: [`WhyNot::Matches`] if it is true.
    pub expression: WhyNot,
    pub exclusions: Vec<Exclusion>,
}

impl WhyNoMatch {
    pub fn matches(&self) -> bool {
        self.expression == WhyNot::Matches && self.exclusions.is_empty()
    }

    /// The answer about the expression, with `exclusions` where there are any; `excluded` if only they are left.
    pub fn to_json(&self) -> serde_json::Value {
        let mut answer = self.expression.to_json();
        if self.expression == WhyNot::Matches && !self.exclusions.is_empty() {
            answer["answer"] = json!("excluded");
        }
        add_exclusions(&mut answer, &self.exclusions);
        answer
    }
}

fn add_exclusions(json: &mut serde_json::Value, exclusions: &[Exclusion]) {
    if !exclusions.is_empty() {
        json["exclusions"] = exclusions.iter().map(Exclusion::to_json).collect();
    }
}

/// One event, one version of an index and one filter: what a reason is about.
pub struct Case<'a> {
    pub version: &'a dyn Version,
    /// Those that [`attributes_with`] gives, by which the event was read.
    pub terms: &'a Terms,
    pub event: &'a Event<'a>,
    pub filter: Filter<'a>,
}

/// The attributes of an index, and those that are only in the expression as it was written: a predicate that can
/// never be true is not indexed.
pub fn attributes_with(version: &dyn Version, id: &Id) -> Result<Terms> {
    let mut terms = version.terms().clone();
    let mut has_strings = false;
    version.get(id)?.expression.for_each_predicate(&mut |predicate| {
        terms.intern_term(&predicate.term);
        predicate.term.for_each_attribute(&mut |name| has_strings |= **name == *STRINGS);
    });
    Ok(if has_strings { terms.with_strings() } else { terms })
}

impl<'a> Case<'a> {
    /// Explains why a subscription is a match or not. Fails if there is none with this id.
    pub fn explain(&self, id: &Id, space: &mut Workspace) -> Result<Explained> {
        let subscription = self.version.get(id)?;
        let explanation = explain::explain(&subscription.expression, &self.values());
        let is_approximate = !explanation.outcome.can_be_true && self.is_found(id, space)?;
        Ok(Explained { explanation, exclusions: Exclusion::of(&subscription, &self.filter), is_approximate })
    }

    /// Finds the fewest changes that would make a subscription match. Fails if there is none with this id.
    pub fn why_not(&self, id: &Id, space: &mut Workspace) -> Result<WhyNoMatch> {
        let subscription = self.version.get(id)?;
        let is_true = evaluate(&subscription.expression, &self.values()).can_be_true;
        let expression = if is_true || self.is_found(id, space)? {
            WhyNot::Matches
        } else {
            why_not::why_not(&subscription.expression, &self.values())
        };
        Ok(WhyNoMatch { expression, exclusions: Exclusion::of(&subscription, &self.filter) })
    }

    /// Whether the engine reports it.
    fn is_found(&self, id: &Id, space: &mut Workspace) -> Result<bool> {
        let location = self.version.locate(id).ok_or_else(|| Error::missing(id))?;
        let mut event = self.event.clone();
        let known = self.version.terms().len();
        event.values.retain(|(attribute, _)| (attribute.0 as usize) < known);
        Ok(self.version.matches(&event, &self.filter, space).0.contains(&location))
    }

    fn values(&self) -> impl Fn(&str) -> Option<ValueRef<'a>> {
        |name| self.event.get(self.terms.get(name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Index;
    use crate::event::{Record, json};
    use crate::expr::parser::parse;
    use crate::query::{Query, Tags};

    fn record(text: &str) -> Record {
        json::read_record(text.as_bytes()).unwrap()
    }

    #[test]
    fn exclusions_are_empty_exactly_if_the_filter_keeps_it() {
        let mut subscription = Subscription::new(Id::Int(1), parse("x > 1").unwrap());
        for tags in [vec![], vec!["a"], vec!["a", "b"]] {
            subscription.tags = tags.into_iter().map(Into::into).collect();
            let moments = [None, Some(9), Some(10), Some(11)];
            for (starts, expires) in moments.into_iter().flat_map(|one| moments.map(|other| (one, other))) {
                (subscription.starts, subscription.expires) = (starts, expires);
                let lists = || [vec![], vec!["b".into()], vec!["c".into(), "a".into()]];
                for any in lists().map(Some).into_iter().chain([None]) {
                    for (all, none) in
                        lists().into_iter().flat_map(|all| lists().map(|none| (all.clone(), none)))
                    {
                        let tags = &Tags { any: any.clone(), all, none };
                        let filter = Filter { tags, now: 10 };
                        let excluded = Exclusion::of(&subscription, &filter);
                        assert_eq!(excluded.is_empty(), filter.keeps(&subscription), "{tags:?} {excluded:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn says_what_excludes_it_and_what_would_change_that() {
        let index = Index::default();
        let id = &Id::Int(1);
        let mut subscription = Subscription::new(id.clone(), parse("x > 1").unwrap());
        subscription.tags = vec!["a".into(), "b".into()];
        subscription.expires = Some(10_000_000);
        index.add(subscription).unwrap();
        let reader = index.reader().unwrap();
        let version = &*reader;
        let terms = &attributes_with(version, id).unwrap();
        let record = record(r#"{"x": 2}"#);
        let event = &record.resolve(terms);
        let space = &mut Workspace::default();
        let tags =
            &Tags { any: Some(vec!["c".into()]), all: vec!["d".into(), "a".into()], none: vec!["b".into()] };
        let filter = Filter { tags, now: 12_500_000 };
        let case = Case { version, terms, event, filter };
        let explained = case.explain(id, space).unwrap();
        assert!(!explained.matches() && explained.explanation.outcome.can_be_true);
        let texts: Vec<_> = explained.exclusions.iter().map(|each| (each.text(), each.needs())).collect();
        let expected = [
            (
                "it expired at 1970-01-01 00:00:10 UTC, and it is 1970-01-01 00:00:12.5 UTC",
                "a query before then, or a later expiry",
            ),
            ("its tags are `a`, `b`", "the tag `c`"),
            ("its tags are `a`, `b`", "the tag `d`"),
            ("it has the tag `b`", "to be without it"),
        ];
        assert_eq!(texts, expected.map(|(text, needs)| (text.to_string(), needs.to_string())));
        let reason = case.why_not(id, space).unwrap();
        assert_eq!(reason.to_json()["answer"], "excluded");
        assert_eq!(reason.to_json()["exclusions"], explained.to_json()["exclusions"]);
        let tags = &Tags { any: Some(vec!["b".into()]), ..Tags::default() };
        let filter = Filter { tags, now: 9_999_999 };
        let case = Case { filter, ..case };
        assert!(case.explain(id, space).unwrap().matches());
        assert!(case.why_not(id, space).unwrap().matches());
        assert!(case.explain(&Id::Int(2), space).is_err());
    }

    #[test]
    fn sees_attributes_that_the_index_does_not() {
        let index = Index::default();
        let id = &Id::Int(1);
        index.add(Subscription::new(id.clone(), parse("x IN () OR y > 5").unwrap())).unwrap();
        let reader = index.reader().unwrap();
        let version = &*reader;
        let terms = &attributes_with(version, id).unwrap();
        let record = record(r#"{"x": 2, "y": {"$interval": [1, 2]}}"#);
        let event = &record.resolve(terms);
        let query = Query::default();
        let case = Case { version, terms, event, filter: query.filter() };
        let explained = case.explain(id, &mut Workspace::default()).unwrap();
        assert_eq!(
            explained.explanation.outcome,
            evaluate(&version.get(id).unwrap().expression, &|name| {
                record.get(name).map(|value| value.as_ref())
            })
        );
        assert_eq!(explained.to_json()["children"][0]["value"], 2);
    }
}
