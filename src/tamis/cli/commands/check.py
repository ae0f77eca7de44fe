"""`tamis check`: checks the rules of a file. Lists all errors, each with its position."""

from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli import options as o

if TYPE_CHECKING:
    from tamis.cli.problems import Problem


def check(
    files: Annotated[list[str], typer.Argument(metavar="RULES", help="Files of rules; - is standard input.")],
    as_json: o.AsJson = False,
    rules_format: o.OnlyRulesFormat = None,
    *,
    encoding: o.OnlyRulesEncoding = None,
    separator: o.OnlyRulesSeparator = None,
    schema: o.RulesSchema = None,
    lint: Annotated[
        bool,
        typer.Option(
            "--lint", help="Also name rules that are never or always true, repeated or covered, ..."
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 for findings of --lint, too.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show, for each rule, an event that it matches.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says whether all are valid.")
    ] = False,
) -> int:
    """Validate files of rules: every error with its file, line and column.

    Exits with 0 if all rules are good, 1 if any is not.
    """
    from tamis.cli.failure import FOUND, NOT_FOUND, warn
    from tamis.cli.io.rules import read_rules
    from tamis.cli.io.schema import read_schema
    from tamis.cli.problems import find_examples, find_problems, find_slips
    from tamis.cli.wording import counted

    types = read_schema(schema)
    checked = bad = slips = 0
    for path in files:
        rules = read_rules(path, rules_format, encoding=encoding, separator=separator)
        for note in [] if quiet else rules.notes():
            warn(note)
        places = set()
        for problem in find_problems(rules, types):
            places.add(problem.place)
            if not quiet:
                _print(problem, as_json)
        if lint or strict:
            for warning in find_slips(rules):
                slips += 1
                if not quiet:
                    _print(warning, as_json)
        if explain and not quiet:
            for shown in find_examples(rules):
                _print(shown, as_json)
        checked += len(rules)
        bad += len(places)
    if quiet:
        pass
    elif bad:
        warn(f"{bad:,} of {checked:,} rules are bad")
    elif not as_json:
        warned = f", {counted(slips, 'warning')}" if slips else ""
        typer.echo(f"{counted(checked, 'rule')}, no errors{warned}")
    return NOT_FOUND if bad or (strict and slips) else FOUND


def _print(problem: "Problem", as_json: bool) -> None:
    import json
    import sys

    if as_json:
        sys.stdout.write(json.dumps(problem.to_dict(), ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(problem.to_text() + "\n")
