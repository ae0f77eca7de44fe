"""The types of attributes, as `--schema` gives them: `age=int,name=string`, or a JSON file."""

import json
from pathlib import Path

from tamis.cli.failure import UserError
from tamis.errors import TamisError


def read_schema(text: str | None) -> dict[str, str]:
    """The type of each attribute.

    >>> read_schema("age=int, name=string")
    {'age': 'int', 'name': 'string'}
    """
    if text is None:
        return {}
    from tamis import Index

    if "=" in text:
        pairs = [part.partition("=") for part in text.split(",") if part.strip()]
        types = {name.strip(): kind.strip() for name, _, kind in pairs}
    else:
        try:
            types = json.loads(Path(text).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise UserError(
                f"--schema: cannot read {text}: {error.strerror}", hint="or write name=type,name=type"
            ) from None
        except ValueError as error:
            raise UserError(f"--schema: {text} is not valid JSON: {error}") from None
        if not isinstance(types, dict) or not all(isinstance(kind, str) for kind in types.values()):
            raise UserError(f"--schema: {text} is not a JSON object of names and types")
    for name, kind in types.items():
        try:
            Index(schema={name: kind}) if name else None
        except TamisError as error:
            message, _, hint = str(error).removeprefix(f"attribute `{name}`: ").partition("\nhint: ")
            raise UserError(f"--schema: {message}, for `{name}`", hint=hint or None) from None
        if not name:
            raise UserError(f"--schema: `{kind}` has no attribute name", hint="write name=type,name=type")
    return types
