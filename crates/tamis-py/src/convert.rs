//! Converts Python values (literals of the builder, fields of a dict) to kernel values.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyDate, PyDateTime, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple, PyType,
};
use tamis_core::event::{EventError, Fields, RecordBuilder, Value, ValueRef, Wanted, json};

use crate::dict_items::{Texts, take_fields};
use crate::event::{PyInterval, PyWhere};
use crate::seen_names::SeenNames;

/// Why a Python object is not a value of the language; the caller adds where it came from.
pub struct Refused {
    pub message: String,
    pub hint: Option<&'static str>,
    /// Whether it is a Python value that the language cannot represent: an integer of more than 64 bits, a
    /// decimal of too many digits, NaT, a list of mixed kinds. An event with one is read without that
    /// attribute.
    pub is_unreadable: bool,
}

impl Refused {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, is_unreadable: false }
    }

    fn with_hint(message: impl Into<String>, hint: &'static str) -> Self {
        Self { message: message.into(), hint: Some(hint), is_unreadable: false }
    }

    fn unreadable(message: impl Into<String>, hint: &'static str) -> Self {
        Self { is_unreadable: true, ..Self::with_hint(message, hint) }
    }
}

impl Refused {
    fn into_error(self, path: &str) -> EventError {
        let error = EventError::new(self.message).at_path(path);
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

impl From<PyErr> for Refused {
    fn from(error: PyErr) -> Self {
        Self::new(error.to_string())
    }
}

/// What could not be read inside a value.
#[derive(Default)]
struct Absent {
    errors: Vec<EventError>,
    /// The strings in it.
    strings: Vec<Value>,
}

/// The value of a Python object: a scalar, an array of scalars, an interval, another set or, for a dict, a record.
pub fn value_from_python(object: &Bound<'_, PyAny>) -> Result<Value, Refused> {
    value_at_level(object, 1, &mut Absent::default())
}

/// The same for an object that would be a list or a record of that level: the fields of an event have the first.
///
/// Fields of records inside it that cannot be read are absent there and go to `absent`, by their paths inside it.
fn value_at_level(object: &Bound<'_, PyAny>, level: usize, absent: &mut Absent) -> Result<Value, Refused> {
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return text.to_str().map(|text| Value::Str(text.into())).map_err(|_| {
            Refused::with_hint(
                "the string is not Unicode text",
                "it holds a lone surrogate, which UTF-8 cannot write",
            )
        });
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return integer(object);
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(Value::Float(float.value()));
    }
    if let Ok(interval) = object.cast::<PyInterval>() {
        return Ok(interval.get().value().clone());
    }
    if let Ok(set) = object.cast::<PyWhere>() {
        return Ok(set.get().value().clone());
    }
    if object.is_instance_of::<PyDateTime>() || object.is_instance_of::<PyDate>() {
        return timestamp(object);
    }
    if is_array(object) {
        return array(object, level, absent);
    }
    if object.is_instance_of::<PyDict>() {
        return Ok(Value::Record);
    }
    if object.is_instance(decimal_class(object.py())?)? {
        return decimal(object);
    }
    from_numpy(object, level, absent)
}

fn is_array(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PySet>()
        || object.is_instance_of::<PyFrozenSet>()
}

fn integer(object: &Bound<'_, PyAny>) -> Result<Value, Refused> {
    object.extract().map(Value::Int).map_err(|_| {
        Refused::unreadable(
            format!("the integer {} does not fit in 64 bits", shortened(object)),
            "use decimal.Decimal, which is exact, a float, or a string",
        )
    })
}

/// An integer as text; one of very many digits is not written out, which Python refuses.
fn shortened(integer: &Bound<'_, PyAny>) -> String {
    match integer.str() {
        Ok(text) if text.to_string_lossy().len() <= 40 => text.to_string_lossy().into_owned(),
        Ok(text) => format!("{}…", &text.to_string_lossy()[..30]),
        Err(_) => "of thousands of digits".into(),
    }
}

fn decimal_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "decimal", "Decimal")
}

/// The number itself; infinities and NaN, which no decimal of the kernel is, are floats.
fn decimal(object: &Bound<'_, PyAny>) -> Result<Value, Refused> {
    let text = object.str()?;
    let text = text.to_str()?;
    if !object.call_method0("is_finite")?.is_truthy()? {
        let float = if text.contains("Inf") { f64::INFINITY } else { f64::NAN };
        return Ok(Value::Float(if text.starts_with('-') { -float } else { float }));
    }
    Value::decimal(text).map_err(|refused| {
        Refused::unreadable(format!("the decimal {text} cannot be compared: {refused}"), "round it")
    })
}

