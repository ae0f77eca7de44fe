//! The stored form of an expression: a few bytes per predicate, read back without parsing.
//!
//! ```text
//! expression = head byte, low three bits the kind of node:
//!     0 constant     bit 3: can be true, bit 4: can be false
//!     1 predicate    bit 3: negated, bit 4: boosted, bits 5 to 7: number of operands, 7 when it follows;
//!                    operator code, term, [boost], [number of operands], operands
//!     2 NOT          expression
//!     3 AND  4 OR  5 XOR  6 XNOR
//!                    bits 3 to 7: number of children, 31 when it follows; [number of children], children
//!     7 AT LEAST     the same, with the number that is asked for before the children
//! operand = head byte:
//!     0 NULL  1 FALSE  2 TRUE  3 integer  4 float  5 string  6 timestamp  7 decimal, its text
//!     8 to 63        a string of 0 to 55 bytes
//!     64 to 255      an integer from -16 to 175
//! ```
//! Numbers are LEB128 (signed ones zigzag first), floats their eight bytes, strings a length and UTF-8.
//! Heads and operator codes never change their meaning: files live longer than programs.

use super::ast::{Expr, Outcome, Predicate};
use super::limits::{MAX_DEPTH, MAX_PREDICATES, MAX_STRING_BYTES};
use super::operators::Operator;
use crate::error::Error;
use crate::term::{Term, TermId};
use crate::value::Value;

mod node {
    pub const CONSTANT: u8 = 0;
    pub const PREDICATE: u8 = 1;
    pub const NOT: u8 = 2;
    pub const AND: u8 = 3;
    pub const OR: u8 = 4;
    pub const XOR: u8 = 5;
    pub const XNOR: u8 = 6;
    pub const AT_LEAST: u8 = 7;

    pub const KIND_BITS: u32 = 3;
    pub const KIND: u8 = (1 << KIND_BITS) - 1;
    /// In a constant.
    pub const CAN_BE_TRUE: u8 = 1 << 3;
    pub const CAN_BE_FALSE: u8 = 1 << 4;
    /// In a predicate.
    pub const NEGATED: u8 = 1 << 3;
    pub const BOOSTED: u8 = 1 << 4;
    pub const OPERANDS_SHIFT: u32 = 5;
    pub const OPERANDS_FOLLOW: u8 = 7;
    /// In a connective.
    pub const CHILDREN_FOLLOW: u8 = 31;
}

mod operand {
    pub const NULL: u8 = 0;
    pub const FALSE: u8 = 1;
    pub const TRUE: u8 = 2;
    pub const INT: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const STRING: u8 = 5;
    pub const TIMESTAMP: u8 = 6;
    pub const DECIMAL: u8 = 7;
    pub const SHORT_STRING: u8 = 8;
    pub const SMALL_INT: u8 = 64;
    pub const LEAST_SMALL_INT: i64 = -16;
    pub const GREATEST_SMALL_INT: i64 = LEAST_SMALL_INT + (u8::MAX - SMALL_INT) as i64;
    pub const LONGEST_SHORT_STRING: usize = (SMALL_INT - SHORT_STRING - 1) as usize;
}

/// Appends the stored form of `expr`. `number` gives the number that stands for a term.
pub fn encode(expr: &Expr, out: &mut Vec<u8>, number: &mut dyn FnMut(&Term) -> TermId) {
    match expr {
        Expr::Constant(outcome) => out.push(
            node::CONSTANT
                | if outcome.can_be_true { node::CAN_BE_TRUE } else { 0 }
                | if outcome.can_be_false { node::CAN_BE_FALSE } else { 0 },
        ),
        Expr::Predicate(predicate) => encode_predicate(predicate, out, number),
        Expr::Not(child) => {
            out.push(node::NOT);
            encode(child, out, number);
        }
        Expr::And(children) => encode_children(node::AND, children, out, number),
        Expr::Or(children) => encode_children(node::OR, children, out, number),
        Expr::Xor(children) => encode_children(node::XOR, children, out, number),
        Expr::Xnor(children) => encode_children(node::XNOR, children, out, number),
        Expr::AtLeast(least, children) => {
            encode_count(node::AT_LEAST, children, out);
            put_number(out, *least as u64);
            children.iter().for_each(|child| encode(child, out, number));
        }
    }
}

