"""WHERE clauses of other SQL dialects, read by sqlglot: `"plan" <> 'free' AND seats % 2 = 0`.

SQL has three truth values, like Tamis, so the structure is carried over unchanged; dialects differ in the
meaning of operators. The text does not show whether a collation ignores case (MySQL, SQL Server): strings are
compared as they are, and a rule of such a dialect gets a note. So does a rule whose meaning differs between
dialects in a case that depends on the data. If part of sqlglot's tree is not understood, the rule is refused.

`EXISTS (SELECT ... FROM UNNEST(items) AS t(i) WHERE ...)`, `5 = ANY(sizes)`, `x > ALL(sizes)` and the lambdas
of `exists`, `forall`, `any_match`, `all_match` and `none_match` become quantifiers.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tamis._extras import missing_extra
from tamis._kernel import Expression
from tamis.errors import ArgumentError
from tamis.importers import forms
from tamis.importers.report import OF_ANY_FORMAT, ImportedRule, NotCarriedOverError, Report, attempt, gather
from tamis.importers.shape import check_parentheses

try:
    import sqlglot
    from sqlglot import exp
except ImportError as error:
    raise ImportError(missing_extra("the importer of SQL", "importers")) from error

NOT_CARRIED_OVER = {
    **OF_ANY_FORMAT,
    "a subquery": "an event is one record, without tables; only EXISTS and IN over one UNNEST are read",
    "an aggregate": "an event is one record",
    "a window": "an event is one record",
    "a parameter": "its value is not in the text",
    "CASE": "Tamis has no conditional term",
    "an integer division": "this dialect drops the fraction, but Tamis does not",
    "a cast": "to a type that Tamis does not have",
    "an interval": "arithmetic with times is not converted",
    "current time": "it is not converted",
    "a function": "Tamis has no function that means the same",
    "SIMILAR TO": "its patterns are neither LIKE nor regular expressions",
    "a class in LIKE": "[...] is a character class in this dialect, but literal text in Tamis",
    "a place in a text": "dialects differ before the first character; positions from 1 are read",
    "an array": "only its elements are tested; the array is a column, or one of literals",
    "a name next to UNNEST": "it may be a column or a field of the element: name the column, AS t(item)",
    "a condition as a value": "conditions are compared with TRUE, FALSE and NULL only",
    "the text": "sqlglot cannot read it",
}
"""Every feature that is refused, with the reason."""

_BACKSLASH_ESCAPES_LIKE = frozenset(
    {
        "postgres",
        "mysql",
        "spark",
        "spark2",
        "hive",
        "databricks",
        "redshift",
        "clickhouse",
        "bigquery",
        "doris",
    }
)
_BY_COLLATION = frozenset({"mysql", "tsql", "doris", "starrocks"})

_FUNCTIONS: dict[str, str] = {
    "Lower": "lower",
    "Upper": "upper",
    "Length": "length",
    "Abs": "abs",
    "Floor": "floor",
    "Ceil": "ceil",
    "Year": "year",
    "Month": "month",
    "Day": "day",
    "DayOfMonth": "day",
    "Quarter": "quarter",
    "DayOfYear": "dayofyear",
    "Hour": "hour",
    "Minute": "minute",
    "Second": "second",
}
_CASTS = {
    "BOOLEAN": "bool",
    "BIGINT": "int",
    "INT": "int",
    "DOUBLE": "float",
    "VARCHAR": "string",
    "TEXT": "string",
    "TIMESTAMP": "timestamp",
}
_EXTRACTS = frozenset({"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})


def convert(id: str, where: str, dialect: str = "duckdb") -> ImportedRule:
    """One condition, with or without WHERE before it.

    >>> str(convert("a", "lower(\\"Plan\\") = 'pro' AND seats::bigint > 3", "postgres").expression)
    "lower(Plan) = 'pro' AND CAST(seats AS int) > 3"
    >>> print(convert("b", "x IN (SELECT 1)").refused)
    x IN (SELECT 1): a subquery is not carried over: an event is one record, without tables; ...
    """
    try:
        sqlglot.Dialect.get_or_raise(dialect)
    except ValueError as error:
        raise ArgumentError(str(error)) from None

    def converted() -> ImportedRule:
        text = check_parentheses(where).strip().rstrip(";")
        text = re.sub(r"^WHERE\b", "", text, flags=re.IGNORECASE)
        try:
            tree = sqlglot.parse_one(text, read=dialect)
        except sqlglot.errors.SqlglotError as error:
            message = str(error).splitlines()[0]
            raise NotCarriedOverError("the text", f"sqlglot cannot read it: {message}") from None
        writer = _Writer(dialect)
        expression = Expression.parse(writer.condition(tree))
        return ImportedRule(id, expression, notes=tuple(writer.notes))

    return attempt(id, "the text", NOT_CARRIED_OVER["the text"], converted)


def read(conditions: Mapping[str, str] | Iterable[tuple[str, str]], dialect: str = "duckdb") -> Report:
    """Many conditions by their ids.

    >>> report = read({"a": "x > 1", "b": "x > now()"})
    >>> [rule.id for rule in report.imported]
    ['a']
    """
    pairs = conditions.items() if isinstance(conditions, Mapping) else conditions
    return gather(convert(id, where, dialect) for id, where in pairs)


def _refuse(feature: str, node: Any) -> NotCarriedOverError:
    return NotCarriedOverError(feature, NOT_CARRIED_OVER[feature], where=node.sql()[:60])


@dataclass(frozen=True)
class _Element:
    """The name of an element of an array in a condition, and of the table that UNNEST makes of the array."""

    variable: str
    table: str | None = None
    is_only_table: bool = False
    """The table has a name and its column has none, so that other names may be fields of the element."""


class _Writer:
    """Writes the text of an expression from sqlglot's tree."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._elements: list[_Element] = []
        self.notes: dict[str, None] = {}
        """Corners in which the dialect means something else, in their order."""
        if dialect in _BY_COLLATION:
            self._note("strings are compared with their case, whatever the collation")

    def _note(self, text: str) -> None:
        self.notes[text] = None

    # --- conditions --------------------------------------------------------------------------------

    def condition(self, node: Any) -> str:
        _check_parts(node)
        match node:
            case exp.And() | exp.Or() | exp.Xor():
                name = {"And": "AND", "Or": "OR", "Xor": "XOR"}[type(node).__name__]
                return f" {name} ".join(f"({self.condition(part)})" for part in node.flatten())
            case exp.NullSafeNEQ():
                return f"NOT {self.value(node.this)} <=> {self.value(node.expression)}"
            case exp.Not():
                return f"NOT ({self.condition(node.this)})"
            case exp.Paren():
                return self.condition(node.this)  # whoever asks encloses it
            case exp.Boolean():
                return "TRUE" if node.this else "FALSE"
            case exp.Null():
                return "NULL"
            case exp.Column() | exp.Cast() | exp.Identifier():
                return self.value(node)
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Between():
                value, low, high = (self.value(node.args[name]) for name in ("this", "low", "high"))
                between = f"{value} BETWEEN {low} AND {high}"
                either = f"({between} OR {value} BETWEEN {high} AND {low})"
                return either if node.args.get("symmetric") else between
            case exp.Like() | exp.ILike() | exp.Escape():
                return self._like(node)
            case exp.RegexpLike() | exp.RegexpILike():
                return self._regexp(node)
            case exp.SimilarTo():
                raise _refuse("SIMILAR TO", node)
            case exp.StartsWith() | exp.EndsWith() | exp.Contains():
                name = type(node).__name__.lower()
                return f"{name}({self.value(node.this)}, {self.value(node.expression)})"
            case exp.ArrayContains():
                return self._array_contains(node)
            case exp.ArrayOverlaps():
                return self._overlaps(node)
            case exp.Exists():
                return self._exists(node)
            case exp.Anonymous() if node.name.lower() in _QUANTIFIERS:
                return self._lambda(_QUANTIFIERS[node.name.lower()], node, *node.expressions)
        if type(node) in _COMPARISONS:
            if (quantified := self._any_or_all(node)) is not None:
                return quantified
            self._no_conditions(node)
            if (known := _of_literals(node)) is not None:
                return known
            return f"{self.value(node.this)} {_COMPARISONS[type(node)]} {self.value(node.expression)}"
        if isinstance(node, exp.Predicate) and not isinstance(node, exp.Query | exp.SubqueryPredicate):
            raise _refuse("a function", node)
        return self.value(node)

    def _no_conditions(self, node: Any) -> None:
        for side in (node.this, node.expression):
            inner = side.unnest()
            if isinstance(inner, exp.Connector | exp.Not | exp.Predicate) and not isinstance(
                inner, exp.Subquery
            ):
                raise _refuse("a condition as a value", node)

    def _is(self, node: exp.Is) -> str:
        wanted = node.expression
        negated = isinstance(wanted, exp.Not)
        wanted = wanted.this if negated else wanted
        if not isinstance(wanted, exp.Null | exp.Boolean):
            raise _refuse("a condition as a value", node)
        name = "NULL" if isinstance(wanted, exp.Null) else "TRUE" if wanted.this else "FALSE"
        inner = node.this.unnest()
        is_value = isinstance(inner, exp.Column | exp.Cast | exp.Func) and not isinstance(
            inner, exp.Predicate | exp.Connector
        )
        tested = self.value(node.this) if is_value else f"({self.condition(inner)})"
        return f"{tested} IS {'NOT ' if negated else ''}{name}"

    def _in(self, node: exp.In) -> str:
        unnest, query = node.args.get("unnest"), node.args.get("query")
        if isinstance(unnest, exp.Unnest) and len(unnest.expressions) == 1:
            return self._some_equal(node, unnest.expressions[0])
        if query is not None and (array := _only_unnested(query)) is not None:
            # Of no array there are no rows, and the answer is no.
            return f"({self._array(array)} IS NOT NULL AND {self._some_equal(node, array)})"
        if unnest is not None or query is not None:
            raise _refuse("a subquery", node)
        members = ", ".join(self.value(member) for member in node.expressions)
        return f"{self.value(node.this)} IN ({members})"

    def _like(self, node: Any) -> str:
        escape = None
        if isinstance(node, exp.Escape):
            escape = node.expression.this
            node = node.this
        if not isinstance(node, exp.Like | exp.ILike) or not _is_string(node.expression):
            raise _refuse("a function", node)
        pattern = node.expression.this
        if "[" in pattern and self._dialect in _CLASSES_IN_LIKE:
            raise _refuse("a class in LIKE", node)
        if escape is None and self._dialect in _BACKSLASH_ESCAPES_LIKE:
            escape = "\\"
        ignores_case = isinstance(node, exp.ILike) or self._dialect == "sqlite"
        name = "ILIKE" if ignores_case else "LIKE"
        text = forms.literal(_like_pattern(pattern, escape))
        negation = "NOT " if node.args.get("negate") else ""
        return f"{self.value(node.this)} {negation}{name} {text}"

    def _regexp(self, node: Any) -> str:
        flag = node.args.get("flag")
        if not _is_string(node.expression) or not (flag is None or _is_string(flag)):
            raise _refuse("a function", node)
        flags = "" if flag is None else flag.this
        if isinstance(node, exp.RegexpILike):
            flags += "i"
        if set(flags) - set("ims"):
            raise _refuse("a function", node)
        pattern = node.expression.this
        if node.args.get("full_match"):
            pattern = f"^(?:{pattern})$"
        pattern = (f"(?{flags})" if flags else "") + pattern
        return f"{self.value(node.this)} RLIKE {forms.literal(pattern)}"

    # --- arrays ------------------------------------------------------------------------------------

    def _array(self, node: Any) -> str:
        inner = node.unnest()
        if not isinstance(inner, exp.Column | exp.Dot | exp.Identifier):
            raise _refuse("an array", node)
        return self.value(inner)

    def _new_variable(self, node: Any) -> str:
        """A name that no column of a condition has."""
        taken = {name.name.lower() for name in node.find_all(exp.Identifier)}
        taken |= {element.variable for element in self._elements}
        names = ("element", *(f"element{number}" for number in range(2, len(taken) + 3)))
        return next(name for name in names if name not in taken)

    def _some_equal(self, node: Any, array: Any) -> str:
        variable = self._new_variable(node)
        return f"exists({self._array(array)}, {variable} -> {variable} = {self.value(node.this)})"

    def _any_or_all(self, node: Any) -> str | None:
        """`5 = ANY(sizes)`, in three-valued logic, as quantifiers are."""
        right = node.expression
        if isinstance(right, exp.Any):
            name, array = "exists", right.this
        elif isinstance(right, exp.All):
            name, array = "forall", right.this
        elif isinstance(right, exp.Anonymous) and right.name.upper() == "ALL" and len(right.expressions) == 1:
            name, array = "forall", right.expressions[0]
        else:
            return None
        if type(node) not in _TURNED:
            raise _refuse("an array", node)
        if isinstance(array.unnest(), exp.Query):
            raise _refuse("a subquery", node)
        variable = self._new_variable(node)
        compared = f"{variable} {_TURNED[type(node)]} {self.value(node.this)}"
        held = self._array(array)
        quantified = f"{name}({held}, {variable} -> {compared})"
        if self._dialect != "duckdb":
            return quantified
        # DuckDB makes rows of the array, and there are none where it is absent.
        return (
            f"({held} IS NOT NULL AND {quantified})"
            if name == "exists"
            else f"({held} IS NULL OR {quantified})"
        )

    def _array_contains(self, node: Any) -> str:
        array, member = self._array(node.this), self.value(node.expression)
        if self._dialect in _NULLS_HIDE or _only_truth_counts(node):
            return f"array_contains({array}, {member})"
        variable = self._new_variable(node)
        return f"exists({array}, {variable} -> ({variable} = {member}) IS TRUE)"

    def _overlaps(self, node: Any) -> str:
        members = node.expression
        if not isinstance(members, exp.Array):
            raise _refuse("an array", node)
        listed, array = (
            ", ".join(self.value(member) for member in members.expressions),
            self._array(node.this),
        )
        variable = self._new_variable(node)
        return f"exists({array}, {variable} -> ({variable} IN ({listed})) IS TRUE)"

    def _exists(self, node: Any) -> str:
        if isinstance(node.expression, exp.Lambda):
            return self._lambda("exists", node, node.this, node.expression)
        query = node.this.unnest()
        if not isinstance(query, exp.Select) or _parts(query) - {"expressions", "from_", "where", "kind"}:
            raise _refuse("a subquery", node)
        if any(
            not isinstance(made, exp.Literal | exp.Star | exp.Null | exp.Column) for made in query.expressions
        ):
            raise _refuse("a subquery", node)  # an aggregate makes a row of none
        unnest = query.args["from_"].this if query.args.get("from_") is not None else None
        if not isinstance(unnest, exp.Unnest) or len(unnest.expressions) != 1 or unnest.args.get("offset"):
            raise _refuse("a subquery", node)
        alias = unnest.args.get("alias")
        if alias is None or len(alias.columns) > 1:
            raise _refuse("a subquery", node)
        columns = [column.name for column in alias.columns]
        element = _Element(
            columns[0] if columns else alias.name, alias.name or None, is_only_table=not columns
        )
        array = self._array(unnest.expressions[0])
        where = query.args.get("where")
        body = "TRUE" if where is None else self._about(element, where.this)
        found = f"exists({array}, {forms.attribute(element.variable).text} -> {body})"
        # EXISTS knows true and false only.
        return found if _only_truth_counts(node) else f"({found}) IS TRUE"

    def _lambda(self, name: str, node: Any, *arguments: Any) -> str:
        if len(arguments) != 2 or not isinstance(arguments[1], exp.Lambda):
            raise _refuse("an array", node)
        array, function = arguments
        if len(function.expressions) != 1:
            raise _refuse("an array", node)
        variable = function.expressions[0].name
        body = self._about(_Element(variable), function.this)
        negation, name = ("NOT ", "exists") if name == "none" else ("", name)
        return f"{negation}{name}({self._array(array)}, {forms.attribute(variable).text} -> {body})"

    def _about(self, element: _Element, condition: Any) -> str:
        self._elements.append(element)
        try:
            return self.condition(condition)
        finally:
            self._elements.pop()

    def _name(self, node: Any) -> str:
        """The path that a column or a field of an element stands at."""
        parts = _names(node)
        for element in reversed(self._elements):
            first = parts[0].lower()
            if first == element.variable.lower():
                return ".".join([element.variable, *parts[1:]])
            if len(parts) > 1 and element.table is not None and first == element.table.lower():
                if parts[1].lower() != element.variable.lower():
                    raise _refuse("a name next to UNNEST", node)
                return ".".join([element.variable, *parts[2:]])
            if element.is_only_table and len(parts) == 1:
                raise _refuse("a name next to UNNEST", node)
        return ".".join(parts)

    # --- values ------------------------------------------------------------------------------------

    def value(self, node: Any) -> str:
        _check_parts(node)
        match node:
            case exp.Paren():
                return f"({self.value(node.this)})"
            case exp.Column() | exp.Dot() | exp.Identifier():
                return forms.attribute(self._name(node)).text
            case exp.Literal():
                return self._literal(node)
            case exp.National() | exp.RawString():
                return forms.literal(node.this)
            case exp.Boolean():
                return "TRUE" if node.this else "FALSE"
            case exp.Null():
                return "NULL"
            case exp.Neg():
                return f"-({self.value(node.this)})"  # two signs together begin a comment
            case exp.Cast():
                return self._cast(node)
            case exp.Div() if node.args.get("typed"):
                raise _refuse("an integer division", node)
            case exp.Coalesce():
                return self._call("coalesce", [node.this, *node.expressions])
            case exp.Concat() if node.args.get("coalesce"):  # this dialect leaves out nulls
                parts = [f"coalesce({self.value(part)}, '')" for part in node.expressions]
                return f"concat({', '.join(parts)})"
            case exp.Concat():
                return self._call("concat", node.expressions)
            case exp.Trim() if node.expression is None and node.args.get("position") is None:
                return self._call("trim", [node.this])
            case exp.Substring():
                return self._substring(node)
            case exp.DPipe() if self._dialect == "oracle":
                self._note(_EMPTY_IS_NULL)
                parts = [f"coalesce({self.value(part)}, '')" for part in node.flatten()]
                return f"concat({', '.join(parts)})"
            case exp.Round():
                digits = node.args.get("decimals")
                return self._call("round", [node.this] if digits is None else [node.this, digits])
            case exp.Extract() if node.this.name.upper() in _EXTRACTS:
                if node.this.name.upper() == "SECOND" and self._dialect in _FRACTIONS_OF_SECONDS:
                    self._note("seconds are whole here, and have fractions there")
                return f"{node.this.name.lower()}({self.value(node.expression)})"
            case exp.TsOrDsToDate() | exp.DateStrToDate() if _is_string(node.this):
                return f"DATE {forms.literal(node.this.this)}"
            case exp.TsOrDsToTimestamp() if _is_string(node.this):
                return f"TIMESTAMP {forms.literal(node.this.this)}"
            case exp.TsOrDsToDate() if isinstance(node.parent, _OF_DAYS):
                return self.value(node.this)  # the time of day makes no difference there
            case exp.Length() if node.args.get("binary") and not self._counts_characters(node):
                raise _refuse("a function", node)
            case exp.Length() if self._dialect == "tsql":
                self._note("LEN does not count spaces at the end there")
                return self._call("length", [node.this])
        if type(node) in _ARITHMETIC:
            return f"({self.value(node.this)} {_ARITHMETIC[type(node)]} {self.value(node.expression)})"
        name = _FUNCTIONS.get(type(node).__name__)
        if name is not None:
            return self._call(name, [node.this])
        raise self._refused(node)

    def _literal(self, node: Any) -> str:
        if not node.is_string:
            return str(node.this)
        if not node.this and self._dialect == "oracle":
            self._note(_EMPTY_IS_NULL)
        return forms.literal(node.this)

    def _counts_characters(self, node: Any) -> bool:
        """Whether a length that may be one of bytes is one of characters where it is that of a text."""
        return node.args["binary"] is True and self._dialect not in _LENGTH_IN_BYTES

    def _substring(self, node: Any) -> str:
        """Places from 1 on are the same everywhere; those before it, and from the end, are not."""
        bounds = [node.args.get("start"), node.args.get("length")]
        given = [part for part in bounds if part is not None]
        if self._dialect not in _AS_SPARK:
            first = _whole_number(given[0]) if given else None
            from_end = self._dialect == "duckdb" and len(given) == 1
            if first is None or (first < 1 and not (from_end and first < 0)):
                raise _refuse("a place in a text", node)
            if len(given) > 1 and (_whole_number(given[1]) or 0) < 0:
                raise _refuse("a place in a text", node)
        return self._call("substring", [node.this, *given])

    def _call(self, name: str, arguments: list[Any]) -> str:
        return f"{name}({', '.join(self.value(argument) for argument in arguments)})"

    def _cast(self, node: exp.Cast) -> str:
        target = node.to.this.name if isinstance(node.to.this, exp.DataType.Type) else str(node.to.this)
        if _is_string(node.this) and target in ("TIMESTAMP", "DATE", "TIMESTAMPTZ", "DATETIME"):
            return f"{'DATE' if target == 'DATE' else 'TIMESTAMP'} {forms.literal(node.this.this)}"
        if target not in _CASTS or node.to.expressions:
            raise _refuse("a cast", node)
        if _CASTS[target] == "int" and self._dialect not in _CASTS_DROP_FRACTIONS:
            self._note("CAST to an integer drops the fraction here, and rounds there")
        return f"CAST({self.value(node.this)} AS {_CASTS[target]})"

    def _refused(self, node: Any) -> NotCarriedOverError:
        kinds: list[tuple[tuple[type, ...], str]] = [
            ((exp.Subquery, exp.Select, exp.Exists, exp.Any, exp.All), "a subquery"),
            ((exp.AggFunc,), "an aggregate"),
            ((exp.Window,), "a window"),
            ((exp.Placeholder, exp.Parameter), "a parameter"),
            ((exp.Case, exp.If), "CASE"),
            ((exp.Interval,), "an interval"),
            ((exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.CurrentDatetime), "current time"),
            ((exp.Array, exp.Bracket, exp.ArrayContainsAll, exp.Lambda, exp.ArrayFilter), "an array"),
            ((exp.Connector, exp.Not, exp.Predicate), "a condition as a value"),
        ]
        for types, feature in kinds:
            if isinstance(node, types):
                return _refuse(feature, node)
        return _refuse("a function", node)


