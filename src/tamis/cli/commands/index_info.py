"""`tamis index info`: the contents and the memory of an index."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli import options as o

if TYPE_CHECKING:
    from rich.table import Table

    from tamis import Index

SHOWN = 8
"""How many attributes and tags are listed by name."""


def info(
    rules: o.RulesPath,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show the internal structure.")
    ] = False,
    as_json: o.AsJson = False,
    *,
    rules_format: o.RulesFormat = None,
    rules_encoding: o.RulesEncoding = None,
    rules_separator: o.RulesSeparator = None,
) -> None:
    """Show the contents of a saved index, or of the index of a file of rules."""
    import json

    from rich.console import Console

    from tamis.cli.io.rules import is_snapshot, load_index

    index = load_index(rules, rules_format, encoding=rules_encoding, separator=rules_separator)
    saved = Path(rules) if is_snapshot(rules, rules_format) else None
    statistics = index.stats()
    if as_json:
        print(json.dumps(_contents(index, saved) | {"inside": statistics}, default=str))
        return
    console = Console(soft_wrap=True)
    console.print(_table(_lines(index, saved)))
    if verbose:
        console.print("\n[bold underline]inside[/]")
        console.print(_table(flatten(statistics)))


def _table(rows: Iterable[tuple[str, Any]]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows:
        table.add_row(name, Text(f"{value:,}" if isinstance(value, int | float) else str(value)))
    return table


def _contents(index: "Index", saved: Path | None) -> dict[str, Any]:
    """A summary of an index, for programs."""
    contents: dict[str, Any] = {"subscriptions": len(index)}
    if saved is not None:
        status = saved.stat()
        contents["file_bytes"] = status.st_size
        contents["saved"] = datetime.fromtimestamp(status.st_mtime).astimezone().isoformat(timespec="seconds")
    return contents | {
        "version": index.generation,
        "attributes": index.attributes,
        "tags": index.tags,
        "index_bytes": index.stats().get("index_bytes"),
    }


def _lines(index: "Index", saved: Path | None) -> Iterator[tuple[str, Any]]:
    """The same for people."""
    contents = _contents(index, saved)
    yield "subscriptions", contents["subscriptions"]
    if saved is not None:
        yield "file", f"{human_bytes(contents['file_bytes'])}, saved {contents['saved'].replace('T', ' ')}"
    yield "version", contents["version"]
    kinds = (f"{name} ({' or '.join(kinds) or 'any'})" for name, kinds in index.attributes.items())
    yield "attributes", _listed(kinds, len(index.attributes))
    most_first = sorted(index.tags.items(), key=lambda tag: (-tag[1], tag[0]))
    yield "tags", _listed((f"{tag} ({count:,})" for tag, count in most_first), len(index.tags))
    if contents["index_bytes"] is not None:
        yield "in memory", f"{human_bytes(contents['index_bytes'])} besides ids and texts"


def _listed(names: Iterable[str], count: int) -> str:
    """The first names, and the total number.

    >>> _listed(["age (number)", "name (string)"], 2), _listed([], 0)
    ('2: age (number), name (string)', 'none')
    """
    shown = [name for name, _ in zip(names, range(SHOWN), strict=False)]
    more = ", ..." if count > SHOWN else ""
    return f"{count:,}: {', '.join(shown)}{more}" if count else "none"


def human_bytes(size: float) -> str:
    """A number of bytes in readable form.

    >>> human_bytes(308), human_bytes(5_400_000)
    ('308 bytes', '5.4 MB')
    """
    if size < 1000:
        return f"{size:.0f} bytes"
    for unit in ("KB", "MB", "GB"):
        size /= 1000
        if size < 1000 or unit == "GB":
            break
    return f"{size:,.1f} {unit}"


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested statistics as dotted names.

    >>> list(flatten({"bytes": {"nodes": 8}, "subscriptions": 2}))
    [('bytes.nodes', 8), ('subscriptions', 2)]
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
