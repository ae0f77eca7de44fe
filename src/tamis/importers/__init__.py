"""Converts rules of other engines to expressions, and reports what is carried over, what is not, and why.

One module per format. Each has `NOT_CARRIED_OVER`, the exact list of what it refuses, `convert` for one rule
and `read` for many, which returns a `Report`.

>>> from tamis.importers import event_patterns
>>> report = event_patterns.read({"new-order": {"type": ["order"], "total": [{"numeric": [">", 100]}]}})
>>> [str(rule.expression) for rule in report]
["(type = 'order' OR array_contains(type, 'order')) AND total > 100"]
"""

from tamis.importers.report import ImportedRule, NotCarriedOverError, Report

__all__ = ["ImportedRule", "NotCarriedOverError", "Report"]
