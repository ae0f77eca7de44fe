//! Adds millions of subscriptions: parses and normalises them on all cores, in the order of their ids.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::contract::NewSubscriptions;
use super::index::Index;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::parser::parse;
use crate::subscription::{Id, Subscription};

/// The expression of a row, as the caller has it.
pub enum Source<'a> {
    Text(&'a str),
    Parsed(Expr),
}

/// Many new subscriptions, wherever they are stored.
pub trait NewRows: Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn id(&self, row: usize) -> Result<Id>;

    fn source(&self, row: usize) -> Result<Source<'_>>;

    /// Fills in the rest of a subscription: everything but id and expression.
    fn details(&self, row: usize, subscription: &mut Subscription) -> Result<()>;
}

/// How bad rows are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Nothing is added, and the error of the first bad row is returned.
    Raise,
    /// The good rows are added, and the errors of the others are returned.
    Collect,
}

/// A row that was not added.
#[derive(Debug)]
pub struct RowError {
    pub row: usize,
    pub id: Option<Id>,
    pub error: Error,
}

impl RowError {
    fn into_error(self) -> Error {
        let place = match &self.id {
            Some(id) => format!("row {} (id {id})", self.row),
            None => format!("row {}", self.row),
        };
        self.error.within(&place)
    }
}

pub struct Added {
    pub count: usize,
    /// By row.
    pub errors: Vec<RowError>,
}

impl Index {
    /// Adds many subscriptions at once. All that are added become visible together.
    pub fn add_many(&self, rows: &impl NewRows, on_error: OnError) -> Result<Added> {
        if u32::try_from(rows.len()).is_err() {
            return Err(Error::Argument("at most 4 billion subscriptions can be added at once".into()));
        }
        let mut errors = vec![];
        let order = self.order_by_id(rows, &mut errors);
        fail_if_wanted(&mut errors, on_error)?;
        let errors = Mutex::new(errors.into_iter().map(|error| (error.row, error)).collect());
        let checked = Checked { index: self, rows, order, on_error, errors };
        let count = self.engine().add_all(&checked)?;
        let errors = checked.errors.into_inner().expect("nobody panicked while holding this");
        Ok(Added { count, errors: errors.into_values().collect() })
    }

    fn parse_row(&self, rows: &impl NewRows, row: usize) -> Result<Subscription> {
        let source = rows.source(row)?;
        let (expression, text) = match source {
            Source::Text(text) => (parse(text)?, Some(text)),
            Source::Parsed(expression) => (expression, None),
        };
        let mut subscription = Subscription::new(rows.id(row)?, expression);
        rows.details(row, &mut subscription)?;
        match text {
            Some(text) => self.check_parsed(&subscription).map_err(|error| self.located(error, text))?,
            None => self.check(&subscription)?,
        }
        Ok(subscription)
    }

    /// The rows in the order of their ids, but for those whose id is bad, taken, or given before. Ids are
    /// asked for again when they are needed: strings would be held twice.
    fn order_by_id(&self, rows: &impl NewRows, errors: &mut Vec<RowError>) -> Vec<u32> {
        let mut order = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            match rows.id(row) {
                Ok(id) => order.push((id, row)),
                Err(error) => errors.push(RowError { row, id: None, error }),
            }
        }
        order.sort_unstable();
        let reader = self.unchecked_reader();
        let kind =
            reader.id_kind().or_else(|| order.iter().min_by_key(|(_, row)| *row).map(|(id, _)| id.kind()));
        let mut previous: Option<(Id, usize)> = None;
        let mut good = Vec::with_capacity(order.len());
        for (id, row) in order {
            let same = previous.as_ref().filter(|(earlier, _)| *earlier == id);
            let problem = match (kind.map(|kind| kind.check(&id)), same) {
                (Some(Err(error)), _) => Some(error),
                (_, Some((_, first))) => Some(Error::DuplicateId(format!(
                    "row {first} has the same id; each row adds a subscription of its own"
                ))),
                _ if reader.locate(&id).is_some() => Some(Error::duplicate(&id)),
                _ => None,
            };
            match problem {
                Some(error) => errors.push(RowError { row, id: Some(id), error }),
                None => {
                    good.push(row as u32);
                    previous = Some((id, row));
                }
            }
        }
        good
    }
}

/// The rows whose ids are right, in the order of their ids.
struct Checked<'a, R> {
    index: &'a Index,
    rows: &'a R,
    order: Vec<u32>,
    on_error: OnError,
    /// By row: an engine may ask for one again.
    errors: Mutex<BTreeMap<usize, RowError>>,
}

impl<R: NewRows> NewSubscriptions for Checked<'_, R> {
    fn len(&self) -> usize {
        self.order.len()
    }

    fn get(&self, at: usize) -> Result<Option<Subscription>> {
        match self.index.parse_row(self.rows, self.order[at] as usize) {
            Ok(subscription) => Ok(Some(subscription)),
            Err(error) => self.refuse(at, error).map(|()| None),
        }
    }

    /// Sets aside what is wrong with a row, or fails.
    fn refuse(&self, at: usize, error: Error) -> Result<()> {
        let row = self.order[at] as usize;
        let refused = RowError { row, id: self.rows.id(row).ok(), error };
        match self.on_error {
            OnError::Raise => Err(refused.into_error()),
            OnError::Collect => {
                let mut errors = self.errors.lock().expect("nobody panics while holding this");
                errors.insert(row, refused);
                Ok(())
            }
        }
    }
}

fn fail_if_wanted(errors: &mut Vec<RowError>, on_error: OnError) -> Result<()> {
    if on_error == OnError::Raise && !errors.is_empty() {
        errors.sort_by_key(|error| error.row);
        return Err(errors.swap_remove(0).into_error());
    }
    Ok(())
}