fn encode_children(kind: u8, children: &[Expr], out: &mut Vec<u8>, number: &mut dyn FnMut(&Term) -> TermId) {
    encode_count(kind, children, out);
    for child in children {
        encode(child, out, number);
    }
}

fn encode_count(kind: u8, children: &[Expr], out: &mut Vec<u8>) {
    put_head(out, kind, children.len(), node::KIND_BITS, node::CHILDREN_FOLLOW);
    if children.len() >= node::CHILDREN_FOLLOW as usize {
        put_number(out, children.len() as u64);
    }
}

fn encode_predicate(predicate: &Predicate, out: &mut Vec<u8>, number: &mut dyn FnMut(&Term) -> TermId) {
    let head = node::PREDICATE
        | if predicate.negated { node::NEGATED } else { 0 }
        | if predicate.weight.is_some() { node::BOOSTED } else { 0 };
    let operands = predicate.operands.len();
    put_head(out, head, operands, node::OPERANDS_SHIFT, node::OPERANDS_FOLLOW);
    out.push(predicate.operator.code());
    put_number(out, number(&predicate.term).0 as u64);
    if let Some(weight) = predicate.weight {
        out.extend_from_slice(&weight.to_le_bytes());
    }
    if operands >= node::OPERANDS_FOLLOW as usize {
        put_number(out, operands as u64);
    }
    for operand in &predicate.operands {
        encode_operand(operand, out);
    }
}

fn encode_operand(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(operand::NULL),
        Value::Bool(false) => out.push(operand::FALSE),
        Value::Bool(true) => out.push(operand::TRUE),
        Value::Int(i) if (operand::LEAST_SMALL_INT..=operand::GREATEST_SMALL_INT).contains(i) => {
            out.push(operand::SMALL_INT + (i - operand::LEAST_SMALL_INT) as u8);
        }
        Value::Int(i) => {
            out.push(operand::INT);
            put_signed(out, *i);
        }
        Value::Float(x) => {
            out.push(operand::FLOAT);
            out.extend_from_slice(&x.to_le_bytes());
        }
        Value::Decimal(decimal) => {
            let text = decimal.to_string();
            out.push(operand::DECIMAL);
            put_number(out, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Str(text) | Value::Cell(text) => {
            if text.len() <= operand::LONGEST_SHORT_STRING {
                out.push(operand::SHORT_STRING + text.len() as u8);
            } else {
                out.push(operand::STRING);
                put_number(out, text.len() as u64);
            }
            out.extend_from_slice(text.as_bytes());
        }
        Value::Timestamp(micros) => {
            out.push(operand::TIMESTAMP);
            put_signed(out, *micros);
        }
        Value::Array(_)
        | Value::Record
        | Value::Fields(_)
        | Value::Nested(_)
        | Value::Interval(_)
        | Value::Set(_) => {
            unreachable!("operands are scalars")
        }
    }
}

/// The head byte, with a count in its upper bits or the mark that the count follows.
fn put_head(out: &mut Vec<u8>, head: u8, count: usize, shift: u32, follows: u8) {
    out.push(head | (count.min(follows as usize) as u8) << shift);
}

fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a stored expression; `terms` gives the term that a number stands for.
///
/// Any bytes may be given: what no [`encode`] wrote is an [`Error::Snapshot`], never a panic, and never
/// takes more memory than a small multiple of the bytes.
pub fn decode(bytes: &[u8], terms: &dyn Fn(TermId) -> Option<Term>) -> Result<Expr, Error> {
    let mut decoder = Decoder { bytes, terms, predicates: 0 };
    match decoder.expression(1) {
        Ok(expr) if decoder.bytes.is_empty() => Ok(expr),
        Ok(_) => Err("bytes follow it".to_string()),
        Err(damage) => Err(damage.to_string()),
    }
    .map_err(|damage| Error::Snapshot(format!("a stored expression is damaged: {damage}")))
}

type Decoded<T> = Result<T, &'static str>;

struct Decoder<'a> {
    bytes: &'a [u8],
    terms: &'a dyn Fn(TermId) -> Option<Term>,
    predicates: usize,
}

