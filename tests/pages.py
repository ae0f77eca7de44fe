"""Pages that `tamis.chart_page` writes, read back: what they would load, and the charts inside."""

import json
from html.parser import HTMLParser
from typing import Any


class Page(HTMLParser):
    """Tags, whatever would be loaded from elsewhere, and the texts of script elements by id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.scripts: dict[str, str] = {}
        self._script: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag == "script":
            self._script = dict(attrs).get("id") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data

    @property
    def charts(self) -> list[dict[str, Any]]:
        """The specifications of the charts."""
        found: list[dict[str, Any]] = json.loads(self.scripts["charts"])
        return found


def axes(specification: dict[str, Any]) -> list[dict[str, Any]]:
    """The x and y encodings of a chart and its layers that have a title."""
    layers = [specification, *specification.get("layer", ())]
    encodings = [layer.get("encoding", {}) for layer in layers]
    return [
        encoding[side] for encoding in encodings for side in ("x", "y") if "title" in encoding.get(side, {})
    ]
