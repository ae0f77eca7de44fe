//! A query about an event. The library, the tasks of a cluster and the command line all build this value, and
//! engines answer it.
//!
//! As JSON it has only the fields that differ from the plain query for all matches:
//!
//! ```json
//! {"ask": "best", "k": 5, "score": "relevance", "min_score": 0.5, "dimensions": ["age"],
//!  "tags": ["q4"], "tags_all": ["north"], "tags_none": ["paused"], "now": 1767225600000000}
//! ```

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value as Json};

use super::filter::{Filter, Tags};
use super::score::{Ranking, Score};
use crate::error::{Error, Result};
use crate::suggest::suggest;

/// A query about an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    pub ask: Ask,
    pub tags: Tags,
    /// UTC microseconds, which decide what has expired; `None`: the time when the query is asked.
    pub now: Option<i64>,
}

/// What to return for the matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ask {
    /// Every match, sorted by id.
    #[default]
    All,
    /// How many there are.
    Count,
    /// Whether there is one.
    Exists,
    /// The owners that have one, sorted.
    Owners,
    /// The best by a score.
    Best(Ranking),
}

const KEYS: [&str; 9] =
    ["ask", "k", "score", "min_score", "dimensions", "tags", "tags_all", "tags_none", "now"];

impl Ask {
    pub fn name(&self) -> &'static str {
        match self {
            Ask::All => "all",
            Ask::Count => "count",
            Ask::Exists => "exists",
            Ask::Owners => "owners",
            Ask::Best(_) => "best",
        }
    }

    /// The kind with this name; `best` has the ranking that is given, or the default one.
    pub fn named(name: &str, ranking: Option<Ranking>) -> Result<Self> {
        let ask = match name {
            "all" => Ask::All,
            "count" => Ask::Count,
            "exists" => Ask::Exists,
            "owners" => Ask::Owners,
            "best" => return Ok(Ask::Best(ranking.unwrap_or_default())),
            other => {
                return Err(Error::Argument(format!(
                    "a query asks for \"all\", \"count\", \"exists\", \"owners\" or \"best\", not {other:?}"
                )));
            }
        };
        match ranking {
            None => Ok(ask),
            Some(_) => Err(Error::Argument(format!(
                "k, score, min_score and dimensions are about the best matches, and this query asks for {name:?}\n\
                 hint: ask for \"best\", or leave them out"
            ))),
        }
    }
}

impl Query {
    /// The query for the best matches by a score.
    pub fn best(k: usize, score: Score) -> Self {
        Self { ask: Ask::Best(Ranking::new(k, score)), ..Self::default() }
    }

    /// The ranking of a query for the best.
    pub fn ranking(&self) -> Option<&Ranking> {
        match &self.ask {
            Ask::Best(ranking) => Some(ranking),
            _ => None,
        }
    }

    /// The same with the moment fixed, if it is not: for many events that are asked about together.
    pub fn at_current_time(self) -> Self {
        Self { now: self.now.or_else(|| Some(current_time())), ..self }
    }

