"""HTML for notebooks: indexes, answers and explanations, with expressions drawn as trees.

Nothing here needs a notebook: these functions turn objects into text, and `_repr_html_` of the objects calls
them. All user input (names, values, ids, tags) passes through `_text`, so that it can neither become markup
nor hide itself. The drawing is readable on white and on black: words have the colour of the page, and a mark
and the outline of a node show its truth in addition to its colour.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from tamis.errors import SnapshotError
from tamis.explain import MARKS, Explanation, Truth, WhyNot

if TYPE_CHECKING:
    from tamis.index import Index, Match

COLOURS: dict[Truth, str] = {
    "true": "#2a9d4a",
    "false": "#d9534f",
    "undefined": "#b8860b",
    "either": "#2f8fbf",
}

MOST_NODES = 200
"""Of a larger tree, the rest is counted."""
MOST_ROWS = 100
MOST_SORTED = 100_000
"""From how many subscriptions on listing the first few takes too long for a look at an index."""
WIDEST = 64
"""Characters of a label; its tooltip has more of them."""
LONGEST = 1000
"""Characters of a tooltip, a line or a cell."""

# Of a monospaced font, in pixels.
_SIZE, _CHARACTER, _ROW, _BOX = 12, 7.3, 30, 22
_GAP = 28

# What turns the direction of a line, and so could make one text look like another.
_DIRECTIONS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


def of_explanation(explanation: Explanation) -> str:
    """The verdict, what else decides, and a drawing of the expression.

    >>> html = of_explanation(Explanation("age >= 22", "true", "age", 27, "is 27"))
    >>> "age &gt;= 22" in html, "<svg" in html
    (True, True)
    """
    head = _verdict(explanation.verdict, good=explanation.matches)
    notes = [note.partition(": ")[2] for note in explanation._notes()]
    return _block(f"<div>{head}</div>{_list(notes)}{draw(explanation)}")


def of_why_not(why_not: WhyNot) -> str:
    """What would have to change, as a list.

    >>> "it matches" in of_why_not(WhyNot("matches"))
    True
    """
    matches = why_not.answer == "matches"
    head = _verdict("match" if matches else "no match", good=matches)
    return _block(f"<div>{head}</div>{_list(str(why_not).splitlines())}")


def of_matches(matches: Sequence["Match"]) -> str:
    """Rank, id and score, as a table.

    >>> from tamis import Match
    >>> "<td>ad-7</td>" in of_matches([Match("ad-7", 3.5, 1)])
    True
    """
    rows = [(match.rank, match.id, match.score) for match in matches[:MOST_ROWS]]
    return _block(_table(("rank", "id", "score"), rows) + _more(len(matches) - len(rows), "matches"))


def of_index(index: "Index") -> str:
    """What an index is and how much it holds, with its first subscriptions.

    >>> from tamis import Index
    >>> index = Index()
    >>> index.add("a", "age < 18")
    >>> "age &lt; 18" in of_index(index)
    True
    """
    title = f"<strong>tamis.Index</strong> with {len(index):,} subscriptions"
    facts = [f"algorithm {index.algorithm}", f"generation {index.generation:,}"]
    if index.schema is not None:
        facts.append(f"a schema of {len(index.schema):,} attributes")
    if len(index) > MOST_SORTED:
        return _block(f"<div>{title}</div><div>{_text(', '.join(facts))}</div>")
    try:
        shown = [
            (id, subscription.expression, subscription.priority, ", ".join(subscription.tags))
            for id, subscription in islice(index.items(), 5)
        ]
    except SnapshotError as error:  # it is shown, because something has to be
        return _block(f"<div>{title}</div>{_list([str(error)])}")
    table = _table(("id", "expression", "priority", "tags"), shown) if shown else ""
    more = _more(len(index) - len(shown), "subscriptions")
    return _block(f"<div>{title}</div><div>{_text(', '.join(facts))}</div>{table}{more}")


# --- the drawing ------------------------------------------------------------------------------------


@dataclass
class _Place:
    """A node with its place: the column is its depth, and every leaf has a row of its own."""

    node: Explanation
    column: int
    row: float
    children: list["_Place"]


def draw(explanation: Explanation) -> str:
    """The tree as an SVG: the root on the left, one row for each predicate.

    >>> draw(Explanation("TRUE", "true")).count("<rect")
    1
    """
    placing = _Placing()
    places = list(_walk(placing.place(explanation)))
    columns = _columns(places)
    width = max(
        columns[place.column] + _width(_label(place.node)) + _width(_seen(place.node)) for place in places
    )
    height = placing.rows * _ROW
    parts = [_lines(place, columns) + _node(place, columns) for place in places]
    size = f'width="{width + 12:.0f}" height="{height}" viewBox="-1 0 {width + 12:.0f} {height}"'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} fill="currentColor" '
        f'style="display:block;font:{_SIZE}px monospace">{"".join(parts)}</svg>'
    )
    left_out = _more(_size(explanation) - len(places), "parts of the expression")
    return f'<div style="overflow-x:auto">{svg}</div>{left_out}'


class _Placing:
    """Gives nodes their places, leaves from top to bottom as they are written."""

    def __init__(self) -> None:
        self.rows = 0
        self.nodes = 0

    def place(self, node: Explanation, column: int = 0) -> _Place:
        self.nodes += 1
        children = [self.place(child, column + 1) for child in node.children if self.nodes < MOST_NODES]
        if children:
            return _Place(node, column, (children[0].row + children[-1].row) / 2, children)
        self.rows += 1
        return _Place(node, column, self.rows - 1, [])


def _walk(place: _Place) -> Iterable[_Place]:
    yield place
    for child in place.children:
        yield from _walk(child)


def _size(node: Explanation) -> int:
    return 1 + sum(map(_size, node.children))


def _columns(places: list[_Place]) -> list[float]:
    """Where each column starts: right of the widest connective in the one before it."""
    widths = [0.0] * (1 + max(place.column for place in places))
    for place in places:
        if place.children:
            widths[place.column] = max(widths[place.column], _width(_label(place.node)))
    starts = [0.0]
    for width in widths:
        starts.append(starts[-1] + width + _GAP)
    return starts


def _lines(place: _Place, columns: list[float]) -> str:
    """From a connective to its children: right, along, right."""
    start = columns[place.column] + _width(_label(place.node))
    middle = columns[place.column + 1] - _GAP / 2
    end = columns[place.column + 1]
    path = "".join(
        f"M{start:.1f} {_middle(place)}H{middle:.1f}V{_middle(child)}H{end:.1f}" for child in place.children
    )
    return f'<path d="{path}" fill="none" stroke="currentColor" opacity="0.4"/>' if path else ""


def _node(place: _Place, columns: list[float]) -> str:
    node, x, y = place.node, columns[place.column], _middle(place)
    label, seen, colour = _label(node), _seen(node), COLOURS[node.truth]
    width = _width(label)
    dashed = ' stroke-dasharray="4 3"' if node.truth in ("undefined", "either") else ""
    title = f"{node.text}: {node.truth}" + (
        f" ({node.attribute} {node.seen})" if node.attribute is not None else ""
    )
    drawn = (
        f"<g><title>{_text(title)}</title>"
        f'<rect x="{x:.1f}" y="{y - _BOX / 2}" width="{width:.1f}" height="{_BOX}" rx="4" fill="{colour}" '
        f'fill-opacity="0.15" stroke="{colour}" stroke-width="1.5"{dashed}/>'
        f'<text x="{x + 6:.1f}" y="{y + 4}" xml:space="preserve">{_text(label)}</text>'
    )
    if seen:
        drawn += f'<text x="{x + width + 8:.1f}" y="{y + 4}" opacity="0.7">{_text(seen)}</text>'
    return drawn + "</g>"


def _middle(place: _Place) -> float:
    return place.row * _ROW + _ROW / 2


def _label(node: Explanation) -> str:
    return _short(f"{MARKS[node.truth][0]} {node.text}")


def _seen(node: Explanation) -> str:
    return "" if node.attribute is None else _short(f"{node.attribute} {node.seen}")


def _short(text: str, most: int = WIDEST) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _width(text: str) -> float:
    """About how wide a text is drawn; Chinese and the like take two places a character."""
    places = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in _visible(text))
    return places * _CHARACTER + 14


# --- HTML -------------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    """Anything as text between tags or inside an attribute, whatever it contains.

    >>> _text('<b onclick="x">')
    '&lt;b onclick=&quot;x&quot;&gt;'
    """
    return escape(_visible(_short(str(value), LONGEST)), quote=True)


def _visible(text: str) -> str:
    """The text with characters shown by number that no page may hold, or that change how others are read.

    >>> _visible("a" + chr(0x202E) + "b")
    'a\\\\u202eb'
    """
    return "".join(c if _is_shown(c) else f"\\u{ord(c):04x}" for c in text)


def _is_shown(c: str) -> bool:
    return unicodedata.category(c) not in ("Cc", "Cs", "Cn", "Zl", "Zp") and ord(c) not in _DIRECTIONS


def _block(content: str) -> str:
    return f'<div style="line-height:1.5">{content}</div>'


def _verdict(verdict: str, *, good: bool) -> str:
    truth: Truth = "true" if good else "false"
    return f'<strong style="color:{COLOURS[truth]}">{MARKS[truth][0]} {_text(verdict)}</strong>'


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f'<ul style="margin:0 0 0.5em">{items}</ul>' if items else ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{_text(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row)}</tr>" for row in rows)
    return f'<table style="color:inherit"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _more(count: int, of: str) -> str:
    return f"<div>… {count:,} more {of}</div>" if count > 0 else ""
