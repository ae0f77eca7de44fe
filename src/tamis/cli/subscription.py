"""Find one rule by the id typed on the command line; what `explain` and `why-not` share."""

from typing import TYPE_CHECKING, Any

from tamis.cli.failure import UserError

if TYPE_CHECKING:
    from tamis import Index


def find_id(index: "Index", text: str) -> Any:
    """The id in the index that `text` stands for: as it is, or as an integer."""
    for candidate in _readings(text):
        try:
            if candidate in index:
                return candidate
        except (TypeError, ValueError):
            continue
    raise UserError(f"there is no rule with the id {text}", hint=f"the index holds {len(index):,} rules")


def _readings(text: str) -> list[Any]:
    try:
        return [int(text), text]
    except ValueError:
        return [text]
