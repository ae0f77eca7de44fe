"""A page about rules and what they matched: hit rates, dead rules, duplicates, and what a change would do."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis._extras import missing_extra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tamis.chart_page import Chart

SHOWN = 50
"""Rows of a table on the page."""

BARS = 20


def write_rules_report(
    path: str | os.PathLike[str],
    tested: "DataFrame",
    *,
    related: "DataFrame | None" = None,
    changes: "DataFrame | None" = None,
    micro_batches: Sequence[Mapping[str, object]] | None = None,
    title: str = "Rules and what they matched",
) -> Path:
    """Write an HTML page of the results of `backtest`, `related_rules` and `diff`; returns its path.

    `micro_batches` adds a table of the counts of a pipeline's micro-batches, one row each; rows may have
    different columns. The page loads nothing from elsewhere. Charts need the extra `charts`.

    >>> import tempfile
    >>> from pyspark.sql import SparkSession
    >>> import tamis.spark
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1"), ("b", "x > 9")], "id string, expression string")
    >>> events = spark.createDataFrame([(1, 3), (2, 0)], "event_id int, x int")
    >>> page = write_rules_report(tempfile.mkdtemp() + "/rules.html", tamis.spark.backtest(rules, events))
    >>> "never matched" in page.read_text()
    True
    """
    try:
        from tamis.chart_page import page, table, tiles  # noqa: PLC0415 - an extra
    except ImportError as missing:
        raise ImportError(missing_extra("a report on rules", "charts")) from missing

    best = tested.orderBy("matches", ascending=False).limit(SHOWN).collect()
    dead = tested.where("dead").orderBy("subscription")
    counts = tested.selectExpr(
        "count(*) AS rules", "sum(matches) AS matches", "count_if(dead) AS dead"
    ).first()
    assert counts is not None  # an aggregate has a row
    sections: list[str | Chart] = [
        tiles(
            {
                "rules": f"{counts['rules']:,}",
                "matches": f"{counts['matches'] or 0:,}",
                "rules that never matched": f"{counts['dead']:,}",
            }
        ),
        "<h2>Which rules match most?</h2>",
    ]
    shown = [(str(row["subscription"]), row["matches"], row["expression"]) for row in best if row["matches"]]
    if shown:
        sections.append(_bars(shown[:BARS], "matches"))
    sections.append(
        table(
            ["rule", "matches", "matches per event", "expression"],
            [
                (id, f"{matches:,}", f"{row['rate']:.4g}", text)
                for (id, matches, text), row in zip(shown, best, strict=False)
            ],
            text=("expression",),
        )
    )
    sections += _listed("Rules that never matched", dead, ["subscription", "expression"], table)
    if related is not None:
        columns = ["subscription", "relation", "other", "expression", "other_expression"]
        sections += _listed("Rules that another rule makes superfluous", related, columns, table)
    if changes is not None:
        columns = ["subscription", "change", "gained", "lost", "before", "after"]
        sections += _listed("What the change does", changes.orderBy("subscription"), columns, table)
    if micro_batches is not None:
        sections += _counted(micro_batches, table)
    target = Path(path)
    target.write_text(page(title, sections))
    return target


def _listed(title: str, frame: "DataFrame", columns: Sequence[str], table: Any) -> list[str]:
    rows = frame.select(*columns).limit(SHOWN + 1).collect()
    heading = f"<h2>{title}</h2>"
    if not rows:
        return [heading, "<p>None.</p>"]
    shown = [["" if cell is None else cell for cell in row] for row in rows[:SHOWN]]
    more = [f"<p>The first {SHOWN}; there are more.</p>"] if len(rows) > SHOWN else []
    return [heading, table(list(columns), shown, text=columns), *more]


def _counted(micro_batches: Sequence[Mapping[str, object]], table: Any) -> list[str]:
    """The latest micro-batches; a cell is empty where one does not count such a thing."""
    heading = "<h2>What each micro-batch counted</h2>"
    if not micro_batches:
        return [heading, "<p>Nothing.</p>"]
    columns = list(dict.fromkeys(name for row in micro_batches for name in row))
    shown = micro_batches[-SHOWN:]
    more = [f"<p>The latest {SHOWN}; there were more.</p>"] if len(micro_batches) > SHOWN else []
    cells = [[_cell(row.get(name)) for name in columns] for row in shown]
    return [heading, table([name.replace("_", " ") for name in columns], cells), *more]


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)


def _bars(rows: Sequence[tuple[str, int, str]], name: str) -> "Chart":
    import altair as alt  # noqa: PLC0415 - an extra

    data = alt.InlineData(values=[{"rule": id, name: value, "expression": text} for id, value, text in rows])
    chart: Chart = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X(f"{name}:Q", title=name, axis=alt.Axis(format=",d", tickMinStep=1)),
            y=alt.Y("rule:N", sort="-x", title="rule"),
            tooltip=["rule:N", f"{name}:Q", "expression:N"],
        )
    )
    return chart
