//! Expressions for other engines: text that Spark SQL and DuckDB evaluate to the same truth, so that tests
//! can compare the answers.
//!
//! All names are quoted; a dotted path becomes a chain of fields. Boosts are left out, because they do not
//! change the truth. Features that an engine lacks or defines differently are rewritten: XOR is `<>` of two
//! truths, and the empty set and DuckDB's arrays go through `CASE`. Timestamps are UTC, so the session's time
//! zone must be too.
//!
//! Two differences remain: both engines compare an integer with a float as floats, and each has its own
//! dialect of regular expressions.

use std::fmt::Write;

use super::ast::{Expr, Outcome, Predicate};
use super::operators::Operator;
use super::quantifier::{Named, Quantified, Quantifier};
use super::truth_test::test_of;
use crate::error::ExpressionError;
use crate::term::{Argument, BooleanTerm, NOW, Notation, STRINGS, Term};
use crate::text::{write_quoted, write_string};
use crate::value::timestamp::{format_timestamp, parse_timestamp};
use crate::value::{Kind, Value};

/// An engine that is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Spark SQL, 3.3 or later.
    Spark,
    /// DuckDB, 1.0 or later.
    DuckDb,
}

/// The expression as SQL of one engine.
///
/// ```
/// use tamis_core::expr::{parse, sql::{Dialect, to_sql}};
/// let expression = parse("(age > 30)^0.4 XOR address.city <=> 'Geneva'")?;
/// assert_eq!(to_sql(&expression, Dialect::Spark)?, "(`age` > 30) <> (`address`.`city` <=> 'Geneva')");
/// assert_eq!(
///     to_sql(&expression, Dialect::DuckDb)?,
///     r#"("age" > 30) <> ("address"."city" IS NOT DISTINCT FROM 'Geneva')"#
/// );
/// # Ok::<_, tamis_core::ExpressionError>(())
/// ```
pub fn to_sql(expr: &Expr, dialect: Dialect) -> Result<String, ExpressionError> {
    to_sql_at(expr, dialect, None)
}

/// The same with the moment of the query as a literal, where one is given.
pub fn to_sql_at(expr: &Expr, dialect: Dialect, now: Option<i64>) -> Result<String, ExpressionError> {
    let mut writer = Writer { dialect, now, sql: String::new() };
    writer.expression(expr)?;
    Ok(writer.sql)
}

struct Writer {
    dialect: Dialect,
    now: Option<i64>,
    sql: String,
}

type Written = Result<(), ExpressionError>;

impl Writer {
    fn push(&mut self, text: &str) {
        self.sql.push_str(text);
    }

    fn expression(&mut self, expr: &Expr) -> Written {
        match expr {
            Expr::Constant(Outcome::TRUE) => self.push("TRUE"),
            Expr::Constant(Outcome::FALSE) => self.push("FALSE"),
            Expr::Constant(_) => self.push("CAST(NULL AS BOOLEAN)"),
            Expr::Predicate(predicate) => self.predicate(predicate)?,
            Expr::Not(child) => {
                self.push("NOT ");
                self.in_parentheses(child)?;
            }
            Expr::And(children) => self.chain(children, " AND ")?,
            Expr::Or(children) => self.chain(children, " OR ")?,
            Expr::Xor(children) => self.fold(children, " <> ")?,
            Expr::Xnor(children) => self.fold(children, " = ")?,
            Expr::AtLeast(least, children) => self.at_least(*least, children)?,
        }
        Ok(())
    }

    /// In the order false, unknown, true, the n-th greatest of all truths says what the threshold is. Each child is
    /// written once.
    fn at_least(&mut self, least: usize, children: &[Expr]) -> Written {
        let spark = self.dialect == Dialect::Spark;
        self.push(if spark { "CASE element_at(sort_array(array(" } else { "CASE list_extract(list_sort([" });
        for (at, child) in children.iter().enumerate() {
            self.push(if at > 0 { ", " } else { "" });
            let child = to_sql_at(child, self.dialect, self.now)?;
            self.push(&rank_of_truth(&child));
        }
        let (end, asked) = if spark { ("), false), ", least) } else { ("], 'DESC'), ", least) };
        let _ = write!(self.sql, "{end}{asked}) WHEN 2 THEN TRUE WHEN 0 THEN FALSE END");
        Ok(())
    }

