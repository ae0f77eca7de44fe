//! Expressions as Python objects: immutable values around the kernel's tree.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PySlice, PyString, PyType};
use tamis_core::event::{Value, ValueRef};
use tamis_core::expr::{
    Expr, Operator, Outcome, Predicate, Quantified, Quantifier, TruthTest, build, evaluate, json, limits,
    missing_is_false, parse, parse_term, sql, truth_test,
};
use tamis_core::query::current_time;
use tamis_core::relate::{merge, prune, replace_predicates};
use tamis_core::term::{Argument, Function, NOW, STRINGS, Term, WithinShape, interval};
use tamis_core::{ExpressionError, Place};

use crate::convert::value_from_python;
use crate::errors::{OrRaise, argument_error, bad_expression, type_error};
use crate::event::with_record;
use crate::relate;
use crate::subscription::moment_from_python;

/// A Boolean expression: predicates joined by AND, OR, NOT, XOR and XNOR.
///
/// Made by `tamis.parse`, by `tamis.col` and its operators, or from JSON. Immutable, hashable, picklable; two
/// expressions are equal if they are written the same way.
///
/// >>> import tamis
/// >>> from tamis import col
/// >>> expression = (col("age") > 30) & ~col("opted_out")
/// >>> print(expression)
/// age > 30 AND NOT opted_out
/// >>> expression == tamis.parse("age > 30 AND NOT opted_out")
/// True
#[pyclass(name = "Expression", module = "tamis", frozen)]
pub struct PyExpression(Arc<Expr>, Vec<String>);

/// How two expressions are joined.
#[derive(Clone, Copy)]
enum Connective {
    And,
    Or,
    Xor,
    Xnor,
}

impl PyExpression {
    pub fn new(expr: Expr) -> Self {
        Self(Arc::new(expr), vec![])
    }

    pub fn expr(&self) -> &Arc<Expr> {
        &self.0
    }

    fn checked(py: Python<'_>, expr: Expr) -> PyResult<Self> {
        limits::check_limits(&expr).or_raise(py)?;
        Ok(Self::new(expr))
    }

    fn tested(&self, py: Python<'_>, test: TruthTest) -> PyResult<Self> {
        truth_test(&self.0, test).or_raise(py).map(Self::new)
    }

    fn join(&self, other: &Bound<'_, PyAny>, connective: Connective) -> PyResult<Self> {
        let right = expression_from_python(other)?;
        Self::checked(other.py(), connective.join(&self.0, right.get().expr()))
    }
}

impl Connective {
    /// `a AND b AND c` is one node, as in text: what is joined to the right of a chain extends it.
    fn join(self, left: &Expr, right: &Expr) -> Expr {
        let mut children = match (self, left) {
            (Self::And, Expr::And(chain))
            | (Self::Or, Expr::Or(chain))
            | (Self::Xor, Expr::Xor(chain))
            | (Self::Xnor, Expr::Xnor(chain)) => chain.clone(),
            _ => vec![left.clone()],
        };
        children.push(right.clone());
        match self {
            Self::And => Expr::And(children),
            Self::Or => Expr::Or(children),
            Self::Xor => Expr::Xor(children),
            Self::Xnor => Expr::Xnor(children),
        }
    }
}

/// An expression as a caller gave it.
pub enum Given {
    Text(String),
    Parsed(Arc<Expr>),
}

/// The text of a string, or where it holds what UTF-8 cannot write.
pub fn utf8(text: &Bound<'_, PyString>) -> Result<PyBackedStr, ExpressionError> {
    PyBackedStr::try_from(text.clone()).map_err(|error| {
        let start = error.value(text.py()).getattr("start").and_then(|start| start.extract::<usize>());
        let before = start.and_then(|start| {
            text.call_method1("__getitem__", (PySlice::new(text.py(), 0, start as isize, 1),))?
                .extract::<String>()
        });
        let place = before.ok().map(|before| Place {
            line: before.matches('\n').count() as u32 + 1,
            column: before.rsplit('\n').next().map_or(0, |line| line.chars().count()) as u32 + 1,
        });
        let error = ExpressionError::new("the text holds a lone surrogate, which is not a Unicode character");
        ExpressionError {
            place,
            ..error.with_hint("it may come from bytes that were decoded with surrogateescape")
        }
    })
}

