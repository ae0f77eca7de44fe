"""The shared plan of a flow, as text and as a drawing."""

import html
import json
from dataclasses import dataclass
from typing import Any

MOST_NODES = 60
"""How many nodes are shown; those with the most queries come first."""

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 250, 46, 60, 14, 12
_LETTERS = 38
_COLOURS = {
    "stream": "#4c78a8",
    "index": "#72b7b2",
    "window": "#eeca3b",
    "steps": "#ff9d6f",
    "sequence": "#f58518",
    "join": "#b279a2",
}


@dataclass(frozen=True)
class Node:
    """One node of a plan, with how many queries use it and what it holds."""

    id: str
    kind: str
    label: str
    queries: int
    rows: int | None = None
    bytes: int | None = None
    keys: int | None = None

    @property
    def facts(self) -> str:
        """A short description.

        >>> Node("a", "window", "ROWS 5", 1, rows=3, bytes=1200).facts
        '1 query; 3 rows, 1,200 bytes'
        """
        facts = f"{self.queries:,} {'query' if self.queries == 1 else 'queries'}"
        return facts if self.rows is None else f"{facts}; {self.rows:,} rows, {self.bytes or 0:,} bytes"


@dataclass(frozen=True)
class Plan:
    """What feeds what in a flow.

    >>> import tamis
    >>> flow = tamis.Flow()
    >>> flow.stream("a", time="ts")
    >>> flow.add("pairs", "SELECT x.k FROM a RANGE 1m AS x JOIN a ROWS 5 AS y ON x.k = y.k")
    >>> print(flow.plan())
    stream a (1 query)
      RANGE INTERVAL 1 MINUTE (1 query; 0 rows, 0 bytes)
        s0(k) = s1(k) (1 query)
      ROWS 5 (1 query; 0 rows, 0 bytes)
        s0(k) = s1(k): see above
    """

    nodes: dict[str, Node]
    edges: list[tuple[str, str]]
    left_out: int

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Parse the kernel's description, with the nodes that most queries use.

        >>> Plan.from_json('{"nodes": [], "edges": []}').nodes
        {}
        """
        described: dict[str, Any] = json.loads(text)
        nodes = {node["id"]: Node(**node) for node in described["nodes"]}
        kept = dict(nodes)
        if len(nodes) > MOST_NODES:
            small = [node for node in nodes.values() if node.kind not in ("stream", "index")]
            small.sort(key=lambda node: -node.queries)
            gone = {node.id for node in small[MOST_NODES:]}
            kept = {id: node for id, node in nodes.items() if id not in gone}
        edges = [(start, end) for start, end in described["edges"] if start in kept and end in kept]
        return cls(kept, edges, len(nodes) - len(kept))

    def __str__(self) -> str:
        """The plan as an indented tree, from the streams on."""
        lines: list[str] = []
        shown: set[str] = set()

        def show(node: Node, depth: int) -> None:
            name = f"stream {node.label}" if node.kind == "stream" else node.label
            if node.id in shown:
                if node.kind != "index":
                    lines.append(f"{'  ' * depth}{name}: see above")
                return
            shown.add(node.id)
            lines.append(f"{'  ' * depth}{name} ({node.facts})")
            for child in self._after(node):
                # Windows feed the index of rules, which stands below its stream.
                if not (node.kind == "window" and child.kind == "index"):
                    show(child, depth + 1)

        for node in self.nodes.values():
            if node.kind == "stream":
                show(node, 0)
        if self.left_out:
            lines.append(f"... and {self.left_out:,} more nodes")
        return "\n".join(lines)

    def _after(self, node: Node) -> list[Node]:
        return [self.nodes[end] for start, end in self.edges if start == node.id]

    def to_svg(self) -> str:
        """The plan as a drawing, from the streams on the left to the queries on the right.

        >>> Plan({"s": Node("s", "stream", "logins", 2)}, [], 0).to_svg().startswith("<svg")
        True
        """
        column = dict.fromkeys(self.nodes, 0)
        for _ in self.nodes:  # the longest way to each node
            for start, end in self.edges:
                column[end] = max(column[end], column[start] + 1)
        places: dict[str, tuple[int, int]] = {}
        heights: dict[int, int] = {}
        for id in self.nodes:
            row = heights.get(column[id], 0)
            heights[column[id]] = row + 1
            places[id] = (
                _MARGIN + column[id] * (_WIDTH + _GAP_X),
                _MARGIN + row * (_HEIGHT + _GAP_Y),
            )
        width = _MARGIN * 2 + (max(column.values(), default=0) + 1) * (_WIDTH + _GAP_X) - _GAP_X
        height = _MARGIN * 2 + max(heights.values(), default=0) * (_HEIGHT + _GAP_Y)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
        ]
        for start, end in self.edges:
            x1, y1 = places[start][0] + _WIDTH, places[start][1] + _HEIGHT // 2
            x2, y2 = places[end][0], places[end][1] + _HEIGHT // 2
            middle = (x1 + x2) // 2
            parts.append(
                f'<path d="M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}" fill="none" stroke="#888"/>'
            )
        for id, node in self.nodes.items():
            x, y = places[id]
            short = node.label if len(node.label) <= _LETTERS else node.label[: _LETTERS - 1] + "…"
            parts.append(
                f"<g><title>{html.escape(node.label)}</title>"
                f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="#fff" '
                f'stroke="{_COLOURS.get(node.kind, "#888")}" stroke-width="2"/>'
                f'<text x="{x + 8}" y="{y + 19}" fill="#222">{html.escape(short)}</text>'
                f'<text x="{x + 8}" y="{y + 36}" fill="#666">{html.escape(node.facts)}</text></g>'
            )
        return "".join([*parts, "</svg>"])

    def _repr_svg_(self) -> str:
        return self.to_svg()