    fn in_parentheses(&mut self, expr: &Expr) -> Written {
        self.push("(");
        self.expression(expr)?;
        self.push(")");
        Ok(())
    }

    fn chain(&mut self, children: &[Expr], connective: &str) -> Written {
        for (at, child) in children.iter().enumerate() {
            if at > 0 {
                self.push(connective);
            }
            match child {
                Expr::Predicate(_) | Expr::Constant(_) => self.expression(child)?,
                _ => self.in_parentheses(child)?,
            }
        }
        Ok(())
    }

    /// `((a) <> (b)) <> (c)`: comparing two truths is undefined when one of them is, as XOR is.
    fn fold(&mut self, children: &[Expr], comparison: &str) -> Written {
        for _ in 2..children.len() {
            self.push("(");
        }
        for (at, child) in children.iter().enumerate() {
            if at > 0 {
                self.push(comparison);
            }
            self.in_parentheses(child)?;
            if at > 0 && at + 1 < children.len() {
                self.push(")");
            }
        }
        Ok(())
    }

    fn predicate(&mut self, predicate: &Predicate) -> Written {
        if let Some((looked_at, test)) = test_of(predicate) {
            self.push("(");
            self.predicate(&looked_at)?;
            self.push(") ");
            self.push(test.words());
            return Ok(());
        }
        let Predicate { term, operator, negated, operands, .. } = predicate;
        let name = self.term(term)?;
        let not = if *negated { "NOT " } else { "" };
        let operand = |writer: &Self, at: usize| writer.literal(&operands[at]);
        let (spark, duckdb) = (self.dialect == Dialect::Spark, self.dialect == Dialect::DuckDb);
        let text = match *operator {
            Operator::TRUTH => format!("{not}{name}"),
            Operator::IS_NULL => format!("{name} IS {not}NULL"),
            Operator::EQUAL if *negated => format!("{name} <> {}", operand(self, 0)?),
            Operator::NULL_SAFE_EQUAL if duckdb => {
                let distinct = if *negated { "IS DISTINCT FROM" } else { "IS NOT DISTINCT FROM" };
                format!("{name} {distinct} {}", operand(self, 0)?)
            }
            Operator::IN if operands.is_empty() => format!("{not}{}", false_if_present(&name)),
            Operator::IN => format!("{name} {not}IN ({})", self.literals(operands)?),
            Operator::BETWEEN => {
                format!("{name} {not}BETWEEN {} AND {}", operand(self, 0)?, operand(self, 1)?)
            }
            Operator::LIKE | Operator::ILIKE => {
                let escapes = matches!(&operands[0], Value::Str(pattern) if pattern.contains('\\'));
                // Spark's escape character is the backslash unless told otherwise; DuckDB has none.
                let escape = if duckdb && escapes { r" ESCAPE '\'" } else { "" };
                format!("{name} {not}{} {}{escape}", operator.rules().name(), operand(self, 0)?)
            }
            Operator::RLIKE if spark => format!("{name} {not}RLIKE {}", operand(self, 0)?),
            Operator::RLIKE => format!("{not}regexp_matches({name}, {})", operand(self, 0)?),
            Operator::STARTSWITH | Operator::ENDSWITH | Operator::CONTAINS => {
                let function = match *operator {
                    Operator::STARTSWITH if duckdb => "starts_with",
                    Operator::ENDSWITH if duckdb => "ends_with",
                    operator => operator.rules().name(),
                };
                format!("{not}{function}({name}, {})", operand(self, 0)?)
            }
            Operator::ARRAYS_OVERLAP if operands.is_empty() => format!("{not}{}", false_if_present(&name)),
            Operator::ARRAY_CONTAINS if spark => {
                format!("{not}array_contains({name}, {})", operand(self, 0)?)
            }
            Operator::ARRAYS_OVERLAP if spark => {
                format!("{not}arrays_overlap({name}, ARRAY({}))", self.literals(operands)?)
            }
            Operator::ARRAY_CONTAINS | Operator::ARRAYS_OVERLAP => {
                format!("{not}{}", self.overlap(&name, operands)?)
            }
            Operator::XPATH if spark && !has_namespace(operands) => {
                let plain = operator.rules().without_weights(operands);
                format!(
                    "{not}xpath_boolean({name}, {})",
                    self.literal(&plain.as_deref().unwrap_or(operands)[0])?
                )
            }
            Operator::XPATH => {
                let message =
                    if spark { "Spark knows no namespaces in paths" } else { "DuckDB has no xpath" };
                return Err(ExpressionError::new(message));
            }
            _ => format!("{not}{name} {} {}", operator.rules().name(), operand(self, 0)?),
        };
        self.push(&text);
        Ok(())
    }

