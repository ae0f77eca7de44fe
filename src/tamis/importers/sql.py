"""WHERE clauses of other SQL dialects, read by sqlglot: `"plan" <> 'free' AND seats % 2 = 0`.

SQL has three truth values, as Tamis has, so the structure is carried over as it is; what differs between
dialects is the meaning of operators. Case-insensitive comparison by a collation (MySQL, SQL Server) is
not known from the text: strings are compared as they are, and the rule of such a dialect has a note.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tamis._extras import missing_extra
from tamis._kernel import Expression
from tamis.errors import ArgumentError, TamisError
from tamis.importers import forms
from tamis.importers.report import ImportedRule, NotCarriedOverError, Report, gather

try:
    import sqlglot
    from sqlglot import exp
except ImportError as error:
    raise ImportError(missing_extra("the importer of SQL", "importers")) from error

NOT_CARRIED_OVER = {
    "a subquery": "an event is one record, and there are no tables",
    "an aggregate": "an event is one record",
    "a window": "an event is one record",
    "a parameter": "its value is not in the text",
    "CASE": "there is no term that chooses",
    "an integer division": "this dialect drops the fraction, and Tamis does not",
    "a cast": "to a type that Tamis has not",
    "an interval": "there is no arithmetic with times",
    "current time": "it changes, and a stored expression does not",
    "a function": "Tamis has no function that means the same",
    "SIMILAR TO": "its patterns are neither LIKE nor regular expressions",
    "an array": "arrays are only looked into by array_contains and arrays_overlap",
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
    x IN (SELECT 1): a subquery is not carried over: an event is one record, and there are no tables
    """
    try:
        sqlglot.Dialect.get_or_raise(dialect)
    except ValueError as error:
        raise ArgumentError(str(error)) from None
    text = where.strip().rstrip(";")
    if text[:6].upper() == "WHERE ":
        text = text[6:]
    try:
        tree = sqlglot.parse_one(text, read=dialect)
        converted = _Writer(dialect).condition(tree)
        notes = ("strings are compared with their case, whatever the collation",)
        return ImportedRule(id, Expression.parse(converted), notes=notes if dialect in _BY_COLLATION else ())
    except sqlglot.errors.SqlglotError as error:
        message = str(error).splitlines()[0]
        return ImportedRule(id, None, NotCarriedOverError("the text", f"sqlglot cannot read it: {message}"))
    except NotCarriedOverError as refused:
        return ImportedRule(id, None, refused)
    except TamisError as error:
        return ImportedRule(id, None, NotCarriedOverError("the condition", str(error).splitlines()[0]))


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


class _Writer:
    """Writes the text of an expression from sqlglot's tree."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    # --- conditions --------------------------------------------------------------------------------

    def condition(self, node: Any) -> str:
        match node:
            case exp.And() | exp.Or() | exp.Xor():
                name = {"And": "AND", "Or": "OR", "Xor": "XOR"}[type(node).__name__]
                return f" {name} ".join(f"({self.condition(part)})" for part in node.flatten())
            case exp.NullSafeNEQ():
                return f"NOT {self.value(node.this)} <=> {self.value(node.expression)}"
            case exp.Not():
                return f"NOT ({self.condition(node.this)})"
            case exp.Paren():
                return f"({self.condition(node.this)})"
            case exp.Boolean():
                return "TRUE" if node.this else "FALSE"
            case exp.Null():
                return "NULL"
            case exp.Column() | exp.Cast():
                return self.value(node)
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Between():
                low, high = self.value(node.args["low"]), self.value(node.args["high"])
                return f"{self.value(node.this)} BETWEEN {low} AND {high}"
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
                return f"array_contains({self.value(node.this)}, {self.value(node.expression)})"
        if type(node) in _COMPARISONS:
            self._no_conditions(node)
            return f"{self.value(node.this)} {_COMPARISONS[type(node)]} {self.value(node.expression)}"
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
        if not isinstance(node.this.unnest(), exp.Column | exp.Cast | exp.Func):
            raise _refuse("a condition as a value", node)
        name = "NULL" if isinstance(wanted, exp.Null) else "TRUE" if wanted.this else "FALSE"
        return f"{self.value(node.this)} IS {'NOT ' if negated else ''}{name}"

    def _in(self, node: exp.In) -> str:
        if node.args.get("query") is not None or node.args.get("unnest") is not None:
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
        pattern = (f"(?{flags})" if flags else "") + node.expression.this
        return f"{self.value(node.this)} RLIKE {forms.literal(pattern)}"

    # --- values ------------------------------------------------------------------------------------

    def value(self, node: Any) -> str:
        match node:
            case exp.Paren():
                return f"({self.value(node.this)})"
            case exp.Column():
                return forms.attribute(".".join(part.name for part in node.parts)).text
            case exp.Dot():
                return forms.attribute(".".join(part.name for part in node.parts)).text
            case exp.Literal():
                return forms.literal(node.this) if node.is_string else node.this
            case exp.Boolean():
                return "TRUE" if node.this else "FALSE"
            case exp.Null():
                return "NULL"
            case exp.Neg():
                return f"-{self.value(node.this)}"
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
                bounds = [node.args.get("start"), node.args.get("length")]
                return self._call("substring", [node.this, *(part for part in bounds if part is not None)])
            case exp.Round():
                digits = node.args.get("decimals")
                return self._call("round", [node.this] if digits is None else [node.this, digits])
            case exp.Extract() if node.this.name.upper() in _EXTRACTS:
                return f"{node.this.name.lower()}({self.value(node.expression)})"
            case exp.TsOrDsToDate() | exp.TsOrDsToTimestamp() | exp.StrToTime():
                return self.value(node.this)
        if type(node) in _ARITHMETIC:
            return f"({self.value(node.this)} {_ARITHMETIC[type(node)]} {self.value(node.expression)})"
        name = _FUNCTIONS.get(type(node).__name__)
        if name is not None:
            return self._call(name, [node.this])
        raise self._refused(node)

    def _call(self, name: str, arguments: list[Any]) -> str:
        return f"{name}({', '.join(self.value(argument) for argument in arguments)})"

    def _cast(self, node: exp.Cast) -> str:
        target = node.to.this.name if isinstance(node.to.this, exp.DataType.Type) else str(node.to.this)
        if _is_string(node.this) and target in ("TIMESTAMP", "DATE", "TIMESTAMPTZ", "DATETIME"):
            return f"{'DATE' if target == 'DATE' else 'TIMESTAMP'} {forms.literal(node.this.this)}"
        if target not in _CASTS or node.to.expressions:
            raise _refuse("a cast", node)
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
            ((exp.Array, exp.Bracket, exp.ArrayContainsAll, exp.ArrayOverlaps), "an array"),
            ((exp.Connector, exp.Not, exp.Predicate), "a condition as a value"),
        ]
        for types, feature in kinds:
            if isinstance(node, types):
                return _refuse(feature, node)
        return _refuse("a function", node)


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
