"""The types of attributes, as `--schema` gives them: `age=int,name=string`, or a JSON file."""

import json
from pathlib import Path

from tamis._suggest import suggestion
from tamis.cli.failure import UserError

TYPES = ("bool", "int", "float", "string", "timestamp")


def read_schema(text: str | None) -> dict[str, str]:
    """The type of each attribute.

    >>> read_schema("age=int, name=string")
    {'age': 'int', 'name': 'string'}
    """
    if text is None:
        return {}
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
            raise UserError(f"--schema: {text} is no JSON object of names and types")
    for name, kind in types.items():
        if not name or kind not in TYPES:
            hint = suggestion(kind, TYPES) or f"types are {', '.join(TYPES)}"
            raise UserError(f"--schema: `{kind}` is no type, for `{name}`", hint=hint)
    return types