/// What `Index.add` takes for an expression: text, an expression or a column, or the JSON form as a dict.
pub fn expression_or_text(object: &Bound<'_, PyAny>) -> PyResult<Given> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Given::Text(utf8(text).or_raise(object.py())?.to_string()));
    }
    if object.is_instance_of::<PyDict>() {
        let text: String = object.py().import("json")?.call_method1("dumps", (object,))?.extract()?;
        return json::from_json(&text).map(|expr| Given::Parsed(Arc::new(expr))).or_raise(object.py());
    }
    if !object.is_instance_of::<PyExpression>() && !object.hasattr("__tamis_expression__")? {
        return Err(type_error(format!(
            "an expression is text, a tamis.Expression or its JSON form as a dict, not {}",
            object.get_type().name()?
        )));
    }
    expression_from_python(object).map(|expression| Given::Parsed(expression.get().0.clone()))
}

/// An expression, or anything that says it is one by the method `__tamis_expression__` (a column).
pub fn expression_from_python(object: &Bound<'_, PyAny>) -> PyResult<Py<PyExpression>> {
    if let Ok(expression) = object.cast::<PyExpression>() {
        return Ok(expression.clone().unbind());
    }
    if let Ok(convert) = object.getattr("__tamis_expression__") {
        return Ok(convert.call0()?.cast_into::<PyExpression>()?.unbind());
    }
    Err(not_an_expression(object)?)
}

/// For what stands next to & or | and is none: mostly a value, because & binds more tightly than a comparison.
fn not_an_expression(object: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(type_error(format!(
        "expected an expression, not {}; put each comparison next to &, | and ^ in parentheses: \
         (col('x') > 1) & (col('y') < 2)",
        object.get_type().name()?
    )))
}

#[pymethods]
impl PyExpression {
    /// Read an expression from text. `tamis.parse` is the same.
    #[staticmethod]
    #[pyo3(signature = (text, *, missing = "unknown"))]
    fn parse(py: Python<'_>, text: &Bound<'_, PyAny>, missing: &str) -> PyResult<Self> {
        let text = text.cast::<PyString>().map_err(|_| {
            let name = text.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
            type_error(format!("an expression to parse is text, not {name}"))
        })?;
        let text: &str = &utf8(text).or_raise(py)?;
        let expr = py.detach(|| parse(text)).or_raise(py)?;
        match missing {
            "unknown" => Ok(Self::new(expr)),
            "false" => {
                let (two_valued, rewritten) = missing_is_false(&expr);
                Ok(Self(Arc::new(two_valued), rewritten))
            }
            other => {
                let message = format!("what is missing is \"unknown\" or \"false\", not {other:?}");
                Err(argument_error(py, message))
            }
        }
    }

    /// The predicates that `tamis.parse(text, missing="false")` rewrote, in their original form; empty for
    /// other expressions.
    ///
    /// >>> import tamis
    /// >>> tamis.parse("NOT user = 'root' AND host IS NOT NULL", missing="false").rewritten
    /// ["user = 'root'"]
    #[getter]
    fn rewritten(&self) -> Vec<String> {
        self.1.clone()
    }

    /// Tests that the expression is true. False, not undefined, if it is unknown.
    ///
    /// >>> from tamis import col
    /// >>> print(((col("a") > 1) & ~col("b")).is_true())
    /// (a > 1) IS TRUE AND b IS FALSE
    fn is_true(&self, py: Python<'_>) -> PyResult<Self> {
        self.tested(py, TruthTest::True)
    }

    /// Tests that the expression is false, and not unknown.
    ///
    /// >>> from tamis import col
    /// >>> print((col("a") > 1).is_false())
    /// (a > 1) IS FALSE
    fn is_false(&self, py: Python<'_>) -> PyResult<Self> {
        self.tested(py, TruthTest::False)
    }

    /// Tests that the expression is neither true nor false, because an attribute is absent or of another
    /// kind.
    ///
    /// >>> from tamis import col
    /// >>> print((col("a") > 1).is_unknown())
    /// (a > 1) IS UNKNOWN
    fn is_unknown(&self, py: Python<'_>) -> PyResult<Self> {
        self.tested(py, TruthTest::Unknown)
    }

