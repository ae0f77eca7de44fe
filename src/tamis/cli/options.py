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
    str | None, typer.Option("--event", "-e", metavar="JSON", help="One event, given here instead.")
]
InlineEvents = Annotated[
    list[str] | None,
    typer.Option("--event", "-e", metavar="JSON", help="An event, given here instead; may be repeated."),
]
To = Annotated[
    Format | None,
    typer.Option("--to", help="Format of the output, where no file name tells it: jsonl, csv or tsv."),
]
With = Annotated[
    str | None,
    typer.Option("--with", metavar="NAMES", help="Add columns: payload, event, or both, with a comma."),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Of the events, where they are no UTF-8: latin-1, utf-16.")
]
Separator = Annotated[
    str | None, typer.Option("--separator", help="What separates fields in CSV events; default: a comma.")
]
RulesEncoding = Annotated[
    str | None,
    typer.Option("--rules-encoding", help="Of the rules, where they are no UTF-8: latin-1, utf-16."),
]
RulesSeparator = Annotated[
    str | None,
    typer.Option(
        "--rules-separator", help="What separates fields in CSV rules; default: seen from the header."
    ),
]
OnlyRulesFormat = Annotated[
    Format | None, typer.Option("--format", "-f", help="Format of the rules, where the name does not tell.")
]
OnlyRulesEncoding = Annotated[
    str | None, typer.Option("--encoding", help="Of the rules, where they are no UTF-8: latin-1, utf-16.")
]
OnlyRulesSeparator = Annotated[
    str | None,
    typer.Option("--separator", help="What separates fields in CSV rules; default: seen from the header."),
]
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="TYPES",
        help="Types of attributes, as age=int,at=timestamp_ms or a JSON file: rules that cannot fit are "
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
Row = Annotated[int, typer.Option("--row", min=0, help="Which event of the file, counted from 0.")]
EventsFormat = Annotated[
    Format | None, typer.Option("--format", "-f", help="Format of the events, where the name does not tell.")
]
RulesFormat = Annotated[
    Format | None, typer.Option("--rules-format", help="Format of the rules, where the name does not tell.")
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON lines, also on a terminal.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Write a file; .jsonl, .csv, .parquet or .arrow says in which format."
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", "-t", help="Only rules with this tag; may be given several times."),
]
TagsAll = Annotated[
    list[str] | None,
    typer.Option("--tag-all", help="Only rules that have this tag too; may be given several times."),
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
        help="The time that `current_timestamp()` and expiry are judged by; default: this moment.",
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", help="Name events by this attribute of theirs, not by row number.")
]
SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Leave out bad rules and events, and count them, instead of stopping."),
]
Algorithm = Annotated[str, typer.Option("--algorithm", help="Which index to build.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="How many threads match; all cores by default.")
]
Score = Annotated[
    str,
    typer.Option(
        "--score",
        "-s",
        help="What ranks: priority, relevance, relaxed, or a function such as 'min(a, b) + 0.5 * c'.",
    ),
]
MinScore = Annotated[float | None, typer.Option("--min-score", help="Leave out what scores less than this.")]
Dimensions = Annotated[
    list[str] | None,
    typer.Option("--dimension", "-d", help="Only this attribute counts; may be given several times."),
]
