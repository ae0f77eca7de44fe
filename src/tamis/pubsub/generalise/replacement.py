"""Predicate replacement: fewer different predicates in the routing tables, each a little more general.

A predicate may be replaced by one that covers it, under OR as well as under AND, so that expressions that
pruning cannot change become more general too (Bittner 2008, section 6.2). This helps only if a predicate then
disappears from the predicate index: all entries must replace it together, and no local subscription may use
it.

Comparisons of one attribute in one direction form a chain, `price < 12`, `price < 14`, `price < 20`; each may
be replaced by the next one in use. Replacements that let the fewest additional events pass come first: how
much more often the next predicate is true, times the number of entries that use it. This choice is ours; the
thesis designed the operation but did not implement it.
"""

import heapq
import json
from collections.abc import Iterable, Mapping
from itertools import pairwise

from tamis._kernel import Expression
from tamis.pubsub.generalise import trees
from tamis.relate import Selectivities

CHAINS = {"<": "below", "<=": "below", ">": "above", ">=": "above"}


def choose_replacements(
    entries: Iterable[Expression],
    share: float,
    *,
    kept: Iterable[Expression] = (),
    selectivities: Selectivities | None = None,
) -> dict[str, str]:
    """Which predicates of the entries give way to which, so that this share of those that can are gone.

    Predicates of `kept`, the local subscriptions, stay.

    >>> import tamis
    >>> entries = [tamis.parse(f"price < {most} OR signed") for most in (12, 14, 20)]
    >>> known = Selectivities({"price < 12": 0.5, "price < 14": 0.55, "price < 20": 0.9})
    >>> choose_replacements(entries, 0.5, selectivities=known)
    {'price < 12': 'price < 14'}
    """
    known = selectivities or Selectivities()
    uses: dict[str, int] = {}
    for expression in entries:
        for leaf in trees.leaves(trees.tree_of(expression)):
            key = json.dumps(leaf, sort_keys=True)
            uses[key] = uses.get(key, 0) + 1
    local = {
        json.dumps(leaf, sort_keys=True)
        for expression in kept
        for leaf in trees.leaves(trees.tree_of(expression))
    }
    chains = _chains(uses)
    following = {key: later for chain in chains for key, later in pairwise(chain)}
    shares = {key: known[trees.expression_of(json.loads(key))] for chain in chains for key in chain}
    queue = [
        ((shares[later] - shares[key]) * uses[key], key)
        for key, later in following.items()
        if key not in local
    ]
    heapq.heapify(queue)
    wanted = round(min(1.0, max(0.0, share)) * len(queue))
    gone = {heapq.heappop(queue)[1] for _ in range(wanted)}
    replaced = {}
    for key in gone:
        target = following[key]
        while target in gone:
            target = following[target]
        replaced[_text(key)] = _text(target)
    return dict(sorted(replaced.items()))


def replace_all(
    expressions: Mapping[str, Expression], replacements: Mapping[str, str]
) -> dict[str, Expression]:
    """The expressions that change, as they are then.

    >>> import tamis
    >>> replace_all({"s1": tamis.parse("x < 3"), "s2": tamis.parse("y = 1")}, {"x < 3": "x < 5"})
    {'s1': tamis.parse('x < 5')}
    """
    changed = {}
    for id, expression in expressions.items():
        now = expression.replace_predicates(replacements)
        if now != expression:
            changed[id] = now
    return changed


def _chains(uses: Iterable[str]) -> list[list[str]]:
    """The predicates of each attribute and direction, from the narrowest to the widest."""
    by_chain: dict[tuple[str, str], list[tuple[float, bool, str]]] = {}
    for key in uses:
        leaf = json.loads(key)
        direction = CHAINS.get(leaf.get("operator", "")) if isinstance(leaf, dict) else None
        operand = leaf["operands"][0] if direction and not leaf.get("negated") else None
        if isinstance(operand, (int, float)) and not isinstance(operand, bool):
            includes = leaf["operator"].endswith("=")
            place = operand if direction == "below" else -operand
            looked_at = leaf.get("attribute") or f"term {leaf['term']}"
            by_chain.setdefault((looked_at, str(direction)), []).append((place, includes, key))
    return [[key for _, _, key in sorted(chain)] for chain in by_chain.values() if len(chain) > 1]


def _text(key: str) -> str:
    return str(trees.expression_of(json.loads(key)))
