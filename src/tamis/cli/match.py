"""`tamis match`: which rules does each event satisfy?"""

from typing import Annotated

import typer

from tamis.cli import options as o


def match(
    rules: o.RulesPath,
    events: o.EventsPath = "-",
    *,
    k: Annotated[int | None, typer.Option("--k", "-k", min=1, help="Only the k best of each event.")] = None,
    score: o.Score = "priority",
    min_score: o.MinScore = None,
    dimension: o.Dimensions = None,
    event: o.InlineEvent = None,
    tag: o.Tags = None,
    key: o.Key = None,
    count: Annotated[bool, typer.Option("--count", "-c", help="Only how many match each event.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says if anything matches.")
    ] = False,
    as_json: o.AsJson = False,
    output: o.Output = None,
    format: o.EventsFormat = None,
    rules_format: o.RulesFormat = None,
    skip_bad: o.SkipBad = False,
    threads: o.Threads = None,
    algorithm: o.Algorithm = "auto",
) -> int:
    """Find the rules that each event satisfies.

    Prints one row per match: the event's number and the rule's id.

    `cat events.jsonl | tamis match rules.csv -k 3`

    Exits with 0 if anything matched, 1 if nothing did.
    """
    from tamis.cli.failure import UserError
    from tamis.cli.matching import Question, Ranking
    from tamis.cli.rules import load_index
    from tamis.cli.stream import Mode, stream

    mode = Mode.QUIET if quiet else Mode.COUNTS if count else Mode.MATCHES
    index = load_index(rules, rules_format, algorithm, skip_bad, quiet)
    if k is None and (score != "priority" or min_score is not None or dimension):
        raise UserError("--score, --min-score and --dimension are about the k best", hint="add --k")
    if k is not None and count:
        raise UserError("--count counts all matches, not the k best", hint="leave out --k or --count")
    ranking = Ranking(k, score, min_score, dimension) if k else None
    question = Question(index, ranking, tag, key, threads, skip_bad)
    return stream(question, mode, path=events, asked=format, inline=event, output=output, as_json=as_json)