_READ_PARTS: dict[type, frozenset[str]] = {
    exp.Column: frozenset({"table", "db", "catalog"}),
    exp.Identifier: frozenset({"quoted"}),
    exp.Literal: frozenset({"is_string"}),
    exp.DPipe: frozenset({"safe"}),
    exp.Div: frozenset({"typed", "safe"}),
    exp.Coalesce: frozenset({"is_nvl", "is_null"}),
    exp.Concat: frozenset({"safe", "coalesce"}),
    exp.Cast: frozenset({"to", "safe"}),
    exp.TryCast: frozenset({"to", "safe", "requires_string"}),
    exp.TsOrDsToDate: frozenset({"safe", "default_date"}),
    exp.Length: frozenset({"binary"}),
    exp.Round: frozenset({"decimals"}),
    exp.Substring: frozenset({"start", "length"}),
    exp.RegexpLike: frozenset({"flag", "full_match"}),
    exp.RegexpILike: frozenset({"flag"}),
    exp.Like: frozenset({"negate"}),
    exp.ILike: frozenset({"negate"}),
    exp.In: frozenset({"query", "unnest", "is_global"}),
    exp.Between: frozenset({"low", "high", "symmetric"}),
    exp.ArrayContains: frozenset({"ensure_variant", "check_null"}),
}
"""What is read of a node beside what it is about; of others, nothing else."""


