"""A routing entry: an expression that came from somewhere, with its id, type and distance."""

from dataclasses import dataclass

from tamis._kernel import Expression


@dataclass(frozen=True, slots=True)
class Entry:
    """A subscription or an advertisement as a broker knows it.

    >>> import tamis
    >>> Entry("b1/ann/s1", tamis.parse("x > 1"), None, hops=1).id
    'b1/ann/s1'
    """

    id: str
    expression: Expression
    type: str | None
    hops: int = 0