    /// Its other conditions on subscriptions, if it runs now.
    pub fn filter(&self) -> Filter<'_> {
        Filter { tags: &self.tags, now: self.now.unwrap_or_else(current_time) }
    }

    /// The same for subscriptions that are active at any moment.
    pub fn timeless_filter(&self) -> Filter<'_> {
        Filter { tags: &self.tags, now: self.now.unwrap_or_default() }
    }

    /// ```
    /// use tamis_core::query::{Query, Score};
    /// let query = Query::best(3, Score::Relevance);
    /// assert_eq!(query.to_json(), r#"{"ask":"best","k":3,"score":"relevance"}"#);
    /// assert_eq!(Query::from_json(&query.to_json()).unwrap(), query);
    /// ```
    pub fn to_json(&self) -> String {
        let mut members = Map::new();
        let mut put = |key: &str, value: Json| drop(members.insert(key.into(), value));
        let texts = |list: &[Box<str>]| -> Json { list.iter().map(|text| Json::from(&**text)).collect() };
        put("ask", self.ask.name().into());
        if let Ask::Best(ranking) = &self.ask {
            put("k", ranking.k.into());
            put("score", ranking.score.text().into());
            if ranking.min_score != f64::NEG_INFINITY {
                // JSON has no infinity; nothing scores that much, and more than the largest number is as much.
                put("min_score", ranking.min_score.min(f64::MAX).into());
            }
            if let Some(dimensions) = &ranking.dimensions {
                put("dimensions", texts(dimensions));
            }
        }
        if let Some(any) = &self.tags.any {
            put("tags", texts(any));
        }
        for (key, tags) in [("tags_all", &self.tags.all), ("tags_none", &self.tags.none)] {
            if !tags.is_empty() {
                put(key, texts(tags));
            }
        }
        if let Some(now) = self.now {
            put("now", now.into());
        }
        Json::Object(members).to_string()
    }

    /// Reads what [`to_json`](Self::to_json) writes, or says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self> {
        let json: Json = serde_json::from_str(text)
            .map_err(|error| Error::Argument(format!("a query is a JSON object: {error}")))?;
        let Json::Object(members) = json else {
            return Err(Error::Argument(format!("a query is a JSON object, not {json}")));
        };
        if let Some(unknown) = members.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let hint = match suggest(unknown, KEYS) {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!("it may have {}", KEYS.join(", ")),
            };
            return Err(Error::Argument(format!("a query has no `{unknown}`\nhint: {hint}")));
        }
        let wrong = |key: &str, wanted: &str| Error::Argument(format!("query: `{key}` is {wanted}"));
        let texts = |key: &str| -> Result<Option<Vec<Box<str>>>> {
            let Some(value) = members.get(key) else { return Ok(None) };
            let list = value.as_array().and_then(|list| {
                list.iter().map(|item| item.as_str().map(Into::into)).collect::<Option<Vec<Box<str>>>>()
            });
            list.map(Some).ok_or_else(|| wrong(key, "a list of strings"))
        };
        let text = |key: &str| {
            members.get(key).map(|value| value.as_str().ok_or_else(|| wrong(key, "a string"))).transpose()
        };
        let is_ranked =
            ["k", "score", "min_score", "dimensions"].iter().any(|key| members.contains_key(*key));
        let mut ranking = Ranking::default();
        if let Some(k) = members.get("k") {
            ranking.k = k.as_u64().ok_or_else(|| wrong("k", "a number that is not negative"))? as usize;
        }
        if let Some(score) = text("score")? {
            ranking.score = Score::named(score)?;
        }
        if let Some(least) = members.get("min_score") {
            ranking.min_score = least.as_f64().ok_or_else(|| wrong("min_score", "a number"))?;
        }
        ranking.dimensions = texts("dimensions")?;
        let asked = text("ask")?.unwrap_or(if is_ranked { "best" } else { "all" });
        Ok(Self {
            ask: Ask::named(asked, is_ranked.then_some(ranking))?,
            tags: Tags {
                any: texts("tags")?,
                all: texts("tags_all")?.unwrap_or_default(),
                none: texts("tags_none")?.unwrap_or_default(),
            },
            now: match members.get("now") {
                None => None,
                Some(now) => Some(now.as_i64().ok_or_else(|| wrong("now", "UTC microseconds"))?),
            },
        })
    }
}

/// UTC microseconds.
pub fn current_time() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_micros() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_survive_json() {
        let tags = |names: &[&str]| names.iter().map(|name| (*name).into()).collect::<Vec<Box<str>>>();
        let ranking = Ranking {
            min_score: 0.5,
            dimensions: Some(tags(&["a", "b c"])),
            ..Ranking::new(7, Score::named("min(a, `b c`) + 0.5 * d").unwrap())
        };
        let selected = Tags { any: Some(vec![]), all: tags(&["x"]), none: tags(&["y", "z"]) };
        for query in [
            Query::default(),
            Query { ask: Ask::Exists, now: Some(-5), ..Query::default() },
            Query { ask: Ask::Best(ranking), tags: selected, now: None },
        ] {
            assert_eq!(Query::from_json(&query.to_json()).unwrap(), query, "{}", query.to_json());
        }
        assert_eq!(Query::from_json(r#"{"k": 3}"#).unwrap(), Query::best(3, Score::Priority));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("[1]", "a JSON object"),
            (r#"{"scroe": "priority"}"#, "did you mean `score`?"),
            (r#"{"ask": "some"}"#, "\"count\""),
            (r#"{"ask": "count", "k": 3}"#, "about the best matches"),
            (r#"{"k": -1}"#, "`k`"),
            (r#"{"tags": "a"}"#, "`tags` is a list of strings"),
            (r#"{"score": "prio"}"#, "there is no score"),
            (r#"{"now": "today"}"#, "UTC microseconds"),
        ] {
            let error = Query::from_json(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
