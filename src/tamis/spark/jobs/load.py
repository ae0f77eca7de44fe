"""Reading a job file: YAML, with `${NAME}` from the environment, and errors that say what would be right.

Every problem of a file is listed, each with its line and the path of its key:

```text
job.yaml cannot be used, 2 problems:
  line 3, events.pth: unknown key; did you mean `path`?
  line 9, sink.format: there is no format `parkett`; did you mean `parquet`?
```
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from tamis._suggest import closest, did_you_mean, suggestion
from tamis.errors import TamisError
from tamis.spark.connectors.jars import ConnectorError, settings_for
from tamis.spark.jobs.model import FORMATS, Job

_VARIABLE = re.compile(r"\$(?:(\$)|\{([^}]*)\})")


class Problem(NamedTuple):
    """One thing that is wrong: where (keys, and the line if it is known), and what."""

    path: str
    line: int | None
    message: str

    def __str__(self) -> str:
        """One line for the person who fixes it."""
        place = [f"line {self.line}"] if self.line else []
        return ": ".join(
            [part for part in (", ".join([*place, *filter(None, [self.path])]), self.message) if part]
        )


class InvalidJobError(TamisError, ValueError):
    """A job file that cannot be used; `problems` has all that is wrong with it.

    >>> str(InvalidJobError("job.yaml", [Problem("sink.pth", 9, "unknown key")]))
    'job.yaml cannot be used: line 9, sink.pth: unknown key'
    """

    def __init__(self, name: str, problems: list[Problem]) -> None:
        """Compose the message."""
        self.problems = problems
        if len(problems) == 1:
            super().__init__(f"{name} cannot be used: {problems[0]}")
        else:
            listed = "".join(f"\n  {problem}" for problem in problems)
            super().__init__(f"{name} cannot be used, {len(problems)} problems:{listed}")


def load_job(path: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Job:
    """Read a job file. Relative paths in it are meant from the folder that the command runs in."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidJobError(str(path), [Problem("", None, error.strerror or str(error))]) from None
    except UnicodeDecodeError as error:
        raise InvalidJobError(str(path), [Problem("", None, f"not UTF-8 text: {error}")]) from None
    return parse_job(text, str(path), environment)


def parse_job(text: str, name: str = "job", environment: Mapping[str, str] | None = None) -> Job:
    """Read the text of a job file.

    >>> parse_job("events: {format: parkett, path: a}")
    Traceback (most recent call last):
    ...
    tamis.spark.jobs.load.InvalidJobError: job cannot be used, 3 problems:
      line 1, events.format: there is no format `parkett`; did you mean `parquet`?
      subscriptions: is missing; ...
      sink: is missing
    """
    problems: list[Problem] = []
    lines: dict[tuple[Any, ...], int] = {}
    data = _plain(_composed(text, name), (), lines, problems)
    data = _substituted(data, (), os.environ if environment is None else environment, lines, problems)
    if problems:
        raise InvalidJobError(name, problems)
    if not isinstance(data, dict):
        raise InvalidJobError(name, [Problem("", None, "a job is a mapping of keys, such as `events:`")])
    try:
        job = Job.model_validate(data)
        settings_for(job.formats, job.spark.settings)
    except ValidationError as error:
        found = [each for one in error.errors() for each in _explained(one, data, lines)]
        raise InvalidJobError(name, found) from None
    except ConnectorError as error:
        raise InvalidJobError(name, [Problem("", None, str(error))]) from None
    return job


def _composed(text: str, name: str) -> Any:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error)
        line = None if mark is None else mark.line + 1
        raise InvalidJobError(name, [Problem("", line, f"not YAML: {reason}")]) from None


def _plain(
    node: Any, path: tuple[Any, ...], lines: dict[tuple[Any, ...], int], problems: list[Problem]
) -> Any:
    """The data of a YAML node; `lines` gets the line of each key, `problems` keys that are there twice."""
    if node is None:
        return None
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        data: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node)
            here = (*path, key)
            if key in data:
                problems.append(
                    Problem(_dotted(here), key_node.start_mark.line + 1, "the key is there twice")
                )
            lines[here] = key_node.start_mark.line + 1
            data[key] = _plain(value_node, here, lines, problems)
        return data
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, at), lines, problems) for at, item in enumerate(node.value)]
    return _scalar(node)


