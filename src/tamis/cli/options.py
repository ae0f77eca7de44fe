"""Arguments and options that several commands share, spelt and explained once."""

from pathlib import Path
from typing import Annotated

import typer

from tamis.cli.io.inputs import Format

RulesPath = Annotated[
    str,
    typer.Argument(
        metavar="RULES",
        help="Rules (CSV, JSON lines, Parquet, Arrow; columns id, expression), or a saved index.",
    ),
]
EventsPath = Annotated[
    str,
    typer.Argument(
        metavar="EVENTS", help="Events (JSON lines, CSV, Parquet, Arrow); default: standard input."
    ),
]
SubscriptionId = Annotated[str, typer.Argument(metavar="ID", help="The id of a rule.")]
InlineEvent = Annotated[
    str | None, typer.Option("--event", "-e", metavar="JSON", help="One event, instead of a file.")
]
InlineEvents = Annotated[
    list[str] | None,
    typer.Option("--event", "-e", metavar="JSON", help="An event, instead of a file; may be repeated."),
]
To = Annotated[
    Format | None,
    typer.Option("--to", help="Format of the output if no file name determines it: jsonl, csv or tsv."),
]
With = Annotated[
    str | None,
    typer.Option(
        "--with", metavar="NAMES", help="Add columns: payload, event, or both, separated by a comma."
    ),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of the events if not UTF-8: latin-1, utf-16.")
]
Separator = Annotated[
    str | None, typer.Option("--separator", help="Field separator in CSV events; default: a comma.")
]
RulesEncoding = Annotated[
    str | None,
    typer.Option("--rules-encoding", help="Encoding of the rules if not UTF-8: latin-1, utf-16."),
]
RulesSeparator = Annotated[
    str | None,
    typer.Option(
        "--rules-separator", help="Field separator in CSV rules; default: detected from the header."
    ),
]
OnlyRulesFormat = Annotated[
    Format | None, typer.Option("--format", "-f", help="Format of the rules, if not given by the file name.")
]
OnlyRulesEncoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of the rules if not UTF-8: latin-1, utf-16.")
]
OnlyRulesSeparator = Annotated[
    str | None,
    typer.Option("--separator", help="Field separator in CSV rules; default: detected from the header."),
]
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="TYPES",
        help="Types of attributes, as age=int,at=timestamp_ms or a JSON file: rules that do not fit are "
        "refused, and ISO text, epoch numbers and CSV cells are read so.",
    ),
]
RulesSchema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="TYPES",
        help="Types of attributes, as age=int,at=timestamp_ms or a JSON file: rules that do not fit are bad.",
    ),
]
Row = Annotated[
    int, typer.Option("--row", min=0, help="The number of the event in the file, counted from 0.")
]
EventsFormat = Annotated[
    Format | None, typer.Option("--format", "-f", help="Format of the events, if not given by the file name.")
]
RulesFormat = Annotated[
    Format | None, typer.Option("--rules-format", help="Format of the rules, if not given by the file name.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines, even on a terminal.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Write a file; the extension (.jsonl, .csv, .parquet, .arrow) selects the format.",
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", "-t", help="Only rules with this tag; may be given several times."),
]
TagsAll = Annotated[
    list[str] | None,
    typer.Option("--tag-all", help="Only rules with all of these tags; may be given several times."),
]
TagsNone = Annotated[
    list[str] | None,
    typer.Option("--tag-none", help="Only rules without this tag; may be given several times."),
]
Now = Annotated[
    str | None,
    typer.Option(
        "--now",
        metavar="TIMESTAMP",
        help="The time for `current_timestamp()` and expiry; default: now.",
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", help="Identify events by this attribute instead of the row number.")
]
SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Skip and count bad rules and events instead of stopping."),
]
Algorithm = Annotated[str, typer.Option("--algorithm", help="The algorithm of the index.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Number of threads; default: all cores.")
]
Score = Annotated[
    str,
    typer.Option(
        "--score",
        "-s",
        help="The score: priority, relevance, relaxed, or a function such as 'min(a, b) + 0.5 * c'.",
    ),
]
MinScore = Annotated[float | None, typer.Option("--min-score", help="Leave out matches with a lower score.")]
Dimensions = Annotated[
    list[str] | None,
    typer.Option("--dimension", "-d", help="Only this attribute counts; may be given several times."),
]