    /// DuckDB passes over nulls in lists; Spark says NULL where one could hide what is looked for.
    fn overlap(&self, name: &str, operands: &[Value]) -> Result<String, ExpressionError> {
        let members: Vec<Value> =
            operands.iter().filter(|operand| **operand != Value::Null).cloned().collect();
        let mut sql = String::from("CASE");
        if !members.is_empty() {
            let _ = write!(sql, " WHEN list_has_any({name}, [{}]) THEN TRUE", self.literals(&members)?);
        }
        let nothing_hides = match members.len() == operands.len() {
            true => format!("list_count({name}) = len({name})"),
            false => format!("len({name}) = 0"),
        };
        let _ = write!(sql, " WHEN {nothing_hides} THEN FALSE END");
        Ok(sql)
    }

    fn literals(&self, values: &[Value]) -> Result<String, ExpressionError> {
        let mut texts = vec![];
        for value in values {
            texts.push(self.literal(value)?);
            // Spark looks a long list up by bits, where the two zeros differ.
            if self.dialect == Dialect::Spark && matches!(value, Value::Float(0.0)) {
                texts.push("-0.0D".into());
            }
        }
        Ok(texts.join(", "))
    }

    fn literal(&self, value: &Value) -> Result<String, ExpressionError> {
        Ok(match (value, self.dialect) {
            (Value::Null, _) => "NULL".into(),
            (Value::Bool(truth), _) => if *truth { "TRUE" } else { "FALSE" }.into(),
            (Value::Int(i), _) => i.to_string(),
            (Value::Float(x), dialect) if !x.is_finite() => {
                let special =
                    if x.is_nan() { "NaN".into() } else { x.to_string().replace("inf", "Infinity") };
                match dialect {
                    Dialect::Spark => format!("double('{special}')"),
                    Dialect::DuckDb => format!("'{special}'::DOUBLE"),
                }
            }
            // Without a suffix or an exponent both would read a decimal, and round twice.
            (Value::Float(x), Dialect::Spark) => format!("{:?}D", x + 0.0),
            (Value::Float(x), Dialect::DuckDb) => format!("{:e}", x + 0.0),
            (Value::Decimal(decimal), dialect) => {
                /// The widest decimals of both.
                const MOST_DIGITS: usize = 38;
                let text = decimal.plain();
                if decimal.precision() > MOST_DIGITS {
                    let message =
                        format!("{decimal} has more digits than the {MOST_DIGITS} of a decimal in SQL");
                    return Err(ExpressionError::new(message));
                }
                if dialect == Dialect::Spark { format!("{text}BD") } else { text }
            }
            (Value::Str(text), Dialect::Spark) => {
                let mut literal = String::new();
                let _ = write_string(&mut literal, text);
                literal
            }
            (Value::Str(text), Dialect::DuckDb) => duckdb_string(text),
            (Value::Timestamp(micros), dialect) => {
                let text = format_timestamp(*micros);
                if parse_timestamp(&text) != Some(*micros) {
                    let message = format!("the timestamp {text} is outside the years 0001 to 9999");
                    return Err(ExpressionError::new(message));
                }
                let zone = if dialect == Dialect::Spark { "Z" } else { "" };
                format!("TIMESTAMP '{text}{zone}'")
            }
            (
                Value::Array(_)
                | Value::Record
                | Value::Fields(_)
                | Value::Nested(_)
                | Value::Interval(_)
                | Value::Set(_)
                | Value::Cell(_),
                _,
            ) => {
                return Err(ExpressionError::new("an operand must be a scalar"));
            }
        })
    }