def _check_parts(node: Any) -> None:
    """Raise if a node has parts that are not read: what is passed over could change what it means."""
    if isinstance(node, exp.Query | exp.Unnest | exp.Interval | exp.Case | exp.If | exp.AggFunc | exp.Window):
        return  # refused for what they are
    known = {"this", "expression", "expressions"} | _READ_PARTS.get(type(node), frozenset())
    if any(value for name, value in node.args.items() if name not in known):
        raise _refuse("a function", node)


def _whole_number(node: Any) -> int | None:
    """The integer that a literal is, with its sign."""
    sign = 1
    while isinstance(node, exp.Neg | exp.Paren):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()
    return sign * int(node.this) if is_number else None


def _of_literals(node: Any) -> str | None:
    """The truth of a comparison of two literals, as programs write them: `1 = 1`."""
    sides = (node.this.unnest(), node.expression.unnest())
    if type(node) not in _COMPARED:
        return None
    if all(_is_string(side) for side in sides):
        first, second = (side.this.encode() for side in sides)
    else:
        first, second = (_whole_number(side) for side in sides)
    if first is None or second is None:
        return None
    return "TRUE" if _COMPARED[type(node)](first, second) else "FALSE"


def _names(node: Any) -> list[str]:
    """The names of a path: `t.i.price`."""
    if isinstance(node, exp.Dot):
        return [*_names(node.this), node.expression.name]
    return [node.name] if isinstance(node, exp.Identifier) else [part.name for part in node.parts]


