"""Expressions as trees of AND and OR, in their JSON form, with operations on one child and on all leaves.

Anything but AND and OR is a leaf: a predicate, or a NOT or XOR as a whole. `tree_of` pushes NOT down first.
"""

import json
from collections.abc import Iterator
from typing import Any

from tamis._kernel import Expression

Tree = Any
"""The JSON form of an expression."""

LEAF_BYTES = 5
NODE_BYTES = 2


def tree_of(expression: Expression) -> Tree:
    """The tree of an expression, without NOT above AND or OR.

    >>> import tamis
    >>> joint(tree_of(tamis.parse("NOT (a = 1 AND b = 2)")))[0]
    'or'
    """
    return flat(json.loads(expression.prune(steps=0).to_json()))


def expression_of(tree: Tree) -> Expression:
    """The expression of a tree."""
    return Expression.from_json(json.dumps(tree))


def joint(tree: Tree) -> tuple[str | None, list[Tree]]:
    """ "and" or "or" with the children; None for a leaf."""
    if isinstance(tree, dict):
        for kind in ("and", "or"):
            if kind in tree:
                return kind, tree[kind]
    return None, []


def joined(kind: str, children: list[Tree]) -> Tree:
    """AND or OR of some trees, of which one alone stands for itself."""
    return children[0] if len(children) == 1 else {kind: children}


def flat(tree: Tree) -> Tree:
    """Without operators of one child, and without AND in AND or OR in OR."""
    kind, children = joint(tree)
    if kind is None:
        return tree
    found: list[Tree] = []
    for child in map(flat, children):
        inner, grandchildren = joint(child)
        found += grandchildren if inner == kind else [child]
    return joined(kind, found)


def prunings(tree: Tree) -> Iterator[Tree]:
    """Every tree that lacks one child of one AND, not yet flat."""
    kind, children = joint(tree)
    for place, child in enumerate(children):
        before, after = children[:place], children[place + 1 :]
        if kind == "and":
            yield {kind: [*before, *after]}
        for inner in prunings(child):
            yield {kind: [*before, inner, *after]}


def leaves(tree: Tree) -> Iterator[Tree]:
    """All leaves, repeated ones included."""
    kind, children = joint(tree)
    if kind is None:
        yield tree
    for child in children:
        yield from leaves(child)


def bytes_of(tree: Tree) -> int:
    """What a tree takes: 5 bytes for a predicate, 2 for an AND or OR."""
    kind, children = joint(tree)
    return LEAF_BYTES if kind is None else NODE_BYTES + sum(map(bytes_of, children))


def least_true(tree: Tree) -> int:
    """How many leaves must be true at least for the tree to be.

    >>> import tamis
    >>> least_true(tree_of(tamis.parse("a = 1 AND (b = 2 OR c = 3 AND d = 4)")))
    2
    """
    kind, children = joint(tree)
    if kind is None:
        return 1
    return (sum if kind == "and" else min)(least_true(child) for child in children)
