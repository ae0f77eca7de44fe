"""An event that an expression matches: searched for, and always judged by the expression itself.

`ways.py` says which predicates could be true together, `values.py` which values satisfy one of them,
`inverse.py` which attributes give a computed term such a value (`term_text.py` reads terms), `texts.py` and
`documents.py` write texts for regular expressions and documents for XPaths, and `search.py` puts an event
together. Where the search ends without one, nothing is said about whether there is one.
"""

from tamis._example.search import example

__all__ = ["example"]
