"""`tamis import`: rules that were written for other engines, as rules for this one."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tamis.importers import Report


class ImportFormat(StrEnum):
    """The formats of other engines."""

    JSON_LOGIC = "json-logic"
    EVENT_PATTERNS = "event-patterns"
    ELASTICSEARCH = "elasticsearch"
    SQL = "sql"
    SIGMA = "sigma"


def import_rules(
    format: Annotated[ImportFormat, typer.Argument(metavar="FORMAT", help="What the rules are written in.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Records with `id` and `rule` (JSON lines or a JSON array), a JSON object of id to rule, "
            "CSV with the columns id and rule, or, for Sigma, YAML files and folders of them.",
        ),
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the rules here instead, as JSON lines.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write what became of each rule, as JSON lines.")
    ] = None,
    dialect: Annotated[
        str, typer.Option("--dialect", help="For SQL: postgres, mysql, duckdb, ...")
    ] = "duckdb",
    keywords_in: Annotated[
        list[str] | None,
        typer.Option(
            "--keywords-in",
            help="For Sigma: an attribute in which keywords are looked for; default: every string.",
        ),
    ] = None,
    arrays: Annotated[
        list[str] | None,
        typer.Option(
            "--array",
            help="For event patterns and Elasticsearch: an attribute that holds an array, of values or of "
            "records; the rules look at its elements.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if any rule is refused.")] = False,
) -> int:
    """Write the rules of another engine as rules of Tamis, and say what cannot be carried over.

    `tamis import sigma rules/windows -o sigma.jsonl --report report.jsonl`

    Exits with 0 if any rule was imported, 1 if none was (with --strict: if any was refused).
    """
    import sys

    from tamis.cli.failure import FOUND, NOT_FOUND, warn
    from tamis.cli.io.whole_file import whole_file

    try:
        imported = _read(format, files, dialect, keywords_in or [], arrays)
    except ImportError as error:
        from tamis.cli.failure import UserError

        raise UserError(str(error)) from None
    if output is None:
        sys.stdout.writelines(_lines(rule.to_dict() for rule in imported.imported))
    else:
        with whole_file(output) as stream:
            stream.writelines(_lines(rule.to_dict() for rule in imported.imported))
    if report is not None:
        with whole_file(report) as stream:
            stream.writelines(_lines(rule.to_report() for rule in imported))
    for line in str(imported).splitlines():
        warn(line)
    for line in _unused_arrays(imported, arrays or []):
        warn(line)
    if strict:
        return NOT_FOUND if imported.refused else FOUND
    return FOUND if imported.imported else NOT_FOUND


def _unused_arrays(imported: "Report", arrays: list[str]) -> list[str]:
    """Names of arrays that no rule looks at: they are probably misspelt."""
    from tamis._suggest import suggestion

    names = {
        name
        for rule in imported.imported
        if rule.expression is not None
        for name in rule.expression.attributes
    }
    records = {".".join(name.split(".")[:count]) for name in names for count in range(1, name.count(".") + 2)}
    unused = [array for array in arrays if array not in records]
    hints = [suggestion(array, records) for array in unused]
    return [
        f"--array {array}: no rule looks at it" + (f" ({hint})" if hint else "")
        for array, hint in zip(unused, hints, strict=True)
    ]


def _lines(records: Any) -> Any:
    import json

    return (json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _read(
    format: ImportFormat,
    files: list[str],
    dialect: str,
    keywords_in: list[str],
    arrays: list[str] | None,
) -> "Report":
    from tamis import importers
    from tamis.cli.failure import UserError

    takes_arrays = format in (ImportFormat.EVENT_PATTERNS, ImportFormat.ELASTICSEARCH)
    if arrays and not takes_arrays:
        raise UserError(
            f"--array is not for {format.value}", hint="its rules say themselves what is an array"
        )
    if format is ImportFormat.SIGMA:
        from tamis.importers import sigma

        return sigma.read((path for file in files for path in _yaml_files(file)), keywords_in=keywords_in)
    from tamis.cli.io.foreign_rules import read_pairs

    pairs = [pair for file in files for pair in read_pairs(file)]
    if format is ImportFormat.SQL:
        from tamis.errors import ArgumentError
        from tamis.importers import sql

        try:
            return sql.read(pairs, dialect)
        except ArgumentError as error:
            raise UserError(f"--dialect: {error}") from None
    from importlib import import_module

    module = import_module(f"tamis.importers.{format.value.replace('-', '_')}")
    found: importers.Report = module.read(pairs, arrays) if takes_arrays else module.read(pairs)
    return found


def _yaml_files(path: str) -> list[Path]:
    from tamis.cli.failure import UserError
    from tamis.cli.io.inputs import similar_file

    place = Path(path)
    if place.is_dir():
        return sorted(found for found in place.rglob("*") if found.suffix in (".yml", ".yaml"))
    if not place.exists():
        raise UserError(f"cannot read {path}: No such file or directory", hint=similar_file(path))
    return [place]