    fn term(&self, term: &Term) -> Result<String, ExpressionError> {
        let computed = match term {
            Term::Attribute(name) if **name == *NOW => return self.moment(),
            Term::Attribute(name) => return self.name(name),
            Term::Computed(computed) => computed,
            Term::Boolean(boolean) => return self.boolean(&**boolean),
        };
        let arguments: Vec<String> = computed
            .arguments()
            .iter()
            .map(|argument| match argument {
                Argument::Constant(value) => self.literal(value),
                Argument::Term(term) => self.term(term),
            })
            .collect::<Result<_, _>>()?;
        let all = arguments.join(", ");
        let [first, second] = [0, 1].map(|at| arguments.get(at).map_or("", |text| &**text));
        let name = computed.function().name();
        let spark = self.dialect == Dialect::Spark;
        Ok(match name {
            "<=>" if !spark => format!("({first} IS NOT DISTINCT FROM {second})"),
            "+" if spark => format!("try_add({all})"),
            "-" if spark => format!("try_subtract({all})"),
            "*" if spark => format!("try_multiply({all})"),
            "/" if spark => format!("try_divide(CAST({first} AS DOUBLE), {second})"),
            "/" => format!("(CASE WHEN {second} <> 0 THEN CAST({first} AS DOUBLE) / {second} END)"),
            // Nothing is left of a division by -1, as by 1; but there the smallest integer overflows.
            "%" => format!(
                "(CASE WHEN {second} <> 0 THEN {first} % CASE {second} WHEN -1 THEN 1 ELSE {second} END END)"
            ),
            "+" | "-" | "*" => format!("TRY({first} {name} {second})"),
            "abs" if spark => {
                format!("(CASE WHEN {first} >= 0 THEN {first} ELSE try_subtract(0, {first}) END)")
            }
            "abs" | "round" if !spark => format!("TRY({name}({all}))"),
            // A float of which the integer does not fit into 64 bits is cut off at the largest. TRY_CAST notices all
            // but 2^63, which is the largest integer read as a float.
            "floor" | "ceil" if spark => {
                let fits = format!("TRY_CAST({first} AS BIGINT) IS NOT NULL AND {}", is_below_2_to_63(first));
                format!("(CASE WHEN {fits} THEN {name}({all}) END)")
            }
            "cast as int" if spark => {
                format!("(CASE WHEN {} THEN TRY_CAST({first} AS BIGINT) END)", is_below_2_to_63(first))
            }
            "floor" | "ceil" => format!("TRY_CAST({name}({all}) AS BIGINT)"),
            "+ months" if spark => format!("try_add({first}, INTERVAL '{second}' MONTH)"),
            "+ months" => format!("({first} + to_months({second}))"),
            "+ micros" if spark => match &computed.arguments()[1] {
                Argument::Constant(Value::Int(micros)) => {
                    format!("try_add({first}, INTERVAL '{}' DAY TO SECOND)", day_to_second(*micros))
                }
                _ => return Err(ExpressionError::new("the length of an interval is a whole number")),
            },
            "+ micros" => format!("({first} + to_microseconds({second}))"),
            "timestampdiff" if spark => {
                format!(
                    "timestampdiff({}, {second}, {})",
                    first.trim_matches('\'').trim_end_matches('S'),
                    arguments[2]
                )
            }
            "timestampdiff" => {
                let (from, to) = (second, &arguments[2]);
                format!("date_sub({}, {from}, {to})", first.to_ascii_lowercase())
            }
            "ip" => {
                let message = "there is no text for networks that both engines understand";
                return Err(ExpressionError::new(message).with_hint("leave out ip_in"));
            }
            "length" => format!("char_length({all})"),
            "concat" if !spark => format!("({})", arguments.join(" || ")),
            "dayofweek" if !spark => format!("(dayofweek({all}) + 1)"),
            "second" if spark => format!("second({all})"),
            "from_utc_timestamp" if !spark => format!("(({first} AT TIME ZONE 'UTC') AT TIME ZONE {second})"),
            "to_utc_timestamp" if !spark => format!("(({first} AT TIME ZONE {second}) AT TIME ZONE 'UTC')"),
            "size" => format!("{}({all})", if spark { "array_size" } else { "len" }),
            "element_at" => format!("{}({all})", if spark { "try_element_at" } else { "list_extract" }),
            "cast as int" if !spark => duckdb_integer(first, computed.arguments()[0].kind()),
            "cast as timestamp" if !spark => duckdb_timestamp(first, computed.arguments()[0].kind()),
            _ => match computed.function().notation() {
                Notation::Call => format!("{name}({all})"),
                Notation::Infix(_) | Notation::Interval(_) => format!("({first} {name} {second})"),
                Notation::Cast(to) => {
                    let to = match to {
                        "int" => "BIGINT",
                        "float" => "DOUBLE",
                        "bool" => "BOOLEAN",
                        "string" if !spark => "VARCHAR",
                        other => other,
                    };
                    format!("TRY_CAST({first} AS {to})")
                }
            },
        })
    }

