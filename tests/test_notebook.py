"""What notebooks show: complete, readable, and nothing that comes from users becomes markup."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import strategies
import tamis
from events import to_dict
from oracle import Node
from tamis import Explanation, Index, Match, notebook
from tamis._matching import Matches
from writer import to_text

TAGS = {"div", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}
DRAWN = {"svg", "g", "title", "rect", "text", "path"}
ATTRIBUTES = {
    *(
        "style",
        "xmlns",
        "role",
        "width",
        "height",
        "viewbox",
        "fill",
        "fill-opacity",
        "stroke",
        "stroke-width",
    ),
    *("stroke-dasharray", "x", "y", "rx", "d", "opacity", "xml:space"),
}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onload='alert(1)",
    "</text></svg><b>",
    "&lt;b&gt;",
    "]]><!--",
    "javascript:alert(1)",
    "\u202eevil\u202c",
    "nul\x00 bell\x07 escape\x1b[31m",
    "日本語 🦀 👩\u200d🔬",
]


class Page(HTMLParser):
    """The tags of a page, checked one by one, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.counts: dict[str, int] = {}
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in (DRAWN if "svg" in self.open else TAGS | {"svg"}), tag
        for name, value in attributes:
            assert name in ATTRIBUTES, name
            assert value is not None
            assert not set(value) & set("<>\"'&"), value
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def page(item: Any) -> Page:
    html = item._repr_html_()
    html.encode()
    return Page(html)


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_becomes_markup(hostile: str) -> None:
    index = Index()
    name = hostile.replace("`", "``")
    index.add(hostile, f"`{name}` = {quoted(hostile)} AND x > 1", tags=[hostile])
    event = {hostile: hostile, "x": hostile}
    shown = "".join(c if c.isprintable() or c == "\u200d" else f"\\u{ord(c):04x}" for c in hostile)
    explanation = index.explain(hostile, event, tags=["other"])
    for item in (index, explanation, index.why_not(hostile, event, tags=["other"])):
        assert shown in "".join(page(item).text)
    assert shown in "".join(page(index.top_k(event | {"x": 2})).text)
    [drawing] = ET.fromstring(notebook.draw(explanation))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.thorough
@given(strategies.expressions(), strategies.events(intervals=True), st.text(max_size=8))
def test_every_node_is_drawn(node: Node, event: dict[str, Any], tag: str) -> None:
    index = Index()
    index.add("a", to_text(node), tags=[tag])
    explanation = index.explain("a", to_dict(event), tags=[tag])
    assume(size(explanation) <= notebook.MOST_NODES)
    drawn = page(explanation)
    assert drawn.counts["rect"] == drawn.counts["g"] == size(explanation)
    assert drawn.counts.get("path", 0) == connectives(explanation)
    colours = notebook.draw(explanation)
    for truth in truths(explanation):
        assert notebook.COLOURS[truth] in colours


def size(node: Explanation) -> int:
    return 1 + sum(map(size, node.children))


def connectives(node: Explanation) -> int:
    return bool(node.children) + sum(map(connectives, node.children))


def truths(node: Explanation) -> set[Any]:
    return {node.truth}.union(*map(truths, node.children))


def test_nodes_do_not_overlap() -> None:
    index = Index()
    index.add("a", "x > 1 AND (y = 'ab' OR NOT (z < 3 XOR x IN (1, 2, 3)) OR w) AND s LIKE '%日本語%'")
    boxes = []
    for rect in ET.fromstring(notebook.draw(index.explain("a", {"x": 2}))).iter(
        "{http://www.w3.org/2000/svg}rect"
    ):
        x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        boxes.append((x, y, x + width, y + height))
    assert len(boxes) == 10
    for at, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[at + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_what_decides_comes_first() -> None:
    index = Index()
    index.add("a", "x > 1", tags=["red"], expires=datetime(2026, 1, 31, tzinfo=UTC))
    shown = page(index.explain("a", {"x": 2}, tags=["blue"])).text
    assert shown[0] == "✗ no match"
    assert shown[1].startswith("it expired at 2026-01-31 00:00:00 UTC")
    assert shown[2] == "its tags are `red`; needs the tag `blue`"
    assert page(index.explain("a", {"x": 2}, now=0)).text[0] == "✓ match"
    assert page(index.why_not("a", {"x": 0}, now=0)).text == ["✗ no match", "x is 0; needs to be > 1"]
    assert page(index.why_not("a", {"x": 2}, now=0)).text == ["✓ match", "it matches"]


def test_large_things_are_cut_short() -> None:
    index = Index()
    index.add("a", " OR ".join(f"x = {at}" for at in range(5000)) + f" OR s = '{'y' * 100_000}'")
    explanation = index.explain("a", {"x": 1, "s": "z" * 100_000})
    assert page(explanation).counts["rect"] == notebook.MOST_NODES
    assert "… 4,802 more parts of the expression" in page(explanation).text
    assert len(explanation._repr_html_()) < 200_000
    assert len(index._repr_html_()) < 10_000
    many = Matches(Match(at, 1.0, at) for at in range(1000))
    assert page(many).counts["tr"] == 1 + notebook.MOST_ROWS
    assert "… 900 more matches" in page(many).text


def test_deep_expressions_are_drawn() -> None:
    index = Index()
    text = "x = 0"
    for at in range(1, 120):
        text = f"({text}) {'OR' if at % 2 else 'AND'} x = {at}"
    index.add("a", text)
    assert page(index.explain("a", {"x": 3})).counts["rect"] > 120


def test_an_index_shows_its_first_subscriptions() -> None:
    index = Index(schema={"x": "int"})
    assert "with 0 subscriptions" in "".join(page(index).text)
    index.add_many(range(12), [f"x > {at}" for at in range(12)], tags=[["red"]] * 12)
    text = page(index).text
    assert "tamis.Index" in text
    assert "x > 4" in text
    assert "x > 5" not in text
    assert "… 7 more subscriptions" in text
    assert "a schema of 1 attributes" in "".join(text)


def test_an_index_whose_file_is_gone_still_shows_something(tmp_path: Path) -> None:
    index = Index()
    index.add("a", "x > 1")
    index.save(tmp_path / "rules.tamis")
    opened = Index.open(tmp_path / "rules.tamis")
    (tmp_path / "rules.tamis").write_bytes(bytes(5000))
    assert "overwritten while it was open" in "".join(page(opened).text)


def test_matches_are_a_list() -> None:
    index = Index()
    index.add("a", "x > 1", priority=2.0)
    for best in (index.top_k({"x": 2}), index.top_k({"x": 2}, score=lambda block: block.priority)):
        assert best == [Match("a", 2.0, 1)]
        assert isinstance(best, list)
        assert repr(best) == "[Match(id='a', score=2.0, rank=1)]"
        assert page(best).text == ["rank", "id", "score", "1", "a", "2.0"]


def test_the_names_of_the_package() -> None:
    code = "import sys, tamis; print(*dir(tamis)); print('tamis.index' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, is_loaded = shown.stdout.splitlines()
    assert is_loaded == "False", "looking costs no import"
    public = [name for name in names.split() if not name.startswith("__")]
    assert public == sorted(tamis.__all__)
    assert {"__version__", "__doc__"} <= set(names.split())
    assert all(hasattr(tamis, name) for name in dir(tamis))