impl<'a> Decoder<'a> {
    fn expression(&mut self, depth: usize) -> Decoded<Expr> {
        if depth > MAX_DEPTH {
            return Err("it is nested too deeply");
        }
        let head = self.byte()?;
        match head & node::KIND {
            node::CONSTANT => constant(head),
            node::PREDICATE => self.predicate(head).map(Expr::Predicate),
            node::NOT => Ok(Expr::Not(Box::new(self.expression(depth + 1)?))),
            node::AND => self.connected(head, depth).map(Expr::And),
            node::OR => self.connected(head, depth).map(Expr::Or),
            node::XOR => self.connected(head, depth).map(Expr::Xor),
            node::XNOR => self.connected(head, depth).map(Expr::Xnor),
            _ => {
                let count = self.count(head >> node::KIND_BITS, node::CHILDREN_FOLLOW)?;
                let least = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                if least == 0 || least > count {
                    return Err("a threshold asks for none of its children, or for more than all");
                }
                self.children(count, depth).map(|children| Expr::AtLeast(least, children))
            }
        }
    }

    fn connected(&mut self, head: u8, depth: usize) -> Decoded<Vec<Expr>> {
        let count = self.count(head >> node::KIND_BITS, node::CHILDREN_FOLLOW)?;
        if count < 2 {
            return Err("a connective has fewer than two children");
        }
        self.children(count, depth)
    }

    fn children(&mut self, count: usize, depth: usize) -> Decoded<Vec<Expr>> {
        // A nest of nodes that each claim many children must not reserve memory for all of them.
        const MOST_RESERVED: usize = 64;
        let mut children = Vec::with_capacity(count.min(MOST_RESERVED));
        for _ in 0..count {
            children.push(self.expression(depth + 1)?);
        }
        Ok(children)
    }

    fn predicate(&mut self, head: u8) -> Decoded<Predicate> {
        self.predicates += 1;
        if self.predicates > MAX_PREDICATES {
            return Err("it has too many predicates");
        }
        let operator = Operator::from_code(self.byte()?).ok_or("it has an unknown operator")?;
        let term = u32::try_from(self.number()?).map_err(|_| "it has an unknown term")?;
        let term = (self.terms)(TermId(term)).ok_or("it has an unknown term")?;
        let weight = match head & node::BOOSTED {
            0 => None,
            _ => Some(self.float()?).filter(|weight| weight.is_finite() && *weight >= 0.0),
        };
        if head & node::BOOSTED != 0 && weight.is_none() {
            return Err("a weight is negative or not finite");
        }
        let count = self.count(head >> node::OPERANDS_SHIFT, node::OPERANDS_FOLLOW)?;
        let mut operands = Vec::with_capacity(count);
        for _ in 0..count {
            operands.push(self.operand()?);
        }
        if !operator.rules().is_canonical(&operands) {
            return Err("an operator has operands that it does not take");
        }
        let negated = head & node::NEGATED != 0;
        Ok(Predicate { term, operator, negated, operands: operands.into(), weight })
    }

    fn operand(&mut self) -> Decoded<Value> {
        Ok(match self.byte()? {
            operand::NULL => Value::Null,
            operand::FALSE => Value::Bool(false),
            operand::TRUE => Value::Bool(true),
            operand::INT => Value::Int(self.signed()?),
            operand::FLOAT => Value::Float(self.float()?),
            operand::TIMESTAMP => Value::Timestamp(self.signed()?),
            operand::DECIMAL => self.decimal()?,
            operand::STRING => {
                let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                self.string(length)?
            }
            small @ operand::SMALL_INT.. => {
                Value::Int((small - operand::SMALL_INT) as i64 + operand::LEAST_SMALL_INT)
            }
            short @ operand::SHORT_STRING.. => self.string((short - operand::SHORT_STRING) as usize)?,
        })
    }