    fn boolean(&self, boolean: &dyn BooleanTerm) -> Result<String, ExpressionError> {
        let quantified = boolean.as_any().downcast_ref().filter(|one: &&Quantified| *one.array != *STRINGS);
        let Some(quantified) = quantified else {
            let message = format!("there is no text for {} that both engines understand", boolean.text());
            return Err(ExpressionError::new(message));
        };
        let Quantified { quantifier, array, variable, body, .. } = quantified;
        let (variable, body) = match self.dialect {
            Dialect::Spark => (variable.to_string(), to_sql_at(body, self.dialect, self.now)?),
            // DuckDB takes a column for a variable of the same name, in any case: the variable is called as no column is.
            Dialect::DuckDb => {
                let variable = format!("{variable} of {array}").replace('.', " ");
                let body = quantified.renamed_body(&|name| match name {
                    Named::OfElement("") => variable.clone(),
                    Named::OfElement(field) => format!("{variable}.{field}"),
                    Named::Attribute(name) => name.to_owned(),
                })?;
                (variable, to_sql_at(&body, self.dialect, self.now)?)
            }
        };
        let (array, variable) = (self.name(array)?, self.name(&variable)?);
        Ok(match (self.dialect, quantifier) {
            (Dialect::Spark, Quantifier::Forall) => format!("forall({array}, {variable} -> {body})"),
            (Dialect::Spark, _) => format!("exists({array}, {variable} -> {body})"),
            // DuckDB has no quantifiers: in the order false, unknown, true, the greatest or the least truth of all
            // elements is the answer. The body is written once, so that nested ones stay short.
            (Dialect::DuckDb, _) => {
                let (extreme, of_none) = match quantifier {
                    Quantifier::Forall => ("list_min", "TRUE"),
                    _ => ("list_max", "FALSE"),
                };
                format!(
                    "CASE {extreme}(list_transform({array}, lambda {variable}: {})) \
                     WHEN 2 THEN TRUE WHEN 1 THEN NULL WHEN 0 THEN FALSE \
                     ELSE CASE WHEN {array} IS NOT NULL THEN {of_none} END END",
                    rank_of_truth(&body)
                )
            }
        })
    }

    /// The moment of the query.
    fn moment(&self) -> Result<String, ExpressionError> {
        match (self.now, self.dialect) {
            (Some(now), _) => self.literal(&Value::Timestamp(now)),
            (None, Dialect::Spark) => Ok(NOW.into()),
            (None, Dialect::DuckDb) => Ok("(now() AT TIME ZONE 'UTC')".into()),
        }
    }

    /// `address.city` as a column and its field, each quoted.
    fn name(&self, attribute: &str) -> Result<String, ExpressionError> {
        let quote = if self.dialect == Dialect::Spark { '`' } else { '"' };
        let mut name = String::new();
        for part in attribute.split('.') {
            if part.is_empty() {
                let message =
                    format!("{attribute:?} is not a path of columns and fields: a part of it is empty");
                return Err(ExpressionError::new(message).with_hint("rename the attribute"));
            }
            if !name.is_empty() {
                name.push('.');
            }
            let _ = write_quoted(&mut name, part, quote);
        }
        Ok(name)
    }
}

