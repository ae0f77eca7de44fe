"""`tamis import`: converts rules of other engines."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli import options as o

if TYPE_CHECKING:
    from tamis.importers import Report


class ImportFormat(StrEnum):
    """The formats of other engines."""

    JSON_LOGIC = "json-logic"
    EVENT_PATTERNS = "event-patterns"
    ELASTICSEARCH = "elasticsearch"
    SQL = "sql"
    SIGMA = "sigma"


_TAKE_ARRAYS = (ImportFormat.EVENT_PATTERNS, ImportFormat.ELASTICSEARCH)


def import_rules(
    format: Annotated[ImportFormat, typer.Argument(metavar="FORMAT", help="The format of the rules.")],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Records with `id` and `rule` (JSON lines or a JSON array), a JSON object of id to rule, "
            "CSV with the columns id and rule, or, for Sigma, YAML files and folders of them; - is standard "
            "input.",
        ),
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the rules here instead, as JSON lines.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write the outcome for each rule, as JSON lines.")
    ] = None,
    dialect: Annotated[
        str, typer.Option("--dialect", help="For SQL: postgres, mysql, duckdb, ...")
    ] = "duckdb",
    keywords_in: Annotated[
        list[str] | None,
        typer.Option(
            "--keywords-in",
            help="For Sigma: an attribute in which to search for keywords; default: every string.",
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
    pipelines: Annotated[
        list[str] | None,
        typer.Option(
            "--pipeline",
            help="For Sigma: a processing pipeline that maps fields, a YAML file of pySigma or the name of "
            "an installed one; may be repeated.",
        ),
    ] = None,
    encoding: o.OnlyRulesEncoding = None,
    separator: o.OnlyRulesSeparator = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if any rule is refused.")] = False,
) -> int:
    """Convert rules of another engine, and report what cannot be carried over.

    `tamis import sigma rules/windows -o sigma.jsonl --report report.jsonl`

    Exits with 0 if any rule was imported, 1 if none was (with --strict: if any was refused).
    """
    import sys

    from tamis.cli.failure import FOUND, NOT_FOUND, warn
    from tamis.cli.io.outputs import STDOUT
    from tamis.cli.io.whole_file import whole_file

    _check_options(format, arrays=arrays, pipelines=pipelines)
    try:
        if format is ImportFormat.SIGMA:
            imported = _read_sigma(files, keywords_in or [], pipelines or [], encoding)
        else:
            from tamis.cli.io.foreign_rules import read_pairs

            pairs = [pair for file in files for pair in read_pairs(file, encoding, separator)]
            imported = _read(format, pairs, dialect, arrays)
    except ImportError as error:
        from tamis.cli.failure import UserError

        raise UserError(str(error)) from None
    if output is None or str(output) == STDOUT:
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


def _check_options(format: ImportFormat, *, arrays: list[str] | None, pipelines: list[str] | None) -> None:
    from tamis.cli.failure import UserError

    if arrays and format not in _TAKE_ARRAYS:
        raise UserError(
            f"--array is not for {format.value}", hint="its rules themselves say which fields are arrays"
        )
    if pipelines and format is not ImportFormat.SIGMA:
        raise UserError(f"--pipeline is not for {format.value}", hint="it maps the fields of Sigma rules")


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
    format: ImportFormat, pairs: list[tuple[str, Any]], dialect: str, arrays: list[str] | None
) -> "Report":
    """The rules of a format that is not Sigma's."""
    from importlib import import_module

    from tamis.cli.failure import UserError

    if format is ImportFormat.SQL:
        from tamis.errors import ArgumentError
        from tamis.importers import sql

        try:
            return sql.read(pairs, dialect)
        except ArgumentError as error:
            raise UserError(f"--dialect: {error}") from None
    module = import_module(f"tamis.importers.{format.value.replace('-', '_')}")
    found: Report = module.read(pairs, arrays) if format in _TAKE_ARRAYS else module.read(pairs)
    return found


def _read_sigma(
    files: list[str], keywords_in: list[str], pipelines: list[str], encoding: str | None
) -> "Report":
    from tamis.importers import sigma

    rules = (rule for file in files for rule in _yaml_rules(file, encoding))
    return sigma.read(rules, keywords_in=keywords_in, pipeline=_pipeline(pipelines))


def _pipeline(names: list[str]) -> Any:
    """The processing pipelines of these files and names as one; None for none."""
    if not names:
        return None
    from sigma.exceptions import SigmaError
    from sigma.plugins import InstalledSigmaPlugins

    from tamis.cli.failure import UserError
    from tamis.cli.io.inputs import similar_file

    resolver = InstalledSigmaPlugins.autodiscover().get_pipeline_resolver()
    for name in names:
        if name not in resolver.pipelines and not Path(name).is_file():
            installed = ", ".join(sorted(resolver.pipelines)) or "none is"
            hint = similar_file(name) or f"a YAML file, or one that is installed: {installed}"
            raise UserError(f"--pipeline: there is no {name}", hint=hint)
    try:
        return resolver.resolve(names)
    except (SigmaError, ValueError, TypeError, AttributeError, LookupError) as error:
        message = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"--pipeline: {', '.join(names)} cannot be read: {message}") from None
    except Exception as error:  # of the reader of YAML, which is a dependency of pySigma and not of ours
        if not hasattr(error, "problem"):
            raise
        raise UserError(f"--pipeline: {', '.join(names)} is not valid YAML: {error.problem}") from None


def _yaml_rules(path: str, encoding: str | None) -> list[Any]:
    """The rules of a file, of a folder, or of standard input, which are texts or the paths of files."""
    if path == "-":
        from tamis.cli.failure import UserError
        from tamis.cli.io.inputs import Format, open_source

        try:
            return [open_source(path, Format.TEXT, what="rules", encoding=encoding).bytes.read().decode()]
        except UnicodeDecodeError as error:
            raise UserError(f"<stdin>: not UTF-8 text: {error.reason}", hint="see --encoding") from None
    found: list[Any] = list(_yaml_files(path))
    return found if encoding is None else [_decoded(file, encoding) for file in found]


def _decoded(file: Path, encoding: str) -> str:
    from tamis.cli.failure import UserError

    try:
        return file.read_text(encoding=encoding)
    except LookupError:
        raise UserError(f"there is no encoding {encoding!r}", hint="such as utf-8, latin-1") from None
    except UnicodeError as error:
        raise UserError(f"{file}: not {encoding} text: {error}") from None


def _yaml_files(path: str) -> list[Path]:
    from tamis.cli.failure import UserError
    from tamis.cli.io.inputs import similar_file

    place = Path(path)
    if place.is_dir():
        inside = sorted(found for found in place.rglob("*") if found.suffix in (".yml", ".yaml"))
        if not inside:
            raise UserError(f"{path} holds no file that ends in .yml or .yaml")
        return inside
    if not place.exists():
        raise UserError(f"cannot read {path}: No such file or directory", hint=similar_file(path))
    return [place]
