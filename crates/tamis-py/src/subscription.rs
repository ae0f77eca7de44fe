//! Subscriptions between Python and the kernel.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyMapping, PyString, PyTuple};
use tamis_core::engine::Index;
use tamis_core::event::Value;
use tamis_core::expr::parse;
use tamis_core::{Error, Id, Subscription};

use crate::convert::{value_from_python, value_to_python};
use crate::errors::{OrRaise, argument_error, type_error};
use crate::expr::{Given, PyExpression, expression_or_text};
use crate::ids::{id_from_python, id_to_python};

/// The first and the last microsecond that Python's datetime can show.
const MOMENTS: std::ops::RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// The optional data of a subscription: priority, weights, tags, owner, payload, expires, starts.
#[derive(FromPyObject)]
pub struct Details<'py>(
    Bound<'py, PyAny>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
);

/// A subscription whose text, if it has one, is still to be parsed.
pub struct Draft {
    id: Id,
    expression: Given,
    priority: f64,
    weights: Vec<(Box<str>, f64)>,
    tags: Vec<Box<str>>,
    owner: Option<Box<str>>,
    payload: Option<Box<[u8]>>,
    expires: Option<i64>,
    starts: Option<i64>,
}

impl Draft {
    pub fn new(id: &Bound<'_, PyAny>, expression: &Bound<'_, PyAny>, details: Details<'_>) -> PyResult<Self> {
        let Details(priority, weights, tags, owner, payload, expires, starts) = details;
        Ok(Self {
            id: id_from_python(id).or_raise(id.py())?,
            expression: expression_or_text(expression)?,
            priority: number("the priority", &priority)?,
            weights: weights.map_or(Ok(vec![]), |weights| weights_from_python(&weights))?,
            tags: tags.map_or(Ok(vec![]), |tags| tags_from_python(&tags))?,
            owner: owner.map(|owner| text("the owner", &owner)).transpose()?.map(Into::into),
            payload: payload.map(|payload| payload_from_python(&payload)).transpose()?,
            expires: expires.map(|expires| moment_from_python("expires", &expires)).transpose()?,
            starts: starts.map(|starts| moment_from_python("starts", &starts)).transpose()?,
        })
    }

    /// Changes an index with the subscription; needs no interpreter.
    pub fn apply(
        self,
        index: &Index,
        change: fn(&Index, Subscription) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { id, expression, priority, weights, tags, owner, payload, expires, starts } = self;
        let name = id.clone();
        let subscription = |expression| Subscription {
            id,
            expression,
            priority,
            weights,
            tags,
            owner,
            payload,
            expires,
            starts,
        };
        let changed = match expression {
            Given::Text(text) => parse(&text)
                .map_err(Error::from)
                .and_then(|expr| change(index, subscription(expr)))
                .map_err(|error| index.located(error, &text)),
            Given::Parsed(expr) => change(index, subscription(Arc::unwrap_or_clone(expr))),
        };
        changed.map_err(|error| error.in_expression_of(&name))
    }
}

/// The fields of `tamis.Subscription`, in its order.
pub fn subscription_to_python(py: Python<'_>, subscription: Subscription) -> PyResult<Bound<'_, PyTuple>> {
    let Subscription { id, expression, priority, weights, tags, owner, payload, expires, starts } =
        subscription;
    let shown_weights = PyDict::new(py);
    for (attribute, weight) in weights {
        shown_weights.set_item(&*attribute, weight)?;
    }
    let tags: Vec<&str> = tags.iter().map(|tag| &**tag).collect();
    let moment = |micros| value_to_python(py, &Value::Timestamp(micros));
    let [expires, starts] = [expires.map(moment).transpose()?, starts.map(moment).transpose()?];
    let payload = payload.map(|payload| PyBytes::new(py, &payload));
    (
        id_to_python(py, id.as_ref())?,
        PyExpression::new(expression),
        priority,
        shown_weights,
        PyTuple::new(py, tags)?,
        payload,
        expires,
        owner.as_deref(),
        starts,
    )
        .into_pyobject(py)
}

/// Tags, given as any iterable of strings but a string.
pub fn tags_from_python(tags: &Bound<'_, PyAny>) -> PyResult<Vec<Box<str>>> {
    if tags.is_instance_of::<PyString>() {
        return Err(type_error(format!("tags are a list of strings; write tags=[{}]", tags.repr()?)));
    }
    let items = tags.try_iter().map_err(|_| type_error("tags are a list of strings"))?;
    items.map(|tag| Ok(text("a tag", &tag?)?.into())).collect()
}

/// UTC microseconds, from a datetime, a date or such microseconds.
pub fn moment_from_python(what: &str, moment: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = moment.py();
    let micros = if moment.is_instance_of::<PyInt>() && !moment.is_instance_of::<PyBool>() {
        moment.extract().ok()
    } else {
        match value_from_python(moment) {
            Ok(Value::Timestamp(micros)) => Some(micros),
            _ => {
                return Err(type_error(format!(
                    "{what} is a datetime or UTC microseconds, not {}",
                    moment.get_type().name()?
                )));
            }
        }
    };
    micros.filter(|micros| MOMENTS.contains(micros)).ok_or_else(|| {
        argument_error(py, format!("{what} must lie between the years 1 and 9999, not at {moment}"))
    })
}

/// Weights per attribute, sorted by attribute.
pub fn weights_from_python(weights: &Bound<'_, PyAny>) -> PyResult<Vec<(Box<str>, f64)>> {
    let Ok(weights) = weights.cast::<PyMapping>() else {
        return Err(type_error("weights are a dict of attribute -> number"));
    };
    let mut all: Vec<(Box<str>, f64)> = vec![];
    for item in weights.items()?.iter() {
        let (attribute, weight): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let attribute = text("an attribute in the weights", &attribute)?;
        let weight = number(&format!("the weight of {attribute:?}"), &weight)?;
        all.push((attribute.into(), weight));
    }
    // The order in which a dict was filled must not show in the index.
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(all)
}

fn payload_from_python(payload: &Bound<'_, PyAny>) -> PyResult<Box<[u8]>> {
    match payload.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes().into()),
        Err(_) => Err(type_error(format!("a payload is bytes, not {}", payload.get_type().name()?))),
    }
}

/// A number that is no bool.
pub fn number(what: &str, object: &Bound<'_, PyAny>) -> PyResult<f64> {
    if object.is_instance_of::<PyBool>() {
        return Err(type_error(format!("{what} is a number, not bool")));
    }
    object
        .extract()
        .or_else(|_| Err(type_error(format!("{what} is a number, not {}", object.get_type().name()?))))
}

fn text(what: &str, object: &Bound<'_, PyAny>) -> PyResult<String> {
    object
        .extract()
        .or_else(|_| Err(type_error(format!("{what} is a string, not {}", object.get_type().name()?))))
}