fn array(items: &Bound<'_, PyAny>, level: usize, absent: &mut Absent) -> Result<Value, Refused> {
    check_level(level)?;
    let (mut read, mut unreadable) = (vec![], None);
    for item in items.try_iter()? {
        match element(&item?, level + 1, absent) {
            Ok(value) => read.push(value),
            // What is wrong with the event comes before what is wrong with the attribute.
            Err(refused) if refused.is_unreadable => unreadable = unreadable.or(Some(refused)),
            Err(refused) => return Err(refused),
        }
    }
    if let Some(refused) = unreadable {
        return Err(refused);
    }
    Value::array(read).map_err(|wrong| {
        Refused::unreadable(wrong, "send numbers as numbers and text as text, or as two lists")
    })
}

/// An element of an array; a dict is a record with fields of its own.
fn element(item: &Bound<'_, PyAny>, level: usize, absent: &mut Absent) -> Result<Value, Refused> {
    if is_array(item) {
        return nested_array(item, level, absent);
    }
    if !item.is_instance_of::<PyDict>() {
        return value_at_level(item, level, absent);
    }
    check_level(level)?;
    let mut fields = RecordBuilder::default();
    let read = walk_nested(item, &mut fields, level).and_then(|()| fields.finish());
    let record = read.map_err(|error| Refused::new(error.to_string()))?;
    let (element, errors, strings) = record.into_element();
    absent.errors.extend(errors);
    absent.strings.extend(strings);
    Ok(element)
}

/// An array inside an array. Nothing can compare with it, so it may hold what no value can; its strings are kept.
fn nested_array(items: &Bound<'_, PyAny>, level: usize, absent: &mut Absent) -> Result<Value, Refused> {
    check_level(level)?;
    let (mut strings, mut inside) = (vec![], Absent::default());
    for item in items.try_iter()? {
        match element(&item?, level + 1, &mut inside) {
            Err(refused) if !refused.is_unreadable => return Err(refused),
            read => read.unwrap_or(Value::Null).for_each_string(&mut |text| strings.push(text.clone())),
        }
    }
    absent.strings.append(&mut inside.strings);
    Ok(Value::Array(strings))
}

/// Refuses a list or a record inside too many others.
fn check_level(level: usize) -> Result<(), Refused> {
    match level > json::MAX_DEPTH {
        true => Err(Refused::new(EventError::too_deep().message)),
        false => Ok(()),
    }
}

/// Microseconds since the epoch. A datetime without a zone is taken as UTC; a date is its midnight.
fn timestamp(object: &Bound<'_, PyAny>) -> Result<Value, Refused> {
    static EPOCHS: PyOnceLock<[Py<PyAny>; 3]> = PyOnceLock::new();
    let py = object.py();
    let [naive, aware, date] = EPOCHS.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let [datetime, date] = [module.getattr("datetime")?, module.getattr("date")?];
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let naive = datetime.call1((1970, 1, 1))?;
        let aware = datetime.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
        Ok::<_, PyErr>([naive.unbind(), aware.unbind(), date.call1((1970, 1, 1))?.unbind()])
    })?;
    let epoch = if !object.is_instance_of::<PyDateTime>() {
        date
    } else if object.getattr("tzinfo")?.is_none() {
        naive
    } else {
        aware
    };
    let elapsed = object.sub(epoch)?;
    // NaT, the absent time of pandas, is a datetime of which every part is NaN.
    if elapsed.getattr("days")?.is_instance_of::<PyFloat>() {
        return Err(Refused::unreadable("NaT is not a time", "leave the attribute out, or send None"));
    }
    let part = |name: &str| elapsed.getattr(name)?.extract::<i64>();
    let seconds = part("days")? * 86_400 + part("seconds")?;
    Ok(Value::Timestamp(seconds * 1_000_000 + part("microseconds")?))
}

/// NumPy's scalars and arrays, told by what they can do: importing NumPy is left to its users.
fn from_numpy(object: &Bound<'_, PyAny>, level: usize, absent: &mut Absent) -> Result<Value, Refused> {
    if let Some(plain) = plain_of_numpy(object)? {
        return value_at_level(&plain, level, absent);
    }
    let name = class_name(object);
    // pandas' null, which rows of its nullable columns hold.
    if name == "NAType" {
        return Ok(Value::Null);
    }
    Err(Refused::with_hint(
        format!("values of type {name} are not supported"),
        "values are bool, int, float, Decimal, str, datetime, date, lists of these, and None",
    ))
}

