//! Holds the subscriptions of an index that runs on one of the published algorithms.
//!
//! Those are mutable structures: readers share a lock that a writer takes alone.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::lock_api::ArcRwLockReadGuard;
use parking_lot::{RawRwLock, RwLock};

use super::algorithm::Algorithm;
use super::production::Change;
use crate::error::{Error, Result};
use crate::event::Attributes;
use crate::fork::Busy;
use crate::subscription::{Id, IdKind, Subscription};

/// Keeps writers out, and forks.
pub struct ClassicReader {
    // Released before the thread stops being busy: fields are dropped in this order.
    state: ArcRwLockReadGuard<RawRwLock, ClassicState>,
    _busy: Busy,
}

impl Deref for ClassicReader {
    type Target = ClassicState;

    fn deref(&self) -> &ClassicState {
        &self.state
    }
}

pub struct Classic {
    state: Arc<RwLock<ClassicState>>,
}

pub struct ClassicState {
    pub generation: u64,
    pub attributes: Attributes,
    pub id_kind: Option<IdKind>,
    pub algorithm: Box<dyn Algorithm>,
    pub rows: Vec<Option<Subscription>>,
    pub by_id: BTreeMap<Id, u32>,
    free: Vec<u32>,
}

impl Classic {
    pub fn new(algorithm: Box<dyn Algorithm>) -> Self {
        let state = ClassicState {
            generation: 0,
            attributes: Attributes::default(),
            id_kind: None,
            algorithm,
            rows: vec![],
            by_id: BTreeMap::new(),
            free: vec![],
        };
        Self { state: Arc::new(RwLock::new(state)) }
    }

    pub fn reader(&self) -> ClassicReader {
        let busy = Busy::new();
        ClassicReader { state: self.state.read_arc(), _busy: busy }
    }

    pub fn apply(&self, change: Change) -> Result<()> {
        let _busy = Busy::new();
        let mut state = self.state.write();
        state.change(change)?;
        state.generation += 1;
        Ok(())
    }

    /// Adds many at once. `refuse` hears of each that cannot be added and by what it was called; if it fails,
    /// none is added.
    pub fn add_all<N>(
        &self,
        subscriptions: impl Iterator<Item = (N, Result<Subscription>)>,
        refuse: impl Fn(N, Error) -> Result<()>,
    ) -> Result<usize> {
        let _busy = Busy::new();
        let mut state = self.state.write();
        let mut added = vec![];
        state.algorithm.gather();
        for (name, subscription) in subscriptions {
            let outcome = subscription.and_then(|subscription| {
                let id = subscription.id.clone();
                state.change(Change::Add(subscription)).map(|()| id)
            });
            let refused = match outcome {
                Ok(id) => {
                    added.push(id);
                    Ok(())
                }
                Err(error) => refuse(name, error),
            };
            if let Err(error) = refused {
                state.algorithm.settle();
                for id in added {
                    state.change(Change::Remove(id))?;
                }
                return Err(error);
            }
        }
        state.algorithm.settle();
        state.generation += 1;
        Ok(added.len())
    }
}

impl ClassicState {
    fn change(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Add(subscription) => {
                self.id_kind.unwrap_or(subscription.id.kind()).check(&subscription.id)?;
                if self.by_id.contains_key(&subscription.id) {
                    return Err(Error::duplicate(&subscription.id));
                }
                self.insert(subscription)
            }
            Change::Replace(subscription) => {
                let row = self.row(&subscription.id)?;
                self.exchange(row, subscription)
            }
            Change::Upsert(subscription) => {
                self.id_kind.unwrap_or(subscription.id.kind()).check(&subscription.id)?;
                match self.by_id.get(&subscription.id) {
                    Some(&row) => self.exchange(row, subscription),
                    None => self.insert(subscription),
                }
            }
            Change::Remove(id) => {
                let row = self.row(&id)?;
                self.take(row);
                Ok(())
            }
            Change::Rescore(id, scores) => {
                let row = self.row(&id)?;
                let held = self.rows[row as usize].as_mut().expect("rows named by an id are filled");
                let mut changed = held.clone();
                scores.apply(&mut changed);
                changed.check()?;
                *held = changed;
                self.algorithm.rescore(row, held, &self.attributes);
                Ok(())
            }
        }
    }

    fn row(&self, id: &Id) -> Result<u32> {
        self.by_id.get(id).copied().ok_or_else(|| Error::missing(id))
    }

    fn insert(&mut self, subscription: Subscription) -> Result<()> {
        let row = self.free.pop().unwrap_or(self.rows.len() as u32);
        if let Err(error) = self.algorithm.insert(row, &subscription, &mut self.attributes) {
            self.free.push(row);
            if row as usize == self.rows.len() {
                self.rows.push(None);
            }
            return Err(error);
        }
        if row as usize == self.rows.len() {
            self.rows.push(None);
        }
        self.id_kind = Some(subscription.id.kind());
        self.by_id.insert(subscription.id.clone(), row);
        self.rows[row as usize] = Some(subscription);
        Ok(())
    }

    /// Replaces, or leaves the old one in place if the new one is refused.
    fn exchange(&mut self, row: u32, subscription: Subscription) -> Result<()> {
        let old = self.take(row);
        self.insert(subscription).or_else(|error| {
            self.insert(old)?;
            Err(error)
        })
    }

    fn take(&mut self, row: u32) -> Subscription {
        let old = self.rows[row as usize].take().expect("rows named by an id are filled");
        self.by_id.remove(&old.id);
        self.algorithm.remove(row, &old, &self.attributes);
        self.free.push(row);
        old
    }
}
