"""Finds the known name closest to a mistyped one, and words the suggestion.

For the keywords of the language, which are few and short, the kernel counts typing errors (`suggest.rs`).
Names of columns, files and formats are longer and are also confused as a whole (`parkett` for `parquet`), so
here `difflib` measures similarity.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

SIMILAR = 0.6
"""How similar a name must be to be suggested in an error. A wrong guess does no harm there."""

MISSPELT = 0.8
"""How similar it must be to be worth a warning by itself: names that differ may both be right."""


def closest(word: str, known: Iterable[str], *, similarity: float = SIMILAR) -> str | None:
    """The known name most similar to `word`, if one is similar enough to be meant.

    >>> closest("contry", ["age", "country"])
    'country'
    >>> closest("zip", ["age", "country"]) is None
    True
    """
    found = get_close_matches(word, list(known), n=1, cutoff=similarity)
    return found[0] if found else None


def did_you_mean(name: str) -> str:
    """The words around a name that was probably meant.

    >>> did_you_mean("country")
    'did you mean `country`?'
    """
    return f"did you mean `{name}`?"


_MEANT = {"n": "k", "limit": "k", "size": "k", "key": "score", "sort": "score", "filter": "tags"}
"""Keywords of other libraries, and what they are called here."""


def unexpected(method: str, given: Iterable[str], function: Callable[..., Any]) -> TypeError:
    """The error for a keyword that a method of `tamis.Index` does not take.

    >>> def top_k(event, k=10, *, tags=None, **unknown): ...
    >>> unexpected("top_k", {"n": 3}, top_k)
    TypeError("Index.top_k() got an unexpected keyword argument 'n'; did you mean `k`?")
    """
    word = next(iter(given))
    code = function.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    meant = _MEANT.get(word)
    hint = did_you_mean(meant) if meant in known else suggestion(word, known)
    hint = hint or f"the keywords are {', '.join(known)}"
    return TypeError(f"Index.{method}() got an unexpected keyword argument {word!r}; {hint}")


def suggestion(word: str, known: Iterable[str], *, similarity: float = SIMILAR) -> str | None:
    """The sentence that offers the known name most similar to `word`, if one is similar.

    >>> suggestion("expresion", ["id", "expression"])
    'did you mean `expression`?'
    >>> suggestion("zip", ["id", "expression"]) is None
    True
    """
    meant = closest(word, known, similarity=similarity)
    return None if meant is None else did_you_mean(meant)
