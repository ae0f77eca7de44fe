//! State as bytes: variable-length numbers, texts, values, records.

use tamis_core::event::{Record, Value};

/// Bytes that no writer wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage;

#[derive(Default)]
pub(crate) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn unsigned(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn signed(&mut self, number: i64) {
        self.unsigned(((number << 1) ^ (number >> 63)) as u64);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.unsigned(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn flag(&mut self, flag: bool) {
        self.0.push(flag.into());
    }

    pub fn optional(&mut self, number: Option<i64>) {
        self.flag(number.is_some());
        if let Some(number) = number {
            self.signed(number);
        }
    }

    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.0.push(0),
            Value::Bool(truth) => self.0.extend([1, u8::from(*truth)]),
            Value::Int(number) => {
                self.0.push(2);
                self.signed(*number);
            }
            Value::Float(number) => {
                self.0.push(3);
                self.0.extend(number.to_bits().to_le_bytes());
            }
            Value::Decimal(number) => {
                self.0.push(4);
                self.text(&number.plain());
            }
            Value::Str(text) | Value::Cell(text) => {
                self.0.push(5);
                self.text(text);
            }
            Value::Timestamp(micros) => {
                self.0.push(6);
                self.signed(*micros);
            }
            Value::Array(items) => {
                self.0.push(7);
                self.values(items);
            }
            Value::Fields(fields) => {
                self.0.push(9);
                self.unsigned(fields.len() as u64);
                for (name, value) in fields {
                    self.text(name);
                    self.value(value);
                }
            }
            // Sets of values do not get into a flow.
            Value::Record | Value::Nested(_) | Value::Interval(_) | Value::Set(_) => self.0.push(8),
        }
    }

    pub fn values(&mut self, values: &[Value]) {
        self.unsigned(values.len() as u64);
        values.iter().for_each(|value| self.value(value));
    }

    pub fn record(&mut self, record: &Record) {
        self.unsigned(record.values().len() as u64);
        for (name, value) in record.values() {
            self.text(name);
            self.value(value);
        }
    }
}

/// Arrays inside arrays: no event is nested deeper, and a damaged file must not exhaust the stack.
const MOST_LEVELS: usize = 512;

pub(crate) struct Reader<'b>(pub &'b [u8]);

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Damage)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Damage> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub fn unsigned(&mut self) -> Result<u64, Damage> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Damage)
    }

    pub fn signed(&mut self) -> Result<i64, Damage> {
        self.unsigned().map(|number| (number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// How many things follow, each of at least one byte.
    pub fn length(&mut self) -> Result<usize, Damage> {
        let length = self.unsigned()?;
        if length > self.0.len() as u64 { Err(Damage) } else { Ok(length as usize) }
    }

    pub fn bytes(&mut self) -> Result<&[u8], Damage> {
        let length = self.length()?;
        self.take(length)
    }

    pub fn text(&mut self) -> Result<String, Damage> {
        self.bytes().and_then(|bytes| std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Damage))
    }

    pub fn flag(&mut self) -> Result<bool, Damage> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damage),
        }
    }

    pub fn optional(&mut self) -> Result<Option<i64>, Damage> {
        if self.flag()? { self.signed().map(Some) } else { Ok(None) }
    }

    pub fn value(&mut self) -> Result<Value, Damage> {
        self.value_within(MOST_LEVELS)
    }

    fn value_within(&mut self, levels: usize) -> Result<Value, Damage> {
        let inner = levels.checked_sub(1).ok_or(Damage)?;
        Ok(match self.byte()? {
            0 => Value::Null,
            1 => Value::Bool(self.flag()?),
            2 => Value::Int(self.signed()?),
            3 => {
                let bits = self.take(8)?.try_into().expect("eight bytes");
                Value::Float(f64::from_bits(u64::from_le_bytes(bits)))
            }
            4 => Value::decimal(&self.text()?).map_err(|_| Damage)?,
            5 => Value::Str(self.text()?.into()),
            6 => Value::Timestamp(self.signed()?),
            7 => {
                let length = self.length()?;
                Value::Array((0..length).map(|_| self.value_within(inner)).collect::<Result<_, _>>()?)
            }
            8 => Value::Record,
            9 => {
                let length = self.length()?;
                let fields: Box<[(Box<str>, Value)]> = (0..length)
                    .map(|_| Ok((self.text()?.into(), self.value_within(inner)?)))
                    .collect::<Result<_, _>>()?;
                let is_sorted = fields.is_sorted_by(|(one, _), (next, _)| one < next);
                if is_sorted { Value::Fields(fields) } else { return Err(Damage) }
            }
            _ => return Err(Damage),
        })
    }

    pub fn values(&mut self) -> Result<Box<[Value]>, Damage> {
        let length = self.length()?;
        (0..length).map(|_| self.value()).collect()
    }

    pub fn record(&mut self) -> Result<Record, Damage> {
        let length = self.length()?;
        let fields =
            (0..length).map(|_| Ok((self.text()?, self.value()?))).collect::<Result<Vec<_>, Damage>>()?;
        Record::new(fields, []).map_err(|_| Damage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_cut_bytes_do_not() {
        let values = [
            Value::Null,
            Value::Bool(true),
            Value::Int(i64::MIN),
            Value::Float(-0.0),
            Value::decimal("123456789012345678901.5").unwrap(),
            Value::Str("é".into()),
            Value::Timestamp(-1),
            Value::Array(vec![Value::Int(1), Value::Null]),
            Value::Record,
        ];
        let mut writer = Writer::default();
        writer.values(&values);
        let bytes = writer.0;
        assert_eq!(&*Reader(&bytes).values().unwrap(), values);
        for end in 0..bytes.len() {
            assert_eq!(Reader(&bytes[..end]).values(), Err(Damage));
        }
    }
}
