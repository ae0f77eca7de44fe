//! Adding subscriptions by the million: parsed on all cores, built in the order of their ids.

use std::sync::mpsc::{Receiver, sync_channel};

use super::store::Index;
use super::subscription::{Id, Subscription};
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::expr::parser::parse;

/// Rows parsed per step by one thread.
const CHUNK: usize = 2048;

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

    /// Fills in what belongs to the subscription beside id and expression.
    fn details(&self, row: usize, subscription: &mut Subscription) -> Result<()>;
}

/// What happens when a row is bad.
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
        let mut errors = vec![];
        let order = self.order_by_id(rows, &mut errors);
        fail_if_wanted(&mut errors, on_error)?;
        let count = std::thread::scope(|scope| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let threads = threads.min(order.len().div_ceil(CHUNK)).max(1);
            let parsed: Vec<Receiver<Vec<Parsed>>> = (0..threads)
                .map(|thread| {
                    let (sender, receiver) = sync_channel(2);
                    let order = &order;
                    scope.spawn(move || {
                        for chunk in order.chunks(CHUNK).skip(thread).step_by(threads) {
                            let parsed =
                                chunk.iter().map(|(id, row)| self.parse_row(rows, id, *row)).collect();
                            if sender.send(parsed).is_err() {
                                return;
                            }
                        }
                    });
                    receiver
                })
                .collect();
            let chunks = order.len().div_ceil(CHUNK);
            let in_order = (0..chunks).flat_map(|chunk| parsed[chunk % threads].recv().unwrap_or_default());
            let good = in_order.filter_map(|(row, id, outcome)| match outcome {
                Ok(subscription) => Some(Ok(subscription)),
                Err(error) if on_error == OnError::Collect => {
                    errors.push(RowError { row, id: Some(id), error });
                    None
                }
                Err(error) => Some(Err(RowError { row, id: Some(id), error }.into_error())),
            });
            self.add_sorted(good)
        })?;
        errors.sort_by_key(|error| error.row);
        Ok(Added { count, errors })
    }

    fn parse_row(&self, rows: &impl NewRows, id: &Id, row: usize) -> Parsed {
        let parsed = || -> Result<Subscription> {
            let expression = match rows.source(row)? {
                Source::Text(text) => parse(text)?,
                Source::Parsed(expression) => expression,
            };
            let mut subscription = Subscription::new(id.clone(), expression);
            rows.details(row, &mut subscription)?;
            self.check(&subscription)?;
            Ok(subscription)
        };
        (row, id.clone(), parsed())
    }

    /// Sorts the rows by id and sets aside those whose id is bad, taken, or given before.
    fn order_by_id(&self, rows: &impl NewRows, errors: &mut Vec<RowError>) -> Vec<(Id, usize)> {
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
        let mut previous: Option<Id> = None;
        let mut good = Vec::with_capacity(order.len());
        for (id, row) in order {
            let problem = match kind.map(|kind| kind.check(&id)) {
                Some(Err(error)) => Some(error),
                _ if previous.as_ref() == Some(&id) => {
                    Some(Error::DuplicateId(format!("id {id} is given twice in the same call")))
                }
                _ if reader.locate(&id).is_some() => Some(Error::duplicate(&id)),
                _ => None,
            };
            match problem {
                Some(error) => errors.push(RowError { row, id: Some(id), error }),
                None => {
                    previous = Some(id.clone());
                    good.push((id, row));
                }
            }
        }
        good
    }
}

type Parsed = (usize, Id, Result<Subscription>);

fn fail_if_wanted(errors: &mut Vec<RowError>, on_error: OnError) -> Result<()> {
    if on_error == OnError::Raise && !errors.is_empty() {
        errors.sort_by_key(|error| error.row);
        return Err(errors.swap_remove(0).into_error());
    }
    Ok(())
}