def _scalar(node: Any) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()


def _substituted(
    data: Any,
    path: tuple[Any, ...],
    environment: Mapping[str, str],
    lines: dict[tuple[Any, ...], int],
    problems: list[Problem],
) -> Any:
    """The data with `${NAME}` and `${NAME:-default}` replaced; `$$` is a dollar sign."""
    if isinstance(data, dict):
        return {
            key: _substituted(value, (*path, key), environment, lines, problems)
            for key, value in data.items()
        }
    if isinstance(data, list):
        return [
            _substituted(value, (*path, at), environment, lines, problems) for at, value in enumerate(data)
        ]
    if not isinstance(data, str):
        return data

    def value(found: re.Match[str]) -> str:
        if found.group(1):
            return "$"
        variable, has_default, default = found.group(2).partition(":-")
        if variable in environment:
            return environment[variable]
        if not has_default:
            message = (
                f"the environment has no variable {variable}; set it, or write ${{{variable}:-default}} "
                "(for a plain dollar sign, write $$)"
            )
            problems.append(Problem(_dotted(path), lines.get(path), message))
        return default

    return _VARIABLE.sub(value, data)


def _explained(error: Any, data: Any, lines: dict[tuple[Any, ...], int]) -> list[Problem]:
    """A validation error in the words of the file."""
    # Names in parentheses are the kinds of sections, which the file does not have.
    path = tuple(part for part in error["loc"] if not (isinstance(part, str) and part.startswith("(")))
    kind, given = error["type"], _at(data, path)
    if kind == "unknown_keys":
        known = error["ctx"]["known"]
        return [
            Problem(_dotted((*path, key)), lines.get((*path, key)), f"unknown key; {_instead(key, known)}")
            for key in error["ctx"]["unknown"]
        ]
    if kind in ("format", "kind"):
        return [_wrong_format(path, given, lines, stored=kind == "kind")]
    if kind == "missing":
        message = "is missing"
        if path == ("subscriptions",):
            message += "; give a source (`format: ...`), a `snapshot` or a `store`"
    elif kind == "literal_error":
        choices = error["ctx"]["expected"].replace("'", "`")
        message = f"must be {choices}, not `{given}`"
    elif kind in ("model_type", "dict_type", "model_attributes_type"):
        message = f"must be a mapping of keys, not `{given}`"
    else:
        message = error["msg"][:1].lower() + error["msg"][1:]
        if kind.endswith(("_type", "_parsing", "_equal")):
            message += f", not `{given}`"
    line = lines.get(path) if path else None
    if line is None and len(path) > 1:  # what is missing is looked for in its section
        line = lines.get(path[:-1])
    return [Problem(_dotted(path), line, message)]


def _wrong_format(
    path: tuple[Any, ...], given: Any, lines: dict[tuple[Any, ...], int], stored: bool
) -> Problem:
    if not isinstance(given, dict):
        return Problem(_dotted(path), lines.get(path), f"must be a mapping of keys, not `{given}`")
    here = (*path, "format")
    if "format" not in given:
        also = ", or `snapshot` or `store`" if stored else ""
        instead = closest("format", map(str, given))
        hint = f"; there is `{instead}`, {did_you_mean('format')}" if instead else ""
        return Problem(_dotted(here), lines.get(path), f"is missing; {', '.join(FORMATS)}{also}{hint}")
    return Problem(
        _dotted(here),
        lines.get(here),
        f"there is no format `{given['format']}`; {_instead(str(given['format']), list(FORMATS))}",
    )


def _instead(word: str, choices: list[str]) -> str:
    return suggestion(word, choices) or f"there are {', '.join(choices)}"


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _dotted(path: tuple[Any, ...]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
