//! The weights of many events, given separately in Python.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use pyo3::prelude::*;
use tamis_core::Error;
use tamis_core::event::{TermId, Terms, Weights};

/// Weights for many events: one for all of them, or a column per attribute, found by a prefix.
#[derive(Clone, FromPyObject)]
pub enum GivenWeights {
    #[pyo3(transparent)]
    Prefix(String),
    #[pyo3(transparent)]
    Same(std::collections::BTreeMap<String, f64>),
}

impl GivenWeights {
    /// The weights for one batch of events; `None` for events that are not a table.
    pub fn resolve(
        &self,
        batch: Option<&RecordBatch>,
        terms: &Terms,
    ) -> Result<Vec<(TermId, Weights)>, Error> {
        match (self, batch) {
            (GivenWeights::Same(weights), _) => {
                for (name, weight) in weights {
                    check(name, *weight, None)?;
                }
                let known = weights.iter().filter_map(|(name, weight)| Some((terms.named(name)?, *weight)));
                Ok(known.map(|(attribute, weight)| (attribute, Weights::Same(weight))).collect())
            }
            (GivenWeights::Prefix(_), None) => Err(Error::Argument(
                "weights in columns need a table of events; give a list of tamis.Event with weights, or a dict"
                    .into(),
            )),
            (GivenWeights::Prefix(prefix), Some(batch)) => {
                let schema = batch.schema();
                let columns = schema.fields().iter().zip(batch.columns());
                let mut weights = vec![];
                for (field, column) in columns {
                    let attribute = field.name().strip_prefix(prefix.as_str());
                    if let Some(attribute) = attribute.and_then(|name| terms.named(name)) {
                        weights.push((attribute, Weights::PerEvent(column_of(field.name(), column)?)));
                    }
                }
                Ok(weights)
            }
        }
    }
}

fn column_of(name: &str, column: &dyn Array) -> Result<Vec<Option<f64>>, Error> {
    let weights: Vec<Option<f64>> = match column.data_type() {
        DataType::Float64 => column.as_primitive::<Float64Type>().iter().collect(),
        DataType::Float32 => widened(column.as_primitive::<Float32Type>().iter()),
        DataType::Int64 => column.as_primitive::<Int64Type>().iter().map(|x| x.map(|x| x as f64)).collect(),
        DataType::Int32 => widened(column.as_primitive::<Int32Type>().iter()),
        other => {
            let wanted = "float64, float32, int64 or int32";
            return Err(Error::Argument(format!("the weights `{name}` must be {wanted}, not {other}")));
        }
    };
    for (row, weight) in weights.iter().enumerate() {
        check(name, weight.unwrap_or(1.0), Some(row))?;
    }
    Ok(weights)
}

fn widened<T: Into<f64>>(numbers: impl Iterator<Item = Option<T>>) -> Vec<Option<f64>> {
    numbers.map(|number| number.map(Into::into)).collect()
}

fn check(name: &str, weight: f64, row: Option<usize>) -> Result<(), Error> {
    if weight.is_finite() && weight >= 0.0 {
        return Ok(());
    }
    let place = row.map_or(String::new(), |row| format!(" in row {row}"));
    Err(Error::Argument(format!("the weight `{name}`{place} must be finite and not negative, not {weight}")))
}
