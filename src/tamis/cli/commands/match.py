"""`tamis match`: which rules does each event satisfy?"""

from typing import Annotated, Any

import typer

from tamis.cli import options as o


def match(
    rules: o.RulesPath,
    events: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EVENTS",
            help="Events (JSON lines, CSV, Parquet, Arrow; with --xml any number of XML files); default: "
            "standard input.",
        ),
    ] = None,
    *,
    k: Annotated[int | None, typer.Option("--k", "-k", min=0, help="Only the k best of each event.")] = None,
    score: o.Score = "priority",
    min_score: o.MinScore = None,
    dimension: o.Dimensions = None,
    event: o.InlineEvents = None,
    xml: Annotated[
        bool,
        typer.Option(
            "--xml", help="EVENTS are XML documents: each is an event with the attributes doc and file."
        ),
    ] = False,
    tag: o.Tags = None,
    tag_all: o.TagsAll = None,
    tag_none: o.TagsNone = None,
    now: o.Now = None,
    key: o.Key = None,
    count: Annotated[
        bool, typer.Option("--count", "-c", help="Only the number of matches of each event.")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Print nothing; the exit code says whether anything matches."),
    ] = False,
    extra: o.With = None,
    as_json: o.AsJson = False,
    to: o.To = None,
    output: o.Output = None,
    format: o.EventsFormat = None,
    encoding: o.Encoding = None,
    separator: o.Separator = None,
    schema: o.Schema = None,
    rules_format: o.RulesFormat = None,
    rules_encoding: o.RulesEncoding = None,
    rules_separator: o.RulesSeparator = None,
    skip_bad: o.SkipBad = False,
    threads: o.Threads = None,
    algorithm: o.Algorithm = "auto",
) -> int:
    """Find the rules that each event satisfies.

    Prints one row per match: the event's number and the rule's id.

    `cat events.jsonl | tamis match rules.csv -k 3`

    `tamis match rules.csv --xml *.xml`

    Exits with 0 if anything matched, 1 if nothing did.
    """
    from tamis import Query
    from tamis.cli.failure import UserError
    from tamis.cli.io.inputs import Format
    from tamis.cli.io.rules import load_index
    from tamis.cli.io.schema import read_schema
    from tamis.cli.io.xml_files import KEY
    from tamis.cli.matching import QueryRun, extra_columns
    from tamis.cli.one_rule import moment
    from tamis.cli.stream import Input, stream

    types = read_schema(schema)
    index = load_index(
        rules,
        rules_format,
        algorithm,
        skip_bad,
        quiet=quiet,
        schema=types,
        encoding=rules_encoding,
        separator=rules_separator,
    )
    if k is None and (score != "priority" or min_score is not None or dimension):
        raise UserError("--score, --min-score and --dimension are about the k best", hint="add --k")
    if k is not None and count:
        raise UserError("--count counts all matches, not the k best", hint="leave out --k or --count")
    if count and extra:
        raise UserError("--with is about matches, and --count prints none", hint="leave out one of them")
    selected: dict[str, Any] = {"tags": tag, "tags_all": tag_all, "tags_none": tag_none, "now": moment(now)}
    if k is None or quiet:
        query = Query("exists" if quiet else "count" if count else "all", **selected)
    else:
        query = Query(k=k, score=score, min_score=min_score, dimensions=dimension, **selected)
    paths = events or ["-"]
    if len(paths) > 1 and not xml:
        raise UserError("events come from one file", hint="add --xml if they are XML documents")
    asked = QueryRun(index, query, key or (KEY if xml else None), threads, skip_bad, extra_columns(extra))
    documents = paths if xml else None
    source = Input(paths[0], format, event, encoding, separator, documents)
    return stream(asked, source, output=output, to=Format.JSONL if as_json else to)
