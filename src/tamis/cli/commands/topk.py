"""`tamis topk`: which k rules rank highest for each event?"""

from typing import Annotated

import typer

from tamis.cli import options as o


def topk(
    rules: o.RulesPath,
    events: o.EventsPath = "-",
    *,
    k: Annotated[int, typer.Option("--k", "-k", min=0, help="How many for each event.")] = 10,
    score: o.Score = "priority",
    min_score: o.MinScore = None,
    dimension: o.Dimensions = None,
    event: o.InlineEvents = None,
    tag: o.Tags = None,
    tag_all: o.TagsAll = None,
    tag_none: o.TagsNone = None,
    key: o.Key = None,
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
    """Find the k best rules of each event, with score and rank.

    Exits with 0 if anything matched, 1 if nothing did.
    """
    from tamis import Query
    from tamis.cli.io.inputs import Format
    from tamis.cli.io.rules import load_index
    from tamis.cli.io.schema import read_schema
    from tamis.cli.matching import QueryRun, extra_columns
    from tamis.cli.stream import Input, stream

    types = read_schema(schema)
    index = load_index(
        rules,
        rules_format,
        algorithm,
        skip_bad,
        schema=types,
        encoding=rules_encoding,
        separator=rules_separator,
    )
    query = Query(
        k=k,
        score=score,
        min_score=min_score,
        dimensions=dimension,
        tags=tag,
        tags_all=tag_all,
        tags_none=tag_none,
    )
    asked = QueryRun(index, query, key, threads, skip_bad, extra_columns(extra))
    source = Input(events, format, event, encoding, separator)
    return stream(asked, source, output=output, to=Format.JSONL if as_json else to)