    /// Read an expression from its JSON text.
    ///
    /// >>> import tamis
    /// >>> expression = tamis.parse("age > 30")
    /// >>> tamis.Expression.from_json(expression.to_json()) == expression
    /// True
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &Bound<'_, PyString>) -> PyResult<Self> {
        let text: &str = &utf8(text).or_raise(py)?;
        let expr = py.detach(|| json::from_json(text)).or_raise(py)?;
        Ok(Self::new(expr))
    }

    /// The JSON text of the expression.
    fn to_json(&self) -> String {
        json::to_json(&self.0)
    }

    /// The expression as SQL for another engine: "spark" or "duckdb".
    ///
    /// >>> import tamis
    /// >>> tamis.parse("age > 30 AND country IN ('CA', 'US')").to_sql("spark")
    /// "`age` > 30 AND `country` IN ('CA', 'US')"
    ///
    /// With `now`, `current_timestamp()` is written as that moment.
    #[pyo3(signature = (dialect, *, now = None))]
    fn to_sql(&self, py: Python<'_>, dialect: &str, now: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let dialect = match dialect {
            "spark" => sql::Dialect::Spark,
            "duckdb" => sql::Dialect::DuckDb,
            other => {
                return Err(argument_error(
                    py,
                    format!("unknown dialect {other:?}: use \"spark\" or \"duckdb\""),
                ));
            }
        };
        let now = now.map(|moment| moment_from_python("now", moment)).transpose()?;
        sql::to_sql_at(&self.0, dialect, now).or_raise(py)
    }

    /// The truth for one event: True, False, None for undefined, or "either" when an interval leaves both open.
    ///
    /// The event is a dict, a `tamis.Event`, or JSON text or bytes. Only True and "either" are matches.
    ///
    /// >>> import tamis
    /// >>> adult = tamis.parse("age >= 18")
    /// >>> adult.evaluate({"age": 27}), adult.evaluate({"age": 7}), adult.evaluate({})
    /// (True, False, None)
    ///
    /// `now` is the value of `current_timestamp()`; the default is the current time.
    ///
    /// >>> from datetime import datetime
    /// >>> tamis.parse("hour(now()) < 12").evaluate({}, now=datetime(2026, 1, 31, 8))
    /// True
    #[pyo3(signature = (event, *, now = None))]
    fn evaluate<'py>(
        &self,
        event: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        use pyo3::IntoPyObjectExt;
        let py = event.py();
        let now = now.map(|moment| moment_from_python("now", moment)).transpose()?;
        let now = now.unwrap_or_else(current_time);
        let outcome = with_record(event, |record| {
            evaluate(&self.0, &|attribute| match attribute {
                NOW => Some(ValueRef::Timestamp(now)),
                STRINGS => Some(record.strings().as_ref()),
                attribute => record.get(attribute).map(|value| value.as_ref()),
            })
        })?;
        match outcome {
            Outcome::TRUE => true.into_bound_py_any(py),
            Outcome::FALSE => false.into_bound_py_any(py),
            Outcome::UNDEFINED => Ok(py.None().into_bound(py)),
            Outcome::EITHER => "either".into_bound_py_any(py),
        }
    }

    /// The same predicate with a weight, for relevance: `(credit_score > 650)^0.4`.
    ///
    /// >>> from tamis import col
    /// >>> print((col("credit_score") > 650).boost(0.4))
    /// (credit_score > 650)^0.4
    fn boost(&self, py: Python<'_>, weight: f64) -> PyResult<Self> {
        let expr = build::boost((*self.0).clone(), weight).or_raise(py)?;
        Ok(Self::new(expr))
    }

    /// The names of the attributes that the expression tests, sorted.
    ///
    /// >>> import tamis
    /// >>> tamis.parse("b > 1 AND (a = 2 OR b < 0)").attributes
    /// ['a', 'b']
    #[getter]
    fn attributes(&self) -> Vec<String> {
        let mut names = Vec::new();
        visit_predicates(&self.0, &mut |predicate| {
            predicate.term.for_each_attribute(&mut |name| names.push(name.to_string()))
        });
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The number of predicates of the expression, including repeated ones.
    ///
    /// >>> import tamis
    /// >>> tamis.parse("b > 1 AND (a = 2 OR b > 1)").predicates
    /// 3
    #[getter]
    fn predicates(&self) -> usize {
        let mut count = 0;
        visit_predicates(&self.0, &mut |_| count += 1);
        count
    }

    /// XNOR: both true or both false.
    ///
    /// >>> from tamis import col
    /// >>> print((col("a") > 1).xnor(col("b") > 1))
    /// a > 1 XNOR b > 1
    fn xnor(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.join(other, Connective::Xnor)
    }

    // --- what one expression says about another ----------------------------------------------------

    /// Whether every event that makes the other true makes this one true, as far as can be proven.
    ///
    /// True is a proof. After `budget` steps (by default a few milliseconds) the answer is False. Events have
    /// point values, unless `intervals=True`: then only the structures are compared, which finds fewer
    /// covers.
    ///
    /// >>> import tamis
    /// >>> adult, young = tamis.parse("age >= 18"), tamis.parse("age BETWEEN 20 AND 29 AND city = 'Bern'")
    /// >>> adult.covers(young), young.covers(adult)
    /// (True, False)
    #[pyo3(signature = (other, *, budget = None, intervals = false))]
    fn covers(&self, other: &Bound<'_, PyAny>, budget: Option<usize>, intervals: bool) -> PyResult<bool> {
        let expression = expression_from_python(other)?.get().0.clone();
        Ok(relate::covers(other.py(), &self.0, &expression, budget, intervals))
    }

    /// Whether some event may make both true. False is a proof.
    ///
    /// `method="exact"` searches for such an event. If `budget` steps do not decide it, the answer is that of
    /// `method="pairs"`, which only compares predicates in pairs (Bittner 2008). Events have point values.
    ///
    /// >>> import tamis
    /// >>> cheap = tamis.parse("price < 12")
    /// >>> cheap.overlaps(tamis.parse("price > 10")), cheap.overlaps(tamis.parse("price > 15"))
    /// (True, False)
    /// >>> impossible = tamis.parse("price > 10 AND price < 5")
    /// >>> cheap.overlaps(impossible), cheap.overlaps(impossible, method="pairs")
    /// (False, True)
    #[pyo3(signature = (other, *, method = "exact", budget = None))]
    fn overlaps(&self, other: &Bound<'_, PyAny>, method: &str, budget: Option<usize>) -> PyResult<bool> {
        let expression = expression_from_python(other)?.get().0.clone();
        relate::overlaps(other.py(), &self.0, &expression, method, budget)
    }

    /// Whether no event makes both true, as far as can be proven: the opposite of `overlaps`.
    ///
    /// >>> import tamis
    /// >>> tamis.parse("country = 'CA'").is_disjoint(tamis.parse("country IN ('US', 'MX')"))
    /// True
    #[pyo3(signature = (other, *, method = "exact", budget = None))]
    fn is_disjoint(&self, other: &Bound<'_, PyAny>, method: &str, budget: Option<usize>) -> PyResult<bool> {
        Ok(!self.overlaps(other, method, budget)?)
    }

    /// A smaller expression that is true whenever this one is: children of ANDs are removed (Bittner 2008).
    ///
    /// Stops after `steps` removals, or at this many `predicates` or `bytes` (5 for a predicate, 2 for an AND
    /// or OR). It stops early when nothing can be removed, unless `to_true=True` lets it become TRUE. The
    /// measure is "accuracy", "efficiency", "memory", "accuracy-occurrence" or "accuracy-distance";
    /// `selectivities` is a `tamis.relate.Selectivities` or a mapping of predicates to how often they are
    /// true. Weights are dropped.
    ///
    /// >>> import tamis
    /// >>> wanted = tamis.parse("title = 'Emma' AND price < 15 AND (signed OR format = 'hardcover')")
    /// >>> print(wanted.prune(steps=1, selectivities={"price < 15": 0.9, "title = 'Emma'": 0.001}))
    /// title = 'Emma' AND (signed OR format = 'hardcover')
    /// >>> print(wanted.prune(predicates=1, selectivities={"title = 'Emma'": 0.001}))
    /// title = 'Emma'
    #[pyo3(signature = (*, steps = None, predicates = None, bytes = None, measure = "accuracy", selectivities = None, to_true = false))]
    #[allow(clippy::too_many_arguments)]
    fn prune(
        &self,
        py: Python<'_>,
        steps: Option<usize>,
        predicates: Option<usize>,
        bytes: Option<usize>,
        measure: &str,
        selectivities: Option<&Bound<'_, PyAny>>,
        to_true: bool,
    ) -> PyResult<Self> {
        let until = relate::until(py, steps, predicates, bytes)?;
        let options = relate::options(py, measure, "strict", to_true)?;
        let selectivities = relate::selectivities(py, selectivities)?;
        let pruned = py.detach(|| prune::prune(&self.0, until, options, &selectivities));
        Ok(Self::new(pruned))
    }

    /// One expression that is true whenever one of the two is.
    ///
    /// Perfect merging says the same with one predicate instead of two where that is possible, else with OR.
    /// With `prunings` that is then generalised this many times.
    ///
    /// >>> import tamis
    /// >>> print(tamis.parse("x = 1 AND y > 2").merge(tamis.parse("x = 3 AND y > 2")))
    /// x IN (1, 3) AND y > 2
    /// >>> print(tamis.parse("x = 1 AND y > 2").merge(tamis.parse("z = 3"), prunings=1))
    /// x = 1 OR z = 3
    #[pyo3(signature = (other, *, prunings = 0, measure = "accuracy", selectivities = None))]
    fn merge(
        &self,
        other: &Bound<'_, PyAny>,
        prunings: usize,
        measure: &str,
        selectivities: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = other.py();
        let other = expression_from_python(other)?.get().0.clone();
        let options = relate::options(py, measure, "strict", false)?;
        let selectivities = relate::selectivities(py, selectivities)?;
        let merged = py.detach(|| merge::merge(&self.0, &other, prunings, options, &selectivities));
        Self::checked(py, merged)
    }

    /// The expression with predicates replaced by others that cover them: true whenever this one is.
    ///
    /// >>> import tamis
    /// >>> print(tamis.parse("price < 15 OR signed").replace_predicates({"price < 15": "price < 20"}))
    /// price < 20 OR signed
    fn replace_predicates(&self, replacements: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = replacements.py();
        let pair = |(from, to)| Ok((relate::parsed(&from)?, relate::parsed(&to)?));
        let pairs = replacements.iter().map(pair).collect::<PyResult<Vec<_>>>()?;
        py.detach(|| replace_predicates(&self.0, &pairs)).or_raise(py).map(Self::new)
    }

    // --- joining -----------------------------------------------------------------------------------

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.join(other, Connective::And)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.join(other, Connective::Or)
    }

    fn __xor__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.join(other, Connective::Xor)
    }

    fn __rand__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Err(not_an_expression(other)?)
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Err(not_an_expression(other)?)
    }

    fn __rxor__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Err(not_an_expression(other)?)
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<Self> {
        Self::checked(py, Expr::Not(Box::new((*self.0).clone())))
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(type_error(
            "an expression is true or false only for an event; join expressions with &, | and ~, not with and, or \
             and not; write col('x').between(1, 3) for 1 < x < 3, and col('x').isin('a', 'b') for x in a list",
        ))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::BuildHasher;
        // Equal expressions are written the same way.
        std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default().hash_one(self.0.to_string())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("tamis.parse({})", PyString::new(py, &self.0.to_string()).repr()?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((PyType::new::<Self>(py).getattr("from_json")?, (self.to_json(),)))
    }
}

