//! Events as Python objects, where a plain dict is not enough.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use tamis_core::event::{Fields, Record, RecordBuilder, Value, json};

use crate::convert::{value_from_python, value_to_python, walk_mapping};
use crate::errors::{OrRaise, argument_error, type_error};

/// A closed interval as the value of an attribute: an unknown value between `low` and `high`.
///
/// A predicate on it can be true, false or either. A subscription matches when it can be true.
///
/// >>> import tamis
/// >>> event = {"hours": tamis.Interval(20, 30)}
/// >>> tamis.parse("hours > 10").evaluate(event), tamis.parse("hours > 25").evaluate(event)
/// (True, 'either')
#[pyclass(name = "Interval", module = "tamis", frozen, eq, hash)]
#[derive(PartialEq, Hash)]
pub struct PyInterval(Value);

impl PyInterval {
    /// Wraps a [`Value::Interval`].
    pub fn from_value(interval: Value) -> Self {
        Self(interval)
    }

    pub fn value(&self) -> &Value {
        &self.0
    }

    fn ends(&self) -> (&Value, &Value) {
        match &self.0 {
            Value::Interval(ends) => (&ends.0, &ends.1),
            point => (point, point),
        }
    }
}

#[pymethods]
impl PyInterval {
    #[new]
    fn new(low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<Self> {
        let end =
            |object| value_from_python(object).map_err(|refused| argument_error(low.py(), refused.message));
        Value::interval(end(low)?, end(high)?).map(Self).map_err(|message| argument_error(low.py(), message))
    }

    #[getter]
    fn low<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        value_to_python(py, self.ends().0)
    }

    #[getter]
    fn high<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        value_to_python(py, self.ends().1)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Interval({}, {})", self.low(py)?.repr()?, self.high(py)?.repr()?))
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        Ok((self.low(py)?, self.high(py)?))
    }
}

/// A set of values as the value of an attribute, given by a predicate without its attribute: an unknown value
/// that satisfies it.
///
/// A predicate of a subscription can be true if some value satisfies both.
///
/// >>> import tamis
/// >>> event = {"hours": tamis.Where("> 15"), "city": tamis.Where("NOT IN ('Oslo', 'Rome')")}
/// >>> tamis.parse("hours <= 15").evaluate(event), tamis.parse("hours < 20").evaluate(event)
/// (False, 'either')
/// >>> tamis.parse("city = 'Oslo'").evaluate(event), tamis.parse("city != 'Oslo'").evaluate(event)
/// (False, True)
#[pyclass(name = "Where", module = "tamis", frozen, eq, hash)]
#[derive(PartialEq, Hash)]
pub struct PyWhere {
    text: String,
    value: Value,
}

impl PyWhere {
    /// Wraps a [`Value::Set`].
    pub fn from_value(value: Value) -> Self {
        let text = if let Value::Set(set) = &value { set.text().to_owned() } else { String::new() };
        Self { text, value }
    }

    pub fn value(&self) -> &Value {
        &self.value
    }
}

#[pymethods]
impl PyWhere {
    #[new]
    fn new(py: Python<'_>, predicate: &str) -> PyResult<Self> {
        let value =
            Value::satisfying_text(predicate).map_err(|error| argument_error(py, error.to_string()))?;
        Ok(Self { text: predicate.trim().into(), value })
    }

    /// The predicate, as it was written.
    #[getter]
    fn predicate(&self) -> &str {
        &self.text
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Where({})", PyString::new(py, &self.text).repr()?))
    }

    fn __getnewargs__(&self) -> (&str,) {
        (&self.text,)
    }
}

/// An event that is read once and can be matched many times. It may carry weights per attribute.
///
/// Made from a dict, or from JSON text or bytes. A value that the language cannot represent (an integer of
/// more than 64 bits, a list of mixed kinds, NaT) makes its attribute absent and is listed in `unreadable`;
/// with `strict`, it is an error.
///
/// >>> import tamis
/// >>> event = tamis.Event({"age": 27, "hours": tamis.Interval(20, 30)}, weights={"age": 0.6})
/// >>> event["age"], event.get("country"), event.weights
/// (27, None, {'age': 0.6})
/// >>> tamis.Event('{"person": {"name": "Ada"}}')["person.name"]
/// 'Ada'
#[pyclass(name = "Event", module = "tamis", frozen, eq)]
#[derive(PartialEq)]
pub struct PyEvent(Record);

impl PyEvent {
    pub fn of(record: Record) -> Self {
        Self(record)
    }

    pub fn record(&self) -> &Record {
        &self.0
    }
}

#[pymethods]
impl PyEvent {
    #[new]
    #[pyo3(signature = (values, weights = None, *, strict = false))]
    fn new(values: &Bound<'_, PyAny>, weights: Option<&Bound<'_, PyDict>>, strict: bool) -> PyResult<Self> {
        let py = values.py();
        let mut builder = RecordBuilder::default();
        match source(values)? {
            Source::Event(event) => {
                for (name, value) in event.get().0.values() {
                    builder.enter(name);
                    builder.put_owned(value.clone());
                    builder.leave();
                }
                for (name, weight) in event.get().0.weights() {
                    builder.put_weight(name, weight).or_raise(py)?;
                }
                event.get().0.unreadable().iter().for_each(|error| builder.put_unreadable(error.clone()));
            }
            Source::Json(text) => json::walk(&text, &mut builder).or_raise(py)?,
            Source::Mapping => walk_mapping(values, &mut builder).or_raise(py)?,
        }
        for (name, weight) in weights.into_iter().flat_map(|weights| weights.iter()) {
            builder.put_weight(name.extract()?, weight.extract()?).or_raise(py)?;
        }
        let record = builder.finish().or_raise(py)?;
        match record.unreadable().first().filter(|_| strict) {
            Some(unreadable) => Err(unreadable.clone()).or_raise(py),
            None => Ok(Self(record)),
        }
    }

