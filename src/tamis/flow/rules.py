"""A flow from a file: its streams and queries, as YAML or JSON.

```yaml
streams:
  logins: {time: ts, lateness: 5s}
queries:
  burst: count(* WHERE NOT ok BY user LAST 10m) >= 5
  travel:
    on: logins
    query: SEQUENCE (a: NOT ok){3,} THEN (b: ok AND b.country != a.country) WITHIN 10 MINUTES BY user
```
"""

import json
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tamis._extras import missing_extra
from tamis._suggest import suggestion
from tamis.errors import ArgumentError, TamisError
from tamis.flow.flow import Flow

_STREAM = {"time", "unit", "lateness", "idle", "schema"}
_QUERY = {"query", "on", "backfill"}
_TOP = {"streams", "queries", "limit", "on_limit"}


def read_flow(path: str | os.PathLike[str]) -> Flow:
    """The flow that a file of rules describes.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rules.json")
    >>> described = {"streams": {"s": {"time": "ts"}}, "queries": {"many": "count(* LAST 10s) >= 2"}}
    >>> _ = path.write_text(json.dumps(described))
    >>> list(read_flow(path))
    ['many']
    """
    text = Path(path).read_text(encoding="utf-8")
    if str(path).endswith(".json"):
        try:
            described = json.loads(text)
        except json.JSONDecodeError as error:
            raise ArgumentError(f"{path}: {error}") from None
    else:
        described = _read_yaml(path, text)
    try:
        return flow_of(described)
    except TamisError as error:
        raise ArgumentError(f"{path}: {error}") from None


def flow_of(described: Any) -> Flow:
    """The flow that a mapping describes.

    >>> flow_of({"streams": {"s": {}}, "queries": {"q": {"quer": "a = 1"}}})
    Traceback (most recent call last):
    ...
    tamis.errors.ArgumentError: query 'q' has an unknown setting 'quer'; did you mean `query`?
    """
    top = _checked("the file", described, _TOP)
    flow = Flow(limit=top.get("limit"), on_limit=top.get("on_limit", "refuse"))
    for name, options in _mapping("streams", top.get("streams")).items():
        flow.stream(name, **_checked(f"stream {name!r}", options or {}, _STREAM))
    for name, query in _mapping("queries", top.get("queries")).items():
        settings: dict[str, Any] = {"query": query}
        if not isinstance(query, str):
            settings = _checked(f"query {name!r}", query, _QUERY)
        if not isinstance(settings.get("query"), str):
            raise ArgumentError(f"query {name!r} has no text; write it under `query`")
        try:
            flow.add(
                str(name), settings["query"], settings.get("on"), backfill=settings.get("backfill", False)
            )
        except TamisError as error:
            raise ArgumentError(f"query {name!r}: {error}") from None
    return flow


def _read_yaml(path: str | os.PathLike[str], text: str) -> Any:
    try:
        yaml = import_module("yaml")
    except ImportError:
        raise ArgumentError(missing_extra("a file of rules in YAML", "flow")) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ArgumentError(f"{path}: {error}") from None


def _mapping(what: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise ArgumentError(f"a file of rules names its {what}: {what}: {{...}}")
    return value


def _checked(what: str, value: Any, known: set[str]) -> dict[str, Any]:
    """The settings of something, if all are known."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{what} is described by names and values, not by {value!r}")
    # YAML 1.1 reads the word `on` as true.
    settings = {"on" if name is True else name: setting for name, setting in value.items()}
    for name in settings:
        if name not in known:
            hint = suggestion(str(name), sorted(known)) or f"there is {', '.join(sorted(known))}"
            raise ArgumentError(f"{what} has an unknown setting {name!r}; {hint}")
    return settings
