//! The options of an algorithm: names and values from the user, checked one by one.

use tamis_core::event::Value;
use tamis_core::{Error, Result};

pub fn boolean(name: &str, value: &Value) -> Result<bool> {
    match value {
        Value::Bool(on) => Ok(*on),
        other => Err(wrong(name, "true or false", other)),
    }
}

pub fn size(name: &str, value: &Value) -> Result<u64> {
    match value {
        Value::Int(size) if *size > 0 => Ok(*size as u64),
        other => Err(wrong(name, "a positive integer", other)),
    }
}

/// A part of a whole.
pub fn share(name: &str, value: &Value) -> Result<f64> {
    match value {
        Value::Float(share) if (0.0..=1.0).contains(share) => Ok(*share),
        Value::Int(share @ 0..=1) => Ok(*share as f64),
        other => Err(wrong(name, "a number from 0 to 1", other)),
    }
}

pub fn text<'a>(name: &str, value: &'a Value) -> Result<&'a str> {
    match value {
        Value::Str(text) => Ok(text),
        other => Err(wrong(name, "a string", other)),
    }
}

/// One of several names.
pub fn choice(name: &str, value: &Value, choices: &[&str]) -> Result<usize> {
    let given = text(name, value)?;
    choices.iter().position(|choice| *choice == given).ok_or_else(|| {
        let choices: Vec<String> = choices.iter().map(|choice| format!("{choice:?}")).collect();
        Error::Argument(format!("the option `{name}` is one of {}, not {given:?}", choices.join(", ")))
    })
}

pub fn unknown(name: &str, known: &[&str]) -> Error {
    let known = match known {
        [] => "this algorithm has none".to_string(),
        _ => format!("there are {}", known.join(", ")),
    };
    Error::Argument(format!("there is no option `{name}`; {known}"))
}

fn wrong(name: &str, expected: &str, given: &Value) -> Error {
    Error::Argument(format!("the option `{name}` is {expected}, not {given:?}"))
}