    /// The cells of a row of a CSV file: text that each predicate reads as the kind it expects.
    ///
    /// >>> import tamis
    /// >>> event = tamis.Event.of_cells({"zip": "02134"})
    /// >>> [tamis.parse(text).evaluate(event) for text in ("zip = '02134'", "zip > 5", "zip = '2134'")]
    /// [True, True, False]
    #[staticmethod]
    fn of_cells(py: Python<'_>, cells: BTreeMap<String, Option<String>>) -> PyResult<Self> {
        let cell = |text: Option<String>| text.map_or(Value::Null, |text| Value::Cell(text.into()));
        let values = cells.into_iter().map(|(name, text)| (name, cell(text)));
        Record::new(values, []).or_raise(py).map(Self)
    }

    /// The values that the language cannot represent: (attribute, reason), in order. These attributes are
    /// absent.
    ///
    /// >>> import tamis
    /// >>> event = tamis.Event({"n": 2**70, "age": 27})
    /// >>> event.unreadable[0][0], "n" in event, "age" in event
    /// ('n', False, True)
    #[getter]
    fn unreadable(&self) -> Vec<(String, String)> {
        let shown = self.0.unreadable().iter();
        shown.map(|error| (error.path.clone().unwrap_or_default(), error.message.clone())).collect()
    }

    /// The value of an attribute by its dotted name; `KeyError` when it is absent.
    fn __getitem__<'py>(&self, py: Python<'py>, attribute: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.0.get(attribute) {
            Some(value) => value_to_python(py, value),
            None => Err(pyo3::exceptions::PyKeyError::new_err(attribute.to_string())),
        }
    }

    /// The value of an attribute by its dotted name, or `default` when it is absent.
    #[pyo3(signature = (attribute, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        attribute: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.get(attribute).map_or(Ok(default), |value| value_to_python(py, value).map(Some))
    }

    fn __contains__(&self, attribute: &str) -> bool {
        self.0.get(attribute).is_some()
    }

    fn __len__(&self) -> usize {
        self.0.values().len()
    }

    /// The weights per attribute, as a new dict.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let weights = PyDict::new(py);
        for (name, weight) in self.0.weights() {
            weights.set_item(name, weight)?;
        }
        Ok(weights)
    }

    /// Whether some attribute holds an interval, or another set of values, instead of a point.
    #[getter]
    fn has_sets(&self) -> bool {
        self.0.has_sets()
    }

    /// The event as JSON text, from which `tamis.Event` reads it back.
    fn to_json(&self) -> String {
        json::write(&self.0)
    }

    fn __repr__(&self) -> String {
        format!("Event({})", json::write(&self.0))
    }

    fn __getnewargs__(&self) -> (String,) {
        (json::write(&self.0),)
    }
}

/// What a caller passed as an event.
pub enum Source<'a, 'py> {
    Event(&'a Bound<'py, PyEvent>),
    Json(std::borrow::Cow<'a, [u8]>),
    Mapping,
}

pub fn source<'a, 'py>(event: &'a Bound<'py, PyAny>) -> PyResult<Source<'a, 'py>> {
    if event.is_instance_of::<PyDict>() {
        return Ok(Source::Mapping);
    }
    if let Ok(bytes) = event.cast::<PyBytes>() {
        return Ok(Source::Json(bytes.as_bytes().into()));
    }
    if let Ok(text) = event.cast::<PyString>() {
        return Ok(Source::Json(text.to_str()?.as_bytes().into()));
    }
    if let Ok(event) = event.cast::<PyEvent>() {
        return Ok(Source::Event(event));
    }
    if event.hasattr("items")? {
        return Ok(Source::Mapping);
    }
    let is_many = event.hasattr("__arrow_c_stream__")? || event.try_iter().is_ok();
    let hint = if is_many { "; Index.match_batch takes several events" } else { "" };
    Err(type_error(format!(
        "an event is a dict, a tamis.Event, or JSON text or bytes, not {}{hint}",
        event.get_type().name()?
    )))
}

/// Tells the fields of anything that can be an event to a listener.
pub fn with_record<T>(event: &Bound<'_, PyAny>, use_it: impl FnOnce(&Record) -> T) -> PyResult<T> {
    let py = event.py();
    match source(event)? {
        Source::Event(event) => Ok(use_it(event.get().record())),
        Source::Json(text) => Ok(use_it(&json::read_record(&text).or_raise(py)?)),
        Source::Mapping => {
            let mut builder = RecordBuilder::default();
            walk_mapping(event, &mut builder).or_raise(py)?;
            Ok(use_it(&builder.finish().or_raise(py)?))
        }
    }
}
