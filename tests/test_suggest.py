"""`tamis._suggest`: which name is offered for a mistyped one, and that everything asks there."""

from pathlib import Path

import pytest

import tamis
from tamis._suggest import MISSPELT, closest, suggestion


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("contry", ["country", "county"], "country"),
        ("parkett", ["csv", "parquet"], "parquet"),  # three typing errors in seven letters
        ("", ["age"], None),
        ("age", [], None),
        ("zip", ["age", "country"], None),
    ],
)
def test_the_most_similar_name_is_offered(word: str, known: list[str], meant: str | None) -> None:
    assert closest(word, known) == meant
    assert suggestion(word, known) == (None if meant is None else f"did you mean `{meant}`?")


def test_numbered_names_are_not_taken_for_misspelt_ones() -> None:
    assert closest("a10", ["a11", "a12"], similarity=MISSPELT) is None
    assert closest("agee", ["age"], similarity=MISSPELT) == "age"


def test_there_is_one_way_to_say_it() -> None:
    package = Path(tamis.__file__).parent
    texts = {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")}
    assert [name for name, text in texts.items() if "difflib" in text] == ["_suggest.py"]
    assert [name for name, text in texts.items() if "did you mean `{" in text] == ["_suggest.py"]
