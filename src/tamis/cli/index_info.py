"""`tamis index info`: what an index holds and what it costs."""

from collections.abc import Iterator, Mapping
from typing import Any

from tamis.cli import options as o


def info(rules: o.RulesPath, as_json: o.AsJson = False, rules_format: o.RulesFormat = None) -> None:
    """Show the statistics of a saved index, or of the index of a file of rules."""
    import json

    from rich.console import Console
    from rich.table import Table

    from tamis.cli.rules import load_index

    statistics = load_index(rules, rules_format).stats()
    if as_json:
        print(json.dumps(statistics, default=str))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in flatten(statistics):
        table.add_row(name, f"{value:,}" if isinstance(value, int | float) else str(value))
    Console().print(table)


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
