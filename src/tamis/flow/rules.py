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
    described = read_description(path)
    try:
        return flow_of(described)
    except TamisError as error:
        raise ArgumentError(f"{path}: {error}") from None


def read_description(path: str | os.PathLike[str]) -> Any:
    """What a file of rules says, as plain values.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rules.json")
    >>> _ = path.write_text('{"streams": {"s": {"time": "ts"}}}')
    >>> read_description(path)
    {'streams': {'s': {'time': 'ts'}}}
    """
    text = Path(path).read_text(encoding="utf-8")
    if not str(path).endswith(".json"):
        return _read_yaml(path, text)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
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
    for name, options in stream_settings(top.get("streams")).items():
        flow.stream(name, **options)
    for name, settings in query_settings(top.get("queries")).items():
        try:
            flow.add(name, settings["query"], settings.get("on"), backfill=settings.get("backfill", False))
        except TamisError as error:
            raise ArgumentError(f"query {name!r}: {error}") from None
    return flow


def stream_settings(streams: Any) -> dict[str, dict[str, Any]]:
    """The settings of each stream, as `Flow.stream` takes them.

    >>> stream_settings({"logins": {"time": "ts"}, "hits": None})
    {'logins': {'time': 'ts'}, 'hits': {}}
    """
    return {
        str(name): _checked(f"stream {name!r}", options or {}, _STREAM)
        for name, options in _mapping("streams", streams).items()
    }


def query_settings(queries: Any) -> dict[str, dict[str, Any]]:
    """The settings of each query, as `Flow.add` takes them.

    >>> query_settings({"many": "count(* LAST 10s) >= 2"})
    {'many': {'query': 'count(* LAST 10s) >= 2'}}
    """
    settings = {}
    for name, query in _mapping("queries", queries).items():
        given = {"query": query} if isinstance(query, str) else _checked(f"query {name!r}", query, _QUERY)
        if not isinstance(given.get("query"), str):
            raise ArgumentError(f"query {name!r} has no text; write it under `query`")
        settings[str(name)] = given
    return settings


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
