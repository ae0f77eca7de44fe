"""Versioned rules without Spark: the files of a version, where they are, and who still needs them.

>>> import tempfile
>>> import tamis.store
>>> store = tamis.store.RuleStore(tempfile.mkdtemp())
>>> store.replace_all([{"id": "ad-7", "expression": "age BETWEEN 22 AND 36"}])
1
>>> store.open().match({"age": 27})
['ad-7']
"""

from tamis.store.apply_changes import Applied
from tamis.store.rule_store import RuleStore

__all__ = ["Applied", "RuleStore"]