    fn decimal(&mut self) -> Decoded<Value> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let text = std::str::from_utf8(self.take(length)?).ok();
        match text.map(Value::decimal) {
            Some(Ok(decimal @ Value::Decimal(_))) => Ok(decimal),
            _ => Err("a decimal cannot be read"),
        }
    }

    fn string(&mut self, length: usize) -> Decoded<Value> {
        if length > MAX_STRING_BYTES {
            return Err("a string is too long");
        }
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| "a string is not UTF-8")?;
        Ok(Value::Str(text.into()))
    }

    /// A count from the head or after it; each of what is counted takes one byte at least.
    fn count(&mut self, in_head: u8, follows: u8) -> Decoded<usize> {
        let count = if in_head == follows { self.number()? } else { in_head as u64 };
        match usize::try_from(count) {
            Ok(count) if count <= self.bytes.len() => Ok(count),
            _ => Err(ENDS_EARLY),
        }
    }

    fn float(&mut self) -> Decoded<f64> {
        let (bytes, rest) = self.bytes.split_first_chunk().ok_or(ENDS_EARLY)?;
        self.bytes = rest;
        Ok(f64::from_le_bytes(*bytes))
    }

    fn signed(&mut self) -> Decoded<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn number(&mut self) -> Decoded<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= ((byte & 0x7F) as u64) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("it has a number that is too long")
    }

    fn byte(&mut self) -> Decoded<u8> {
        let (byte, rest) = self.bytes.split_first().ok_or(ENDS_EARLY)?;
        self.bytes = rest;
        Ok(*byte)
    }

    fn take(&mut self, length: usize) -> Decoded<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(length).ok_or(ENDS_EARLY)?;
        self.bytes = rest;
        Ok(head)
    }
}

const ENDS_EARLY: &str = "it ends early";

