"""`tamis topk`: which k rules matter most for each event?"""

from typing import Annotated

import typer

from tamis.cli import options as o


def topk(
    rules: o.RulesPath,
    events: o.EventsPath = "-",
    *,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="How many for each event.")] = 10,
    score: o.Score = "priority",
    min_score: o.MinScore = None,
    dimension: o.Dimensions = None,
    event: o.InlineEvent = None,
    tag: o.Tags = None,
    key: o.Key = None,
    as_json: o.AsJson = False,
    output: o.Output = None,
    format: o.EventsFormat = None,
    rules_format: o.RulesFormat = None,
    skip_bad: o.SkipBad = False,
    threads: o.Threads = None,
    algorithm: o.Algorithm = "auto",
) -> int:
    """Find the k best rules of each event, with score and rank.

    Exits with 0 if anything matched, 1 if nothing did.
    """
    from tamis.cli.matching import Question, Ranking
    from tamis.cli.rules import load_index
    from tamis.cli.stream import Mode, stream

    index = load_index(rules, rules_format, algorithm, skip_bad)
    ranking = Ranking(k, score, min_score, dimension)
    question = Question(index, ranking, tag, key, threads, skip_bad)
    return stream(
        question, Mode.MATCHES, path=events, asked=format, inline=event, output=output, as_json=as_json
    )