/// The plain Python object for one of NumPy's.
fn plain_of_numpy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let class = object.get_type();
    if !class.module().is_ok_and(|module| module.to_string_lossy().starts_with("numpy")) {
        return Ok(None);
    }
    let plain = match class_name(object).as_str() {
        // `item()` would give nanoseconds as a bare integer.
        "datetime64" => object.call_method1("astype", ("datetime64[us]",))?.call_method0("item")?,
        "ndarray" => object.call_method0("tolist")?,
        _ => object.call_method0("item")?,
    };
    Ok(Some(plain).filter(|plain| !plain.get_type().is(&class)))
}

fn class_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string())
}

/// A kernel value as the Python object a person would have written.
pub fn value_to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::Int(integer) => integer.into_bound_py_any(py),
        Value::Float(float) => float.into_bound_py_any(py),
        Value::Decimal(decimal) => decimal_class(py)?.call1((decimal.to_string(),)),
        Value::Str(text) | Value::Cell(text) => text.into_bound_py_any(py),
        Value::Timestamp(micros) => {
            let module = py.import("datetime")?;
            let epoch =
                module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, module.getattr("UTC")?))?;
            epoch.add(module.getattr("timedelta")?.call1((0, 0, *micros))?)
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| value_to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            items.into_bound_py_any(py)
        }
        Value::Record | Value::Nested(_) => Ok(PyDict::new(py).into_any()),
        Value::Fields(fields) => {
            let record = PyDict::new(py);
            for (name, value) in fields {
                record.set_item(&**name, value_to_python(py, value)?)?;
            }
            Ok(record.into_any())
        }
        Value::Interval(_) => PyInterval::from_value(value.clone()).into_bound_py_any(py),
        Value::Set(_) => PyWhere::from_value(value.clone()).into_bound_py_any(py),
    }
}

/// Walks a dict as an event and reports its fields to a listener; dicts inside it are nested records.
pub fn walk_mapping<'a>(event: &Bound<'_, PyAny>, fields: &mut impl Fields<'a>) -> Result<(), EventError> {
    if fields.wants_strings() {
        walk_items(event, &mut |_, object| {
            for_each_string(object, &mut |string| fields.put_string(string), 1)
        })?;
    }
    walk_nested(event, fields, 0)
}

/// The same for the fields of an index, whose names are mostly those of the events before. Strings stay in `texts`.
pub fn walk_event<'a, 'py: 'a>(
    event: &Bound<'py, PyAny>,
    fields: &mut impl Fields<'a>,
    names: &mut SeenNames,
    texts: &'a mut Texts,
) -> Result<(), EventError> {
    let Ok(dict) = event.cast::<PyDict>() else { return walk_mapping(event, fields) };
    if fields.wants_strings() {
        return walk_mapping(event, fields);
    }
    take_fields(dict, fields, names, texts, |name, object, fields, names, is_asked| {
        if !is_asked {
            return walk_field(name, object, fields, 1);
        }
        let wanted = match names.field(name).and_then(|seen| fields.enter_seen(seen)) {
            Some(wanted) => wanted,
            None => {
                let wanted = enter(name, fields)?;
                if let Some(seen) = fields.seen_field() {
                    names.note(name, seen);
                }
                wanted
            }
        };
        take_field(object, fields, wanted, 1)
    })?;
    for (seen, text) in &*texts {
        let text = text.bind(event.py());
        let is_taken = text.to_str().is_ok_and(|text| fields.take_seen(*seen, || Some(ValueRef::Str(text))));
        // It says what is wrong with the string.
        if !is_taken && let Some(wanted) = fields.enter_seen(*seen) {
            take_field(text, fields, wanted, 1)?;
        }
    }
    Ok(())
}

/// Calls `see` with every string in an object, also in what no attribute could have as its value.
fn for_each_string(
    object: &Bound<'_, PyAny>,
    see: &mut impl FnMut(Value),
    level: usize,
) -> Result<(), EventError> {
    let checked = || if level > json::MAX_DEPTH { Err(EventError::too_deep()) } else { Ok(()) };
    if let Ok(text) = object.cast::<PyString>() {
        see(Value::Str(text.to_string_lossy().into()));
    } else if let Ok(dict) = object.cast::<PyDict>() {
        checked()?;
        return dict.iter().try_for_each(|(_, inner)| for_each_string(&inner, see, level + 1));
    } else if is_array(object) {
        checked()?;
        let items = object.try_iter().map_err(unreadable)?;
        for item in items {
            for_each_string(&item.map_err(unreadable)?, see, level + 1)?;
        }
    } else if let Ok(interval) = object.cast::<PyInterval>() {
        interval.get().value().for_each_string(&mut |string| see(string.clone()));
    } else if let Ok(set) = object.cast::<PyWhere>() {
        set.get().value().for_each_string(&mut |string| see(string.clone()));
    } else if let Some(plain) = plain_of_numpy(object).map_err(unreadable)? {
        return for_each_string(&plain, see, level);
    }
    Ok(())
}

