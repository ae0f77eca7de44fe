"""The elements of arrays: other engines reach them with the path of a field, expressions with a quantifier.

`{"items": [{"price": 5}]}` has a field `items.price` in Event Ruler and in Elasticsearch; here it is
`exists(items, element -> element.price = 5)`. A rule does not say which of its fields are in arrays, and a
quantifier costs more than a plain test. So the caller names the attributes that hold arrays, of values or of
records. The quantifiers for those also work if an event has a single value or record. For other attributes,
importers write plain tests, and the rule has notes on what an array would change.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from tamis.importers import forms
from tamis.importers.forms import Term
from tamis.importers.two_valued import Form


@dataclass(frozen=True)
class Scope:
    """Where a path leads to: an attribute of the event, or a field of the element that a variable stands for.

    `arrays` are the paths that hold arrays and are not looked into yet. None: it is not known which do.

    >>> Scope.of(None).term("items.price").text
    'items.price'
    >>> Scope(frozenset(), prefix="items", variable="element").term("items.price").text
    'element.price'
    """

    arrays: frozenset[str] | None = None
    prefix: str = ""
    variable: str = ""
    depth: int = 0
    entered: frozenset[str] = frozenset()
    """The arrays that are looked into, here or in an alternative for a single record."""
    notes: list[str] = field(default_factory=list, compare=False)
    """What to say of the rule, in the order in which it is read."""

    @classmethod
    def of(cls, arrays: Collection[str] | None) -> "Scope":
        """The scope of whole events.

        >>> Scope.of(["tags"]).arrays
        frozenset({'tags'})
        """
        return cls(None if arrays is None else frozenset(arrays))

    def term(self, path: str) -> Term:
        """What stands at a path.

        >>> Scope(frozenset(), prefix="items", variable="element").term("items").text
        'element'
        """
        if not self.variable:
            return forms.attribute(path)
        return forms.attribute(self.variable + path.removeprefix(self.prefix))

    def array_around(self, path: str) -> str | None:
        """The outermost array that the field at a path lies in, as far as it is not looked into yet.

        >>> Scope.of(["a.b", "a.b.c.d", "x"]).array_around("a.b.c.d.e")
        'a.b'
        """
        return next((name for name in outer(path) if name in (self.arrays or ())), None)

    def some_element(self, array: str, body: Callable[["Scope"], Form]) -> Form:
        """What is true of one element of an array, or of the record that an event has in its place.

        >>> def dear(scope: Scope) -> Form:
        ...     return forms.test(scope.term("items.price"), ">", 5)
        >>> print(forms.expression(Scope.of(["items"]).some_element("items", dear)))
        exists(items, element -> element.price > 5) OR items.price > 5
        """
        variable = self._new_variable()
        rest = None if self.arrays is None else self.arrays - {array}
        outside = replace(self, arrays=rest, entered=self.entered | {array})
        inner = replace(outside, prefix=array, variable=variable, depth=self.depth + 1)
        held = self.term(array)
        single = body(outside)
        if forms.expression(single).evaluate({}) is True:
            # It is true without any field: only a record may be tested in that way, not an array.
            no_array = forms.is_null(Term(f"size({held.text})"))
            single = forms.all_of([forms.is_not_null(held), no_array, single])
        return forms.any_of([forms.quantified("exists", held, variable, body(inner)), single])

    def some_value(
        self,
        path: str,
        body: Callable[[Term], Form],
        of_unnamed: Callable[[Term], Form] | None = None,
        of_array: Callable[[Term], Form] | None = None,
    ) -> Form:
        """What is true of one of the values at a path: in all arrays around it, and in the array it holds.

        `of_unnamed` is used instead of `body` where the path is not named as an array; `of_array` where it
        is, if that is no test of single elements.

        >>> def dear(term: Term) -> Form:
        ...     return forms.test(term, ">", 5)
        >>> print(forms.expression(Scope.of(["prices"]).some_value("prices", dear)))
        any(prices, element -> element > 5)
        >>> print(forms.expression(Scope.of([]).some_value("prices", dear)))
        prices > 5
        """
        around = self.array_around(path)
        if around is not None:
            return self.some_element(around, lambda scope: scope.some_value(path, body, of_unnamed, of_array))
        self._note_records(path)
        if path not in (self.arrays or ()):
            return (of_unnamed or body)(self.term(path))
        if of_array is not None:
            return of_array(self.term(path))
        variable = self._new_variable()
        return forms.quantified("any", self.term(path), variable, body(forms.attribute(variable)))

    def note_one_value(self, path: str, kind: str) -> None:
        """Say that a test looks at single values, where it is not known whether there are more.

        >>> scope = Scope.of(None)
        >>> scope.note_one_value("n", "range")
        >>> scope.notes
        ['n: range tests one value: where there is an array, its elements are not looked at']
        """
        if self.arrays is None:
            self.notes.append(
                f"{path}: {kind} tests one value: where there is an array, its elements are not looked at"
            )

    def _new_variable(self) -> str:
        return "element" if not self.depth else f"element{self.depth + 1}"

    def _note_records(self, path: str) -> None:
        if self.arrays is not None:
            return
        records = [name for name in outer(path) if name not in self.entered]
        if records:
            either = f"{', '.join(records[:-1])} or {records[-1]}" if records[1:] else records[0]
            self.notes.append(f"{path}: not reached where an event has an array of records at {either}")


def outer(path: str) -> list[str]:
    """The records that a field lies in, from the outside.

    >>> outer("a.b.c")
    ['a', 'a.b']
    """
    parts = path.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]
