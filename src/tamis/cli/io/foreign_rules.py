"""Reads rules of other engines: pairs of an id and a rule in the format of that engine."""

from collections.abc import Iterable, Iterator
from typing import Any

from tamis._suggest import suggestion
from tamis.cli.failure import UserError, warn
from tamis.cli.io.encodings import SAY_ENCODING
from tamis.cli.io.inputs import Format, Source, load_json, open_source, read_json_records
from tamis.importers.deep_stack import with_deep_stack

RULE_NAMES = ("rule", "pattern", "query", "where", "expression")
"""What the column of the rules may be called."""


def read_pairs(
    path: str, encoding: str | None = None, separator: str | None = None
) -> Iterator[tuple[str, Any]]:
    """The ids and rules of a file; rules without an id are named by their line."""
    source = open_source(path, what="rules", encoding=encoding, separator=separator)
    if source.format is Format.JSONL:
        records = list(read_json_records(source, load=_load))
        if len(records) == 1 and not _names(records[0][1]):
            yield from ((str(id), rule) for id, rule in records[0][1].items())
            return
        _name_unread(source.name, (record for _, record in records))
        for line, record in records:
            yield _pair(source.name, line, record)
    elif source.format in (Format.CSV, Format.TSV):
        from tamis.cli.io.csv_rows import read_csv_rows

        rows = list(read_csv_rows(source, RULE_NAMES))
        _name_unread(source.name, (row for _, row in rows))
        for line, row in rows:
            yield _pair(source.name, line, row)
    elif source.format is Format.TEXT:
        for line, text in enumerate(_text(source).splitlines(), 1):
            if text.strip():
                yield str(line), text
    else:
        raise UserError(f"{path}: rules of other engines are JSON, CSV or text", hint="see --help")


def _text(source: Source) -> str:
    try:
        return source.bytes.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{source.name}: not UTF-8 text: {error.reason}", hint=SAY_ENCODING) from None


def _name_unread(name: str, records: Iterable[dict[str, Any]]) -> None:
    """Say which columns are not read: a priority or tags that stand there would be missed."""
    unread = {column: None for record in records for column in record if column not in ("id", *RULE_NAMES)}
    if unread:
        listed = ", ".join(f"`{column}`" for column in list(unread)[:10])
        warn(f"{name}: not read: {listed}; an import takes the id and the rule")


def _load(text: Any) -> Any:
    return with_deep_stack(lambda: load_json(text))


def _names(record: dict[str, Any]) -> list[str]:
    return [name for name in RULE_NAMES if name in record]


def _pair(name: str, line: int, record: dict[str, Any]) -> tuple[str, Any]:
    found = _names(record)
    if not found:
        hint = suggestion("rule", record) or f"it has {', '.join(list(record)[:10])}"
        raise UserError(f"{name}:{line}: no `rule`", hint=hint)
    rule = record[found[0]]
    if isinstance(rule, str) and rule.lstrip().startswith(("{", "[")):
        try:
            rule = _load(rule)
        except ValueError as error:
            raise UserError(f"{name}:{line}: {found[0]}: not valid JSON: {error}") from None
        except RecursionError:
            raise UserError(f"{name}:{line}: {found[0]}: nested too deep to be read") from None
    id = record.get("id")
    return str(line if id is None else id), rule