/// 0 for what is false, 1 for what is unknown, 2 for what is true.
fn rank_of_truth(truth: &str) -> String {
    format!("CASE ({truth}) WHEN TRUE THEN 2 WHEN FALSE THEN 0 ELSE 1 END")
}

/// False for every value, NULL for none.
fn false_if_present(name: &str) -> String {
    format!("CASE WHEN {name} IS NOT NULL THEN FALSE END")
}

/// For Spark, where 2^63 as a float passes for an integer of 64 bits.
fn is_below_2_to_63(value: &str) -> String {
    format!("TRY_CAST({value} AS DECIMAL(38, 6)) < 9223372036854775808")
}

/// DuckDB rounds where Spark cuts off, also in text, and knows no seconds of a timestamp. What is known of the value
/// keeps the text short: where nothing is, the value is written once for each type.
fn duckdb_integer(value: &str, kind: Option<Kind>) -> String {
    // The digits of a float itself would be the shortest that name it, not those of its integer.
    let cut = format!("TRY_CAST(trunc(TRY_CAST({value} AS DOUBLE)) AS HUGEINT)::VARCHAR");
    let seconds =
        |time: &str| format!("(epoch_us(date_trunc('second', TRY_CAST({time} AS TIMESTAMP))) // 1000000)");
    let digits = format!("regexp_extract({value}::VARCHAR, '^\\s*([+-]?[0-9]+)\\s*$', 1)");
    let text = match kind {
        Some(Kind::Bool) => value.into(),
        Some(Kind::Number) => {
            format!("CASE typeof({value}) WHEN 'DOUBLE' THEN {cut} ELSE {value}::VARCHAR END")
        }
        Some(Kind::Str) => digits,
        Some(Kind::Timestamp) => seconds(value),
        _ => format!(
            "CASE typeof({value}) WHEN 'DOUBLE' THEN {cut} WHEN 'TIMESTAMP' THEN {}::VARCHAR \
             WHEN 'BOOLEAN' THEN CASE {value}::VARCHAR WHEN 'true' THEN '1' WHEN 'false' THEN '0' END \
             WHEN 'VARCHAR' THEN {digits} ELSE {value}::VARCHAR END",
            seconds(value)
        ),
    };
    format!("TRY_CAST({text} AS BIGINT)")
}

/// Numbers are seconds, of which DuckDB knows none.
fn duckdb_timestamp(value: &str, kind: Option<Kind>) -> String {
    let other = format!("TRY_CAST({value} AS TIMESTAMP)");
    if matches!(kind, Some(Kind::Bool | Kind::Str | Kind::Timestamp)) {
        return other;
    }
    format!(
        "CASE WHEN typeof({value}) IN ('BIGINT', 'INTEGER') THEN TRY(make_timestamp(TRY_CAST({value} AS BIGINT) * 1000000)) \
         WHEN typeof({value}) = 'DOUBLE' THEN TRY(make_timestamp(CAST(floor(TRY_CAST({value} AS DOUBLE) * 1e6) AS BIGINT))) \
         ELSE {other} END"
    )
}

/// Microseconds as days, hours, minutes and seconds: `-1 02:03:04.000005`.
fn day_to_second(micros: i64) -> String {
    let (sign, micros) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
    let seconds = micros / 1_000_000;
    let [days, hours, minutes] = [seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60];
    format!("{sign}{days} {hours:02}:{minutes:02}:{:02}.{:06}", seconds % 60, micros % 1_000_000)
}

/// DuckDB has no escapes, and its parser stops at a NUL.
fn duckdb_string(text: &str) -> String {
    let mut literal = String::new();
    for (at, part) in text.split('\0').enumerate() {
        if at > 0 {
            literal.push_str(" || chr(0) || ");
        }
        let _ = write_quoted(&mut literal, part, '\'');
    }
    if text.contains('\0') { format!("({literal})") } else { literal }
}

