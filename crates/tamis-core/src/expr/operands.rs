//! The operands of a predicate. Nearly all predicates have one, which then needs no heap memory.

use std::hash::{Hash, Hasher};
use std::ops::Deref;

use crate::value::Value;

/// Reads as a slice of values.
#[derive(Clone, Debug)]
pub enum Operands {
    One(Value),
    Several(Box<[Value]>),
}

impl Operands {
    /// Bytes on the heap, strings aside.
    pub fn bytes(&self) -> usize {
        match self {
            Operands::One(_) => 0,
            Operands::Several(several) => size_of_val(&**several),
        }
    }
}

impl Default for Operands {
    fn default() -> Self {
        Operands::Several(Box::default())
    }
}

impl Deref for Operands {
    type Target = [Value];

    #[inline]
    fn deref(&self) -> &[Value] {
        match self {
            Operands::One(only) => std::slice::from_ref(only),
            Operands::Several(several) => several,
        }
    }
}

impl From<Vec<Value>> for Operands {
    fn from(mut operands: Vec<Value>) -> Self {
        match operands.pop() {
            Some(only) if operands.is_empty() => Operands::One(only),
            last => {
                operands.extend(last);
                Operands::Several(operands.into())
            }
        }
    }
}

impl From<&[Value]> for Operands {
    fn from(operands: &[Value]) -> Self {
        match operands {
            [only] => Operands::One(only.clone()),
            several => Operands::Several(several.into()),
        }
    }
}

impl<const COUNT: usize> From<[Value; COUNT]> for Operands {
    fn from(operands: [Value; COUNT]) -> Self {
        Vec::from(operands).into()
    }
}

impl<'a> IntoIterator for &'a Operands {
    type Item = &'a Value;
    type IntoIter = std::slice::Iter<'a, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Operands {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Operands {}

impl Hash for Operands {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_they_are_made_they_are_the_same() {
        for values in [vec![], vec![Value::Int(1)], vec![Value::Int(1), Value::Null]] {
            let from_slice = Operands::from(&values[..]);
            assert_eq!(from_slice, Operands::from(values.clone()));
            assert_eq!(*from_slice, values[..]);
            assert_eq!(matches!(from_slice, Operands::One(_)), values.len() == 1);
        }
    }
}