fn visit_predicates<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Predicate)) {
    match expr {
        Expr::Constant(_) => {}
        Expr::Predicate(predicate) => visit(predicate),
        Expr::Not(child) => visit_predicates(child, visit),
        Expr::And(children)
        | Expr::Or(children)
        | Expr::Xor(children)
        | Expr::Xnor(children)
        | Expr::AtLeast(_, children) => {
            children.iter().for_each(|child| visit_predicates(child, visit));
        }
    }
}

/// What a predicate looks at, for the builder: an attribute, or a function of other terms.
#[pyclass(name = "Term", module = "tamis._kernel", frozen, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PyTerm(Term);

#[pymethods]
impl PyTerm {
    #[staticmethod]
    fn attribute(py: Python<'_>, name: &Bound<'_, PyString>) -> PyResult<Self> {
        let name: &str = &utf8(name).or_raise(py)?;
        limits::check_name(name).or_raise(py)?;
        Ok(Self(Term::attribute(name)))
    }

    #[staticmethod]
    fn parse(py: Python<'_>, text: &Bound<'_, PyString>) -> PyResult<Self> {
        parse_term(&utf8(text).or_raise(py)?).or_raise(py).map(Self)
    }

    /// The function by its name, `lower` or `+` or `cast as int`; arguments are terms or Python values.
    #[staticmethod]
    fn computed(py: Python<'_>, function: &str, arguments: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let function = Function::named(function)
            .ok_or_else(|| argument_error(py, format!("there is no function {function:?}")))?;
        let arguments = arguments_from_python(&arguments, function.name())?;
        match (function.name(), &*arguments) {
            ("-", [left, right]) => match interval::difference(left, right) {
                Some(times) => Term::computed(Function::named("timestampdiff").expect("a function"), times),
                None => Term::computed(function, arguments),
            },
            _ => Term::computed(function, arguments),
        }
        .or_raise(py)
        .map(Self)
    }