fn has_namespace(operands: &[Value]) -> bool {
    matches!(operands, [Value::Str(path)] if path.contains("Q{"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::parse;

    fn sql(text: &str) -> [String; 2] {
        let expr = parse(text).unwrap();
        [Dialect::Spark, Dialect::DuckDb].map(|dialect| to_sql(&expr, dialect).unwrap())
    }

    #[test]
    fn each_engine_gets_its_own_words() {
        for (text, spark, duckdb) in [
            ("a.b != 1", "`a`.`b` <> 1", r#""a"."b" <> 1"#),
            ("NOT a <=> 1", "NOT (`a` <=> 1)", r#"NOT ("a" IS NOT DISTINCT FROM 1)"#),
            ("x = 1.5", "`x` = 1.5D", r#""x" = 1.5e0"#),
            ("x = -0.0", "`x` = 0.0D", r#""x" = 0e0"#),
            ("x < double('-Infinity')", "`x` < double('-Infinity')", r#""x" < '-Infinity'::DOUBLE"#),
            ("s = 'it\\'s \\\\'", "`s` = 'it\\'s \\\\'", r#""s" = 'it''s \'"#),
            ("s = 'a\\u0000'", "`s` = 'a\\u0000'", r#""s" = ('a' || chr(0) || '')"#),
            (
                "t > TIMESTAMP '2026-01-31 12:00:00'",
                "`t` > TIMESTAMP '2026-01-31 12:00:00Z'",
                r#""t" > TIMESTAMP '2026-01-31 12:00:00'"#,
            ),
            ("s LIKE 'a\\\\_%'", "`s` LIKE 'a\\\\_%'", r#""s" LIKE 'a\_%' ESCAPE '\'"#),
            ("s NOT ILIKE 'a%'", "`s` NOT ILIKE 'a%'", r#""s" NOT ILIKE 'a%'"#),
            ("s NOT RLIKE 'a'", "`s` NOT RLIKE 'a'", r#"NOT regexp_matches("s", 'a')"#),
            ("endswith(s, 'a')", "endswith(`s`, 'a')", r#"ends_with("s", 'a')"#),
            (
                "a NOT IN ()",
                "NOT CASE WHEN `a` IS NOT NULL THEN FALSE END",
                r#"NOT CASE WHEN "a" IS NOT NULL THEN FALSE END"#,
            ),
            (
                "arrays_overlap(a, ARRAY(1, NULL))",
                "arrays_overlap(`a`, ARRAY(1, NULL))",
                r#"CASE WHEN list_has_any("a", [1]) THEN TRUE WHEN len("a") = 0 THEN FALSE END"#,
            ),
            ("a XNOR b XNOR c", "((`a`) = (`b`)) = (`c`)", r#"(("a") = ("b")) = ("c")"#),
            (
                "a OR b AND NULL",
                "`a` OR (`b` AND CAST(NULL AS BOOLEAN))",
                r#""a" OR ("b" AND CAST(NULL AS BOOLEAN))"#,
            ),
            ("a + b > 1", "try_add(`a`, `b`) > 1", r#"TRY("a" + "b") > 1"#),
            (
                "abs(a) = 1",
                "(CASE WHEN `a` >= 0 THEN `a` ELSE try_subtract(0, `a`) END) = 1",
                r#"TRY(abs("a")) = 1"#,
            ),
            (
                "floor(a) = 1",
                "(CASE WHEN TRY_CAST(`a` AS BIGINT) IS NOT NULL AND TRY_CAST(`a` AS DECIMAL(38, 6)) < 9223372036854775808 \
                 THEN floor(`a`) END) = 1",
                r#"TRY_CAST(floor("a") AS BIGINT) = 1"#,
            ),
            ("`say \"hi\"` IS NOT NULL", "`say \"hi\"` IS NOT NULL", r#""say ""hi""" IS NOT NULL"#),
        ] {
            assert_eq!(sql(text), [spark, duckdb]);
        }
    }

    #[test]
    fn what_has_no_text_there_is_refused() {
        let error = to_sql(&parse("`a..b` = 1").unwrap(), Dialect::Spark).unwrap_err();
        assert!(error.message.contains("a part of it is empty"), "{error}");
    }
}