fn constant(head: u8) -> Decoded<Expr> {
    let outcome =
        Outcome { can_be_true: head & node::CAN_BE_TRUE != 0, can_be_false: head & node::CAN_BE_FALSE != 0 };
    match outcome {
        Outcome::EITHER => Err("a constant is true and false at once"),
        outcome => Ok(Expr::Constant(outcome)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::limits::check_limits;
    use crate::expr::testing::{any_expr, any_expr_of_terms, predicate};
    use crate::term::Terms;

    fn stored(expr: &Expr) -> (Vec<u8>, Terms) {
        let (mut bytes, mut terms) = (vec![], Terms::default());
        encode(expr, &mut bytes, &mut |term| terms.intern_term(term));
        (bytes, terms)
    }

    fn read(bytes: &[u8], terms: &Terms) -> Result<Expr, Error> {
        let known = terms.len() as u32;
        decode(bytes, &|term| (term.0 < known).then(|| terms.term(term).clone()))
    }

    fn assert_round_trip(expr: &Expr) {
        let (bytes, terms) = stored(expr);
        assert_eq!(&read(&bytes, &terms).unwrap(), expr);
    }

    #[test]
    fn every_operand_comes_back() {
        let long = "é".repeat(60);
        let operands = [
            Value::Null,
            Value::Bool(true),
            Value::Bool(false),
            Value::Float(f64::NAN),
            Value::Float(-0.0),
            Value::Float(5e-324),
            Value::decimal("-12345678901234567.89").unwrap(),
            Value::decimal("1.2345678901234567890123e-300").unwrap(),
            Value::Timestamp(i64::MIN),
            Value::Timestamp(i64::MAX),
            Value::Str("".into()),
            Value::Str(long[..54].into()),
            Value::Str(long[..56].into()),
            Value::Str(long.as_str().into()),
        ];
        let integers = [i64::MIN, -17, -16, -1, 0, 175, 176, i64::MAX].map(Value::Int);
        for operand in operands.into_iter().chain(integers) {
            assert_round_trip(&Expr::Predicate(predicate("x", "=", &[operand])));
        }
    }

    #[test]
    fn counts_beyond_the_head_byte_come_back() {
        let one = Expr::Predicate(predicate("x", "=", &[Value::Int(1)]));
        for count in [2, 30, 31, 32, 300] {
            assert_round_trip(&Expr::Or(vec![one.clone(); count]));
        }
        for count in [0, 6, 7, 8, 300] {
            let members: Vec<_> = (0..count).map(|i| Value::Int(i * 100)).collect();
            assert_round_trip(&Expr::Predicate(predicate("x", "IN", &members)));
        }
        let boosted = Predicate { weight: Some(0.4), negated: true, ..predicate("x", "=", &[Value::Int(1)]) };
        assert_round_trip(&Expr::Predicate(boosted));
    }

    #[test]
    fn a_small_predicate_takes_four_bytes() {
        assert_eq!(stored(&Expr::Predicate(predicate("age", ">", &[Value::Int(30)]))).0.len(), 4);
    }

    #[test]
    fn damage_is_named() {
        let terms: &dyn Fn(TermId) -> Option<Term> = &|id| (id.0 == 0).then(|| "x".into());
        let one_of = |operands: u8| node::PREDICATE | operands << node::OPERANDS_SHIFT;
        let connective = |kind: u8, children: u8| kind | children << node::KIND_BITS;
        let deep = vec![node::NOT; MAX_DEPTH + 1];
        let [no_weight, one_int] = [[0xFF; 8], [0; 8]];
        let boosted = [&[one_of(1) | node::BOOSTED, 0, 0], no_weight.as_slice(), &[operand::TRUE]].concat();
        for (bytes, damage) in [
            (vec![], "ends early"),
            (vec![one_of(1), 0, 0], "ends early"),
            (vec![one_of(1), 0, 0, operand::FLOAT, one_int[0]], "ends early"),
            (vec![one_of(1), 0, 1, operand::TRUE], "unknown term"),
            (vec![one_of(1), 200, 0, operand::TRUE], "unknown operator"),
            (vec![one_of(0), 0, 0], "does not take"),
            (vec![one_of(1), 0, 0, operand::DECIMAL, 1, b'x'], "decimal cannot be read"),
            (vec![one_of(1), 0, 0, operand::DECIMAL, 1, b'5'], "decimal cannot be read"),
            (vec![one_of(1), 0, 0, operand::DECIMAL, 0xFF], "ends early"),
            (vec![one_of(1), 0, 0, operand::SHORT_STRING + 1, 0xFF], "not UTF-8"),
            (vec![one_of(1), 0, 0, operand::STRING, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], "too long"),
            ([vec![one_of(1), 0, 0, operand::INT], vec![0xFF; 11]].concat(), "number that is too long"),
            (vec![one_of(7), Operator::IN.code(), 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], "ends early"),
            (vec![one_of(2), Operator::IN.code(), 0, operand::SMALL_INT + 1, operand::SMALL_INT], "take"),
            (vec![connective(node::AND, 1), node::CAN_BE_TRUE], "fewer than two"),
            (vec![connective(node::AND, 31), 0xFF, 0x0F], "ends early"),
            (vec![node::CAN_BE_TRUE | node::CAN_BE_FALSE], "true and false at once"),
            (vec![node::CAN_BE_TRUE, 0], "bytes follow"),
            (vec![connective(node::AT_LEAST, 1), 2, node::CAN_BE_TRUE], "threshold asks for"),
            (vec![connective(node::AT_LEAST, 1), 0, node::CAN_BE_TRUE], "threshold asks for"),
            (deep, "nested too deeply"),
            (boosted, "weight is negative"),
        ] {
            let error = decode(&bytes, terms).unwrap_err().to_string();
            assert!(error.contains(damage), "{bytes:?}: {error}");
        }
    }

    #[test]
    fn a_nest_that_claims_many_children_reserves_little() {
        let claim = [node::AND | node::CHILDREN_FOLLOW << node::KIND_BITS, 0x80, 0x80, 0x40];
        let mut bytes = claim.repeat(MAX_DEPTH);
        bytes.resize(2 << 20, node::CAN_BE_TRUE);
        assert!(read(&bytes, &Terms::default()).is_err());
    }

    proptest! {
        #[test]
        fn stored_expressions_come_back(expr in prop_oneof![any_expr(5), any_expr_of_terms(4)]) {
            assert_round_trip(&expr);
        }

        #[test]
        fn truncated_expressions_are_refused(expr in any_expr(3), cut in 0.0..1.0) {
            let (bytes, terms) = stored(&expr);
            let length = (bytes.len() as f64 * cut) as usize;
            prop_assert!(read(&bytes[..length], &terms).is_err());
        }

        #[test]
        fn what_is_read_from_any_bytes_can_be_stored_and_evaluated(
            expr in any_expr(3),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let (mut bytes, terms) = stored(&expr);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            for bytes in [bytes, noise] {
                if let Ok(expr) = read(&bytes, &terms) {
                    prop_assert!(check_limits(&expr).is_ok());
                    crate::expr::evaluate(&expr, &|_| None);
                    crate::expr::evaluate(&expr, &|_| Some(crate::value::ValueRef::Str("ab")));
                    assert_round_trip(&expr);
                }
            }
        }
    }
}