    /// Whether a point lies in a shape: the coordinates are terms, the rest are Python values.
    #[staticmethod]
    fn place(py: Python<'_>, function: &str, arguments: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        WithinShape::term(function, arguments_from_python(&arguments, function)?).or_raise(py).map(Self)
    }

    /// The moment of the query.
    #[staticmethod]
    fn now() -> Self {
        Self(Term::now())
    }

    /// All strings of the event, for a quantifier.
    #[staticmethod]
    fn strings() -> Self {
        Self(Term::attribute(STRINGS))
    }

    /// A difference of two timestamps, as microseconds, to be compared with a timedelta.
    fn as_micros(&self, py: Python<'_>) -> PyResult<Self> {
        interval::as_micros(&self.0).or_raise(py).map(Self)
    }

    /// The name of an attribute; the text of another term.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn is_computed(&self) -> bool {
        self.0.is_computed() || self.0 == Term::now()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

fn arguments_from_python(arguments: &[Bound<'_, PyAny>], of: &str) -> PyResult<Vec<Argument>> {
    let argument = |argument: &Bound<'_, PyAny>| match argument.cast::<PyTerm>() {
        Ok(term) => Ok(Argument::Term(term.get().0.clone())),
        Err(_) => operand_from_python(argument, of).map(Argument::Constant),
    };
    arguments.iter().map(argument).collect()
}

fn operand_from_python(operand: &Bound<'_, PyAny>, of: &str) -> PyResult<Value> {
    value_from_python(operand).map_err(|refused| {
        bad_expression(
            operand.py(),
            format!("{}, in a predicate on {of:?}", refused.message),
            refused.hint.unwrap_or("use a value of the language"),
        )
    })
}

/// One predicate, for the builder: the operator by its name in JSON, the operands as Python values.
#[pyfunction]
#[pyo3(signature = (term, operator, operands, negated = false))]
pub fn predicate(
    py: Python<'_>,
    term: &PyTerm,
    operator: &str,
    operands: Vec<Bound<'_, PyAny>>,
    negated: bool,
) -> PyResult<PyExpression> {
    let operator = Operator::named(operator)
        .ok_or_else(|| argument_error(py, format!("there is no operator {operator:?}")))?;
    let operands = operands
        .iter()
        .map(|operand| operand_from_python(operand, term.0.name()))
        .collect::<PyResult<Vec<_>>>()?;
    let expr = build::predicate(term.0.clone(), operator, negated, operands).or_raise(py)?;
    build::check_truth(&expr).or_raise(py)?;
    Ok(PyExpression::new(expr))
}

/// A quantifier, for the builder: "exists", "forall" or "any" of an array, with a variable and a body.
#[pyfunction]
pub fn quantified(
    py: Python<'_>,
    quantifier: &str,
    array: &str,
    variable: &str,
    body: &Bound<'_, PyAny>,
) -> PyResult<PyTerm> {
    let quantifier = Quantifier::named(quantifier)
        .ok_or_else(|| argument_error(py, format!("there is no quantifier {quantifier:?}")))?;
    if array != STRINGS {
        limits::check_name(array).or_raise(py)?;
    }
    let body = Expr::clone(expression_from_python(body)?.get().expr());
    Quantified::term(quantifier, array, variable, body).or_raise(py).map(PyTerm)
}

/// A threshold, for the builder: "at_least", "at_most" or "exactly" this many of the expressions.
#[pyfunction]
pub fn threshold(
    py: Python<'_>,
    kind: &str,
    count: &Bound<'_, PyAny>,
    expressions: Vec<Bound<'_, PyAny>>,
) -> PyResult<PyExpression> {
    let count: usize = count.extract().map_err(|_| {
        let message = format!("a threshold of {count} is not a number of expressions");
        bad_expression(py, &message, "write a whole number, not below 0")
    })?;
    let children = expressions
        .iter()
        .map(|child| expression_from_python(child).map(|child| Expr::clone(child.get().expr())))
        .collect::<PyResult<Vec<_>>>()?;
    if children.is_empty() {
        return Err(bad_expression(py, "a threshold needs at least one expression", "give some"));
    }
    let expr = match kind {
        "at_least" => build::at_least(count, children),
        "at_most" => build::at_most(count, children),
        _ => build::exactly(count, children),
    };
    PyExpression::checked(py, expr)
}