/// Walks a record of that level; the event has level 0.
fn walk_nested<'a>(
    record: &Bound<'_, PyAny>,
    fields: &mut impl Fields<'a>,
    level: usize,
) -> Result<(), EventError> {
    if level > json::MAX_DEPTH {
        return Err(EventError::too_deep().at_path(fields.path()));
    }
    walk_items(record, &mut |name, object| walk_field(name, object, fields, level + 1))
}

/// Calls `visit` with every name and value of a mapping.
fn walk_items<'py>(
    record: &Bound<'py, PyAny>,
    visit: &mut impl FnMut(&Bound<'py, PyAny>, &Bound<'py, PyAny>) -> Result<(), EventError>,
) -> Result<(), EventError> {
    if let Ok(dict) = record.cast::<PyDict>() {
        return dict.iter().try_for_each(|(name, object)| visit(&name, &object));
    }
    let items = record.call_method0("items").and_then(|items| items.try_iter()).map_err(unreadable)?;
    for item in items {
        let (name, object) = item
            .and_then(|item| item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>())
            .map_err(unreadable)?;
        visit(&name, &object)?;
    }
    Ok(())
}

/// The common scalars that need no allocation; `None` for everything else.
#[inline]
fn plain_scalar<'a>(object: &Bound<'_, PyAny>) -> Option<ValueRef<'a>> {
    if object.is_exact_instance_of::<PyInt>() {
        return object.extract().ok().map(ValueRef::Int);
    }
    if let Ok(float) = object.cast_exact::<PyFloat>() {
        return Some(ValueRef::Float(float.value()));
    }
    if let Ok(truth) = object.cast_exact::<PyBool>() {
        return Some(ValueRef::Bool(truth.is_true()));
    }
    object.is_none().then_some(ValueRef::Null)
}

fn walk_field<'a>(
    name: &Bound<'_, PyAny>,
    object: &Bound<'_, PyAny>,
    fields: &mut impl Fields<'a>,
    level: usize,
) -> Result<(), EventError> {
    let wanted = enter(name, fields)?;
    take_field(object, fields, wanted, level)
}

/// Goes to the field of that name.
fn enter<'a>(name: &Bound<'_, PyAny>, fields: &mut impl Fields<'a>) -> Result<Wanted, EventError> {
    let text = name.cast::<PyString>().map_err(|_| {
        EventError::new(format!("an attribute has a string for a name, not {name}")).at_path(fields.path())
    })?;
    Ok(fields.enter(text.to_str().map_err(unreadable)?))
}

/// Gives what is wanted of the field that was entered, and leaves it.
#[inline]
fn take_field<'a>(
    object: &Bound<'_, PyAny>,
    fields: &mut impl Fields<'a>,
    wanted: Wanted,
    level: usize,
) -> Result<(), EventError> {
    if wanted.value || wanted.fields {
        if let Some(scalar) = plain_scalar(object) {
            fields.put(scalar);
        } else if object.is_instance_of::<PyDict>() {
            fields.put_owned(Value::Record);
            if wanted.fields {
                walk_nested(object, fields, level)?;
            }
        } else {
            let mut absent = Absent::default();
            match value_at_level(object, level, &mut absent) {
                Ok(value) => {
                    if fields.keeps_nested() {
                        absent.strings.into_iter().for_each(|string| fields.put_string(string));
                    }
                    for error in absent.errors {
                        let path = format!("{}.{}", fields.path(), error.path.as_deref().unwrap_or_default());
                        fields.put_unreadable(error.at_path(&path));
                    }
                    fields.put_owned(value);
                }
                Err(refused) => {
                    let is_unreadable = refused.is_unreadable;
                    let error = refused.into_error(fields.path());
                    if !is_unreadable {
                        return Err(error);
                    }
                    if fields.keeps_nested() {
                        for_each_string(object, &mut |string| fields.put_string(string), level)?;
                    }
                    fields.put_unreadable(error);
                }
            }
        }
    }
    fields.leave();
    Ok(())
}

fn unreadable(error: PyErr) -> EventError {
    EventError::new(error.to_string())
}
