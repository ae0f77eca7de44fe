"""Expressions written in Python: `col("age").between(22, 36) & ~col("opted_out")`.

The names are those of PySpark and Polars. A column is an attribute, or something computed from attributes,
that has not been tested yet; testing it gives an `Expression`. A boolean column is a test by itself:
`~col("opted_out")`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, NoReturn

from tamis._kernel import Expression, Term, predicate, quantified, threshold
from tamis._parameters import with_values
from tamis.errors import ExpressionError


def parse(
    text: str, values: Sequence[Any] | None = None, *, missing: Literal["unknown", "false"] = "unknown"
) -> Expression:
    """Parse an expression from text; each `?` in it is replaced by one of `values`, always as a literal.

    >>> parse("age BETWEEN 22 AND 36 AND country IN ('CA', 'US')").attributes
    ['age', 'country']
    >>> print(parse("name = ? AND country IN (?)", ["Joe's Diner", ["CA", "US"]]))
    name = 'Joe\\'s Diner' AND country IN ('CA', 'US')

    With `missing="false"`, logic is two-valued: a predicate whose attribute is absent, or of another kind, is
    false instead of undefined, and its negation is true. `rewritten` lists the affected predicates.

    >>> rule = parse("NOT user = 'root'", missing="false")
    >>> print(rule, rule.rewritten)
    NOT (user = 'root') IS TRUE ["user = 'root'"]
    >>> rule.evaluate({}), parse("NOT user = 'root'").evaluate({})
    (True, None)
    """
    return Expression.parse(text if values is None else with_values(text, values), missing=missing)


def at_least(count: int, *expressions: "Expression | Column") -> Expression:
    """At least this many of the expressions are true.

    >>> print(at_least(2, col("a") > 1, col("b"), ~col("c")))
    AT LEAST 2 OF (a > 1, b, NOT c)
    """
    return threshold("at_least", count, expressions)


def at_most(count: int, *expressions: "Expression | Column") -> Expression:
    """At most this many of the expressions are true, and the others are false.

    >>> print(at_most(1, col("a"), col("b")))
    NOT AT LEAST 2 OF (a, b)
    """
    return threshold("at_most", count, expressions)


def exactly(count: int, *expressions: "Expression | Column") -> Expression:
    """Exactly this many of the expressions are true, and the others are false.

    >>> print(exactly(1, col("a"), col("b")))
    AT LEAST 1 OF (a, b) AND NOT AT LEAST 2 OF (a, b)
    """
    return threshold("exactly", count, expressions)


def exists(array: "str | Column", body: "Callable[[Column], Expression | Column]") -> "Column":
    """The body is true for some element of an array. If the elements are records, use their fields.

    >>> print(exists("items", lambda i: (i["price"] > 5) & (i["sku"] == "A")))
    exists(items, i -> i.price > 5 AND i.sku = 'A')
    """
    return _quantified("exists", array, body)


def forall(array: "str | Column", body: "Callable[[Column], Expression | Column]") -> "Column":
    """The body is true for all elements of an array. True for an empty array.

    >>> print(forall("tags", lambda t: t.startswith("a")))
    forall(tags, t -> startswith(t, 'a'))
    """
    return _quantified("forall", array, body)


def any_of(array: "str | Column", body: "Callable[[Column], Expression | Column]") -> "Column":
    """Like `exists`, but a value that is not an array counts as an array of one element.

    >>> print(any_of("tags", lambda t: t == "new"))
    any(tags, t -> t = 'new')
    """
    return _quantified("any", array, body)


def all_strings() -> "Column":
    """All strings of the event, at any depth: an array that only quantifiers accept.

    >>> print(any_of(all_strings(), lambda s: s.ilike("%mimikatz%")))
    any(all_strings(), s -> s ILIKE '%mimikatz%')
    """
    return Column._of(Term.strings())


ALL_STRINGS = Term.strings().name
"""What `Expression.attributes` and `Index.attributes` call it."""


def within_distance(
    lat: "str | Column", lon: "str | Column", centre_lat: float, centre_lon: float, metres: float
) -> "Column":
    """The point at this latitude and longitude (in degrees) is within this many metres of another.

    >>> print(within_distance("lat", "lon", 52.52, 13.4, 1500))
    within_distance(lat, lon, 52.52, 13.4, 1500)
    """
    return _within("within_distance", lat, lon, centre_lat, centre_lon, metres)


def within_polygon(lat: "str | Column", lon: "str | Column", wkt: str) -> "Column":
    """The point at this latitude and longitude (in degrees) is in a polygon.

    >>> print(within_polygon("lat", "lon", "POLYGON((0 0, 2 0, 0 2, 0 0))"))
    within_polygon(lat, lon, 'POLYGON((0 0, 2 0, 0 2, 0 0))')
    """
    return _within("within_polygon", lat, lon, wkt)


def current_timestamp() -> "Column":
    """The moment of the query: its `now`, or else the current time.

    >>> from datetime import timedelta
    >>> print(col("seen") > current_timestamp() - timedelta(days=7))
    seen > current_timestamp() - INTERVAL 7 DAY
    """
    return Column._of(Term.now())


def current_date() -> "Column":
    """The first moment of the day of the query, in UTC.

    >>> print(col("due") < current_date())
    due < date_trunc('DAY', current_timestamp())
    """
    return call("date_trunc", "DAY", current_timestamp())


def col(name: str) -> "Column":
    """Name an attribute, to test it. A dotted name is a field of a nested record.

    >>> print((col("age") > 30) & (col("address.city") == "Geneva"))
    age > 30 AND address.city = 'Geneva'
    """
    return Column(name)


class Column:
    """An attribute, not yet tested. Made by `col`.

    >>> print(col("address")["city"].startswith("G") | col("age").is_null())
    startswith(address.city, 'G') OR age IS NULL
    """

    __slots__ = ("_term",)
    __hash__ = None  # type: ignore[assignment]  # `==` makes a predicate, so a column cannot be a key

    def __init__(self, name: str) -> None:
        """Name the attribute by its dotted path."""
        if not isinstance(name, str) or not name:
            raise ExpressionError(f"an attribute has a string for a name, not {name!r}")
        self._term = Term.attribute(name)

    @property
    def name(self) -> str:
        """The name of the attribute, or the text of the computed term, as weights and dimensions use it."""
        return self._term.name

    def __getitem__(self, field: str) -> "Column":
        """The field of a nested record: `col("a")["b"]` is `col("a.b")`."""
        if self._term.is_computed:
            raise ExpressionError(
                f"{self.name} is computed and has no fields", hint="name the field of an attribute"
            )
        return Column(f"{self.name}.{field}")

    def __str__(self) -> str:
        """The text of the term."""
        return str(self._term)

    def __repr__(self) -> str:
        """The call that creates it."""
        return f"tamis.term({self.name!r})" if self._term.is_computed else f"col({self.name!r})"

    # --- comparisons -----------------------------------------------------------------------------

    def __eq__(self, value: object) -> Expression:  # type: ignore[override]
        """Equal. Comparing with `None` is undefined for every event: use `is_null` instead."""
        return self._test("=", value)

    def __ne__(self, value: object) -> Expression:  # type: ignore[override]
        """Not equal; undefined if the attribute is absent."""
        return self._test("=", value, negated=True)

    def __lt__(self, value: object) -> Expression:
        """Less."""
        return self._test("<", value)

    def __le__(self, value: object) -> Expression:
        """Less or equal."""
        return self._test("<=", value)

    def __gt__(self, value: object) -> Expression:
        """Greater."""
        return self._test(">", value)

    def __ge__(self, value: object) -> Expression:
        """Greater or equal."""
        return self._test(">=", value)

    def eq_null_safe(self, value: object) -> Expression:
        """Equal; an absent attribute equals `None` and nothing else.

        >>> print(col("age").eq_null_safe(None))
        age <=> NULL
        """
        return self._test("<=>", value)

    def between(self, low: object, high: object) -> Expression:
        """Between two values, both included.

        >>> print(col("age").between(22, 36))
        age BETWEEN 22 AND 36
        """
        return self._test("BETWEEN", low, high)

    def isin(self, *values: Any) -> Expression:
        """One of a set of values, given as a list or one by one.

        >>> print(col("country").isin(["US", "CA"]))
        country IN ('CA', 'US')
        >>> col("country").isin("US", "CA") == col("country").isin({"CA", "US"})
        True
        """
        return self._test("IN", *_members(values))

    def is_null(self) -> Expression:
        """Absent, or null, which is the same.

        >>> print(col("age").is_null())
        age IS NULL
        """
        return self._test("IS NULL")

    def is_not_null(self) -> Expression:
        """Present.

        >>> print(col("age").is_not_null())
        age IS NOT NULL
        """
        return self._test("IS NULL", negated=True)

    def is_true(self) -> Expression:
        """The boolean attribute is true. False, not undefined, if it is absent or not a boolean.

        >>> print(col("vip").is_true())
        vip IS TRUE
        """
        return self.__tamis_expression__().is_true()

    def is_false(self) -> Expression:
        """The boolean attribute is false, and not absent.

        >>> print(col("vip").is_false())
        vip IS FALSE
        """
        return self.__tamis_expression__().is_false()

    def is_unknown(self) -> Expression:
        """The boolean attribute is absent or not a boolean.

        >>> print(col("vip").is_unknown())
        vip IS UNKNOWN
        """
        return self.__tamis_expression__().is_unknown()

    # --- strings ---------------------------------------------------------------------------------

    def like(self, pattern: str) -> Expression:
        r"""Match a pattern: `%` is any text, `_` any one character, `\` escapes the next one.

        >>> print(col("name").like("A%"))
        name LIKE 'A%'
        """
        return self._test("LIKE", pattern)

    def ilike(self, pattern: str) -> Expression:
        """Match a pattern, ignoring case.

        >>> print(col("name").ilike("a%"))
        name ILIKE 'a%'
        """
        return self._test("ILIKE", pattern)

    def rlike(self, pattern: str) -> Expression:
        """Contain a match of a regular expression, found in linear time.

        >>> print(col("name").rlike("^A[dn]"))
        name RLIKE '^A[dn]'
        """
        return self._test("RLIKE", pattern)

    def startswith(self, part: str) -> Expression:
        """Start with a string.

        >>> print(col("name").startswith("A"))
        startswith(name, 'A')
        """
        return self._test("startswith", part)

    def endswith(self, part: str) -> Expression:
        """End with a string.

        >>> print(col("name").endswith("a"))
        endswith(name, 'a')
        """
        return self._test("endswith", part)

    def contains(self, part: str) -> Expression:
        """Contain a string.

        >>> print(col("name").contains("d"))
        contains(name, 'd')
        """
        return self._test("contains", part)

    # --- documents -------------------------------------------------------------------------------

    def xpath(self, path: str, namespaces: Mapping[str, str] | None = None) -> Expression:
        """Be an XML document in which a path selects something.

        `namespaces` maps the prefixes in the path to URIs.

        >>> print(col("doc").xpath("/news//item[price > 5]/title"))
        xpath(doc, '/news//item[price > 5]/title')
        >>> print(col("doc").xpath("/n:news", {"n": "urn:news"}))
        xpath(doc, '/Q{urn:news}news')
        """
        declared = "".join(
            f'declare namespace {prefix} = "{uri}"; ' for prefix, uri in (namespaces or {}).items()
        )
        return self._test("xpath", declared + path)

    # --- arrays ----------------------------------------------------------------------------------

    def array_contains(self, value: object) -> Expression:
        """Be an array that holds a value.

        >>> print(col("tags").array_contains("new"))
        array_contains(tags, 'new')
        """
        return self._test("array_contains", value)

    def arrays_overlap(self, *values: Any) -> Expression:
        """Be an array that holds at least one of these values, given as a list or one by one.

        >>> print(col("tags").arrays_overlap(["new", "hot"]))
        arrays_overlap(tags, ARRAY('hot', 'new'))
        """
        return self._test("arrays_overlap", *_members(values))

    # --- a boolean attribute on its own ----------------------------------------------------------

    def __tamis_expression__(self) -> Expression:
        """The column as an expression: true if the attribute is true."""
        return self._test("truth")

    def __invert__(self) -> Expression:
        """False if the attribute is true."""
        return ~self.__tamis_expression__()

    def __and__(self, other: "Expression | Column") -> Expression:
        """Both are true."""
        return self.__tamis_expression__() & other

    def __or__(self, other: "Expression | Column") -> Expression:
        """At least one is true."""
        return self.__tamis_expression__() | other

    def __xor__(self, other: "Expression | Column") -> Expression:
        """One is true and one is false."""
        return self.__tamis_expression__() ^ other

    def __rand__(self, other: object) -> NoReturn:
        """Refuse a value on the left: & binds more tightly than a comparison."""
        raise _needs_parentheses(other)

    def __ror__(self, other: object) -> NoReturn:
        """Refuse a value on the left: | binds more tightly than a comparison."""
        raise _needs_parentheses(other)

    def __rxor__(self, other: object) -> NoReturn:
        """Refuse a value on the left: ^ binds more tightly than a comparison."""
        raise _needs_parentheses(other)

    def xnor(self, other: "Expression | Column") -> Expression:
        """Both are true or both are false.

        >>> print(col("a").xnor(col("b")))
        a XNOR b
        """
        return self.__tamis_expression__().xnor(other)

    def boost(self, weight: float) -> Expression:
        """The boolean attribute as a predicate with a weight.

        >>> print(col("premium").boost(0.4))
        (premium)^0.4
        """
        return self.__tamis_expression__().boost(weight)

    def __bool__(self) -> NoReturn:
        """Refuse `and`, `or`, `not` and `if`."""
        raise TypeError(
            "a column is true or false only for an event; "
            "join expressions with &, | and ~, not with and, or and not"
        )

    def __contains__(self, value: object) -> NoReturn:
        """Refuse `in`, which Python makes True or False."""
        raise TypeError(
            f"a column is tested by its methods, not by `in`: {self!r}.isin(...) is one of several values, "
            f"{self!r}.contains({value!r}) a part of a text, "
            f"{self!r}.array_contains({value!r}) an element of an array"
        )

    # --- computed terms --------------------------------------------------------------------------

    def __add__(self, other: object) -> "Column":
        """The sum of two numbers, or a timestamp with a `timedelta` added."""
        return self._later(other) if isinstance(other, timedelta) else call("+", self, other)

    def __radd__(self, other: object) -> "Column":
        """The sum of two numbers, or a timestamp with a `timedelta` added."""
        return self._later(other) if isinstance(other, timedelta) else call("+", other, self)

    def __sub__(self, other: object) -> "Column":
        """The difference of two numbers or timestamps, or a timestamp that is earlier by a `timedelta`.

        >>> from datetime import timedelta
        >>> print(col("finished") - col("started") > timedelta(minutes=5))
        timestampdiff(MICROSECOND, started, finished) > 300000000
        """
        return self._later(-other) if isinstance(other, timedelta) else call("-", self, other)

    def __rsub__(self, other: object) -> "Column":
        """The difference of two numbers."""
        return call("-", other, self)

    def __mul__(self, other: object) -> "Column":
        """The product of two numbers.

        >>> print(col("price") * col("quantity") > 1000)
        price * quantity > 1000
        """
        return call("*", self, other)

    def __rmul__(self, other: object) -> "Column":
        """The product of two numbers."""
        return call("*", other, self)

    def __truediv__(self, other: object) -> "Column":
        """The quotient of two numbers, always a float; undefined for a divisor of zero."""
        return call("/", self, other)

    def __rtruediv__(self, other: object) -> "Column":
        """The quotient of two numbers."""
        return call("/", other, self)

    def __mod__(self, other: object) -> "Column":
        """The remainder of a division, with the sign of the dividend."""
        return call("%", self, other)

    def __rmod__(self, other: object) -> "Column":
        """The remainder of a division."""
        return call("%", other, self)

    def __neg__(self) -> "Column":
        """The number with the other sign."""
        return call("-", 0, self)

    def __abs__(self) -> "Column":
        """The number without its sign."""
        return call("abs", self)

    def lower(self) -> "Column":
        """The string in lower case.

        >>> print(col("name").lower() == "ada")
        lower(name) = 'ada'
        """
        return call("lower", self)

    def upper(self) -> "Column":
        """The string in upper case.

        >>> print(col("code").upper().isin("A", "B"))
        upper(code) IN ('A', 'B')
        """
        return call("upper", self)

    def length(self) -> "Column":
        """The number of characters of a string.

        >>> print(col("name").length() > 20)
        length(name) > 20
        """
        return call("length", self)

    def cast(self, to: str) -> "Column":
        """The value as another type: bool, int, float, string or timestamp. Undefined if that fails.

        >>> print(col("age").cast("int") > 30)
        CAST(age AS int) > 30
        """
        return Column._of(Term.parse(f"CAST({self._term} AS {to})"))

    # --- the other names that users know ---------------------------------------------------------

    isNull = is_null  # noqa: N815 - PySpark
    isNotNull = is_not_null  # noqa: N815
    eqNullSafe = eq_null_safe  # noqa: N815
    is_in = isin  # Polars
    is_between = between

    def _later(self, length: timedelta) -> "Column":
        return call("+ micros", self, length // timedelta(microseconds=1))

    def _test(self, operator: str, *operands: object, negated: bool = False) -> Expression:
        micros = [one // timedelta(microseconds=1) for one in operands if isinstance(one, timedelta)]
        if micros and len(micros) == len(operands):
            return predicate(self._term.as_micros(), operator, micros, negated)
        for operand in operands:
            if isinstance(operand, Column) and operator in COMPARISONS:
                return predicate(call(operator, self, operand)._term, "truth", [], negated)
            if isinstance(operand, Column | Expression):
                raise ExpressionError(
                    f"{self!r} is tested with {operand!r}, but {operator} takes values only",
                    hint="columns are compared with columns by ==, !=, <, <=, >, >= and eq_null_safe",
                )
        return predicate(self._term, operator, list(operands), negated)

    @staticmethod
    def _of(term: Term) -> "Column":
        column = Column.__new__(Column)
        column._term = term
        return column


COMPARISONS = frozenset({"=", "<", "<=", ">", ">=", "<=>"})


def term(text: str) -> Column:
    """Parse a computed term, to test it.

    >>> print(term("hour(from_utc_timestamp(ts, 'Europe/Berlin'))").between(8, 18))
    hour(from_utc_timestamp(ts, 'Europe/Berlin')) BETWEEN 8 AND 18
    """
    return Column._of(Term.parse(text))


def call(function: str, *arguments: object) -> Column:
    """Apply a function to columns and values, to test the result.

    >>> print(call("coalesce", col("nickname"), col("name")) == "Ada")
    coalesce(nickname, name) = 'Ada'
    """
    given = [argument._term if isinstance(argument, Column) else argument for argument in arguments]
    return Column._of(Term.computed(function, given))


def _within(function: str, lat: "str | Column", lon: "str | Column", *operands: object) -> Column:
    coordinates = [col(one) if isinstance(one, str) else one for one in (lat, lon)]
    return Column._of(Term.place(function, [*(one._term for one in coordinates), *operands]))


def _quantified(
    quantifier: str, array: "str | Column", body: "Callable[[Column], Expression | Column]"
) -> Column:
    name = array if isinstance(array, str) else array.name
    if not isinstance(array, str) and array._term.is_computed:
        raise ExpressionError(f"{array!r} is computed: a quantifier takes an attribute that holds an array")
    variable = body.__code__.co_varnames[0] if hasattr(body, "__code__") else "element"
    return Column._of(quantified(quantifier, name, variable, body(Column(variable))))


def _needs_parentheses(other: object) -> TypeError:
    return TypeError(
        f"expected an expression, not {type(other).__name__}; put each comparison next to &, | and ^ in "
        "parentheses: (col('x') > 1) & (col('y') < 2)"
    )


def _members(values: tuple[Any, ...]) -> Iterable[Any]:
    if len(values) == 1 and isinstance(values[0], Iterable) and not isinstance(values[0], str | bytes):
        return values[0]
    return values
