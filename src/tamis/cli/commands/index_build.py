"""`tamis index build`: from a file of rules to a saved index that opens in milliseconds."""

from pathlib import Path
from typing import Annotated

import typer

from tamis.cli import options as o


def build(
    rules: o.RulesPath,
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Where to save, such as rules.tamis.")],
    rules_format: o.OnlyRulesFormat = None,
    *,
    encoding: o.OnlyRulesEncoding = None,
    separator: o.OnlyRulesSeparator = None,
    schema: o.Schema = None,
    skip_bad: o.SkipBad = False,
    as_json: o.AsJson = False,
) -> None:
    """Index a file of rules and save the index, which other commands accept in place of rules."""
    import json
    import time

    import tamis
    from tamis.cli.commands.index_info import human_bytes
    from tamis.cli.failure import UserError
    from tamis.cli.io.outputs import STDOUT
    from tamis.cli.io.rules import load_index
    from tamis.cli.io.schema import read_schema
    from tamis.cli.wording import counted

    if str(output) == STDOUT:
        raise UserError("an index is saved to a file, which others map", hint="name it, such as rules.tamis")
    started = time.monotonic()
    index = load_index(
        rules,
        rules_format,
        skip=skip_bad,
        schema=read_schema(schema),
        encoding=encoding,
        separator=separator,
    )
    try:
        index.save(str(output))
    except (tamis.TamisError, OSError) as error:
        raise UserError(str(error)) from None
    elapsed = time.monotonic() - started
    size = output.stat().st_size
    if as_json:
        figures = {"rules": len(index), "bytes": size, "seconds": round(elapsed, 3), "path": str(output)}
        typer.echo(json.dumps(figures))
    else:
        typer.echo(f"{output}: {counted(len(index), 'rule')}, {human_bytes(size)}, in {elapsed:,.1f} s")
