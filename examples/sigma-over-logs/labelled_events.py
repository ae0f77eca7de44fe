"""How many labelled events do the rules of a collection find? For a clone of SigmaHQ's rules, or one like it.

    python labelled_events.py CLONE

`CLONE/regression_data/**/ID.json` holds the events that the rule ID should match, as they stand in a Windows
event log: the fields of `System`, `EventData` and `UserData` become attributes. Rules are those of all
folders whose name begins with `rules`.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis.importers import sigma


def main(clone: Path) -> None:
    """Import the rules, match the events, and print what was refused and what was not found."""
    folders = sorted(folder for folder in clone.iterdir() if folder.name.startswith("rules"))
    report = sigma.read(path for folder in folders for path in sorted(folder.rglob("*.yml")))
    print(report)
    index = report.to_index()
    labelled, missed = 0, []
    for path in sorted((clone / "regression_data").rglob("*.json")):
        labelled += 1
        if not any(path.stem in index.match(event) for event in events(path.read_text(encoding="utf-8-sig"))):
            missed.append(path)
    print(f"{labelled - len(missed):,} of {labelled:,} labelled files hold an event that their rule matches")
    for path in missed:
        print(f"not found: {path.relative_to(clone)}")


def events(text: str) -> Iterator[dict[str, Any]]:
    """The events of a file, which stand one after the other, as flat records."""
    decoder, rest = json.JSONDecoder(), text.strip()
    while rest:
        record, end = decoder.raw_decode(rest)
        rest = rest[end:].lstrip(" \r\n\t,")
        for one in record if isinstance(record, list) else [record]:
            yield flat(one["Event"])


def flat(event: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event under the names that rules use."""
    system = event["System"]
    fields = {
        "EventID": text_of(system["EventID"]),
        "Channel": system.get("Channel"),
        "Computer": system.get("Computer"),
        "Provider_Name": system["Provider"]["#attributes"].get("Name"),
    }
    user_data = (event.get("UserData") or {}).values()
    for part in (event.get("EventData") or {}, *(data for data in user_data if isinstance(data, dict))):
        fields |= {name: text_of(value) for name, value in part.items() if not name.startswith("#")}
    return fields


def text_of(value: Any) -> Any:
    """A value, where attributes of its element stand beside it; of several, their texts."""
    if isinstance(value, dict):
        return value.get("#text", json.dumps(value))
    return [str(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main(Path(sys.argv[1]))
