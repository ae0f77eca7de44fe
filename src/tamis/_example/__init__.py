"""Searches for an event that an expression matches. The result is always checked with the expression itself.

`ways.py` says which predicates could be true together, `values.py` which values satisfy one of them,
`inverse.py` which attributes give a computed term such a value (`term_text.py` parses terms), `texts.py` and
`documents.py` write texts for regular expressions and documents for XPaths, and `search.py` builds the event.
If the search finds none, there may still be one.
"""

from tamis._example.search import example

__all__ = ["example"]
