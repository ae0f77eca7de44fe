//! The stored form of a subscription, except its id, priority, start and expiry.
//!
//! ```text
//! length of the expression, expression           see `expr::codec`
//! number of weights, (length, name, f64)*
//! number of tags, (length, name)*
//! 0, or 1 and the payload to the end
//! ```
//! Lengths and numbers are LEB128.

use crate::error::{Error, Result};
use crate::event::{TermId, Terms};
use crate::expr::{Expr, codec};
use crate::subscription::{Id, Subscription};
use crate::term::Term;

/// Appends the record of a subscription. `number` gives the number that stands for a term; it is asked in the order in
/// which predicates are written. `room` is of no meaning before and after.
pub fn encode(
    subscription: &Subscription,
    out: &mut Vec<u8>,
    room: &mut Vec<u8>,
    number: &mut dyn FnMut(&Term) -> TermId,
) {
    room.clear();
    codec::encode(&subscription.expression, room, number);
    put_bytes(out, room);
    put_number(out, subscription.weights.len());
    for (name, weight) in &subscription.weights {
        put_bytes(out, name.as_bytes());
        out.extend_from_slice(&weight.to_le_bytes());
    }
    put_number(out, subscription.tags.len());
    for tag in &subscription.tags {
        put_bytes(out, tag.as_bytes());
    }
    match &subscription.payload {
        None => out.push(0),
        Some(payload) => {
            out.push(1);
            out.extend_from_slice(payload);
        }
    }
}

pub fn decode(id: Id, bytes: &[u8], terms: &Terms) -> Result<Subscription> {
    let damaged = || damaged(&id);
    let mut reader = Reader { bytes };
    let expression = decode_expression(reader.bytes().ok_or_else(damaged)?, terms)?;
    let mut weights = vec![];
    for _ in 0..reader.number().ok_or_else(damaged)? {
        let name = reader.text().ok_or_else(damaged)?;
        let weight = reader.take(8).and_then(|bytes| bytes.try_into().ok()).map(f64::from_le_bytes);
        weights.push((name, weight.ok_or_else(damaged)?));
    }
    let mut tags = vec![];
    for _ in 0..reader.number().ok_or_else(damaged)? {
        tags.push(reader.text().ok_or_else(damaged)?);
    }
    let payload = match reader.take(1).ok_or_else(damaged)? {
        [0] => None,
        _ => Some(reader.bytes.into()),
    };
    Ok(Subscription { weights, tags, payload, ..Subscription::new(id, expression) })
}

/// The expression alone.
pub fn expression(id: Id, bytes: &[u8], terms: &Terms) -> Result<Expr> {
    let stored = Reader { bytes }.bytes().ok_or_else(|| damaged(&id))?;
    decode_expression(stored, terms)
}

/// The tags alone.
pub fn tags(id: Id, bytes: &[u8]) -> Result<Vec<Box<str>>> {
    let mut reader = Reader { bytes };
    let mut read = || -> Option<Vec<Box<str>>> {
        reader.bytes()?;
        for _ in 0..reader.number()? {
            reader.bytes()?;
            reader.take(8)?;
        }
        (0..reader.number()?).map(|_| reader.text()).collect()
    };
    read().ok_or_else(|| damaged(&id))
}

fn decode_expression(stored: &[u8], terms: &Terms) -> Result<Expr> {
    codec::decode(stored, &|term| ((term.0 as usize) < terms.len()).then(|| terms.term(term).clone()))
}

fn damaged(id: &Id) -> Error {
    Error::Snapshot(format!("the record of subscription {id} is damaged"))
}

fn put_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len());
    out.extend_from_slice(bytes);
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(length)?;
        self.bytes = tail;
        Some(head)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0usize;
        for shift in (0..63).step_by(7) {
            let byte = self.take(1)?[0];
            number |= ((byte & 0x7F) as usize) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<Box<str>> {
        std::str::from_utf8(self.bytes()?).ok().map(Into::into)
    }
}