def _parts(query: exp.Select) -> set[str]:
    """The clauses that a query has."""
    return {name for name, clause in query.args.items() if clause}


def _only_unnested(query: Any) -> Any:
    """The array of `(SELECT unnest(array))`."""
    select = query.unnest()
    if not isinstance(select, exp.Select) or _parts(select) - {"kind"} != {"expressions"}:
        return None
    made = select.expressions[0]
    return made.this if isinstance(made, exp.Explode | exp.Unnest) and len(select.expressions) == 1 else None


def _only_truth_counts(node: Any) -> bool:
    """Whether false and undefined make no difference, because only AND, OR and EXISTS stand around."""
    around = node.parent
    while around is not None:
        if not isinstance(around, exp.And | exp.Or | exp.Paren | exp.Where | exp.Select | exp.Exists):
            return False
        around = around.parent
    return True


def _is_string(node: Any) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _like_pattern(pattern: str, escape: str | None) -> str:
    r"""The pattern with a backslash as its escape character.

    >>> _like_pattern("50!%%", "!"), _like_pattern("a\\b%", None)
    ('50\\%%', 'a\\\\b%')
    """
    written, rest = "", iter(pattern)
    for character in rest:
        if character == escape:
            following = next(rest, escape)
            written += "\\" + following if following in "%_\\" else following
        else:
            written += "\\\\" if character == "\\" else character
    return written


_AS_SPARK = frozenset({"spark", "spark2", "databricks"})
_CASTS_DROP_FRACTIONS = _AS_SPARK | {"hive", "tsql", "sqlite", "clickhouse", "redshift"}
_LENGTH_IN_BYTES = frozenset({"mysql", "doris", "starrocks", "singlestore", "clickhouse"})
_CLASSES_IN_LIKE = frozenset({"tsql", "fabric"})
_FRACTIONS_OF_SECONDS = frozenset({"postgres", "materialize", "risingwave"})
_EMPTY_IS_NULL = "an empty text is null there, and a text here"
_OF_DAYS = (exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfYear)
_COMPARED: dict[type, Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
}
_NULLS_HIDE = frozenset({"spark", "spark2", "databricks", "presto", "trino", "athena"})
"""Dialects in which a null in an array makes array_contains undefined, where nothing is found."""
_QUANTIFIERS = {"forall": "forall", "any_match": "exists", "all_match": "forall", "none_match": "none"}
_TURNED: dict[type, str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.GT: "<",
    exp.GTE: "<=",
    exp.LT: ">",
    exp.LTE: ">=",
}
_COMPARISONS: dict[type, str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "||",
}
