"""Exceptions: one base, the built-in bases that callers expect, and a way through pickle."""

import pickle
from collections.abc import Callable

import pytest

import tamis
from tamis import Index


def test_every_error_derives_from_one_base() -> None:
    public = [getattr(tamis, name) for name in tamis.__all__]
    errors = [item for item in public if isinstance(item, type) and issubclass(item, Exception)]
    errors = [item for item in errors if not issubclass(item, Warning)]
    assert len(errors) > 5
    for error in errors:
        assert issubclass(error, tamis.TamisError)


def test_builtin_bases() -> None:
    assert issubclass(tamis.ExpressionError, ValueError)
    assert issubclass(tamis.ArgumentError, ValueError)
    assert issubclass(tamis.UnknownIdError, KeyError)


def test_parts_survive_pickle() -> None:
    error = tamis.ExpressionError("what", line=2, column=7, hint="right", snippet="text\n^")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.line, copy.column, copy.hint, copy.snippet) == (2, 7, "right", "text\n^")
    assert str(copy) == str(error) == "what (line 2, column 7)\ntext\n^\nhint: right"


def test_a_missing_id_reads_like_a_sentence() -> None:
    with pytest.raises(KeyError) as caught:
        raise tamis.UnknownIdError("no subscription 'ad-7'")
    assert str(caught.value) == "no subscription 'ad-7'"


# --- what, where, why, and what would be right --------------------------------------------------------


CHANGES: dict[str, Callable[[Index, str], object]] = {
    "add": lambda index, text: index.add("b", text),
    "upsert": lambda index, text: index.upsert("b", text),
    "replace": lambda index, text: index.replace("a", text),
    "update": lambda index, text: index.update("a", expression=text),
    "add_many": lambda index, text: index.add_many(["b"], [text]),
    "upsert_many": lambda index, text: index.upsert_many(["b"], [text]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("text", "place", "said", "hint"),
    [
        ("age > 1 AND\n age >", (2, 7), "expected a value", None),
        (
            "age > 1 AND\n age > 'x'",
            (2, 2),
            "`age` is an int; `>` compares it with the string 'x'",
            "write a number, such as age > 30",
        ),
        ("age = 1 OR (agee = 2)", (1, 13), "`agee` is not in the schema", "did you mean `age`?"),
        ("age = 1 AND upper(age) = 'A'", (1, 13), "`upper` takes a string, but `age` is a number", None),
    ],
)
def test_a_refused_expression_names_the_subscription_and_the_place(
    change: str, text: str, place: tuple[int, int], said: str, hint: str | None
) -> None:
    index = Index(schema={"age": int})
    index.add("a", "age = 1")
    with pytest.raises(tamis.ExpressionError) as caught:
        CHANGES[change](index, text)
    error = caught.value
    id = "a" if change in ("replace", "update") else "b"
    assert f'"{id}"' in error.reason.split(": ")[0]
    assert said in error.reason
    assert (error.line, error.column) == place
    assert (error.snippet or "").splitlines() == [text.splitlines()[place[0] - 1], " " * (place[1] - 1) + "^"]
    assert error.hint == hint


def test_an_expression_that_is_no_text_has_no_place() -> None:
    index = Index(schema={"age": int})
    with pytest.raises(tamis.ExpressionError, match='subscription "b": `age` is an int') as caught:
        index.add("b", tamis.col("age") > "x")
    assert (caught.value.line, caught.value.column, caught.value.snippet) == (None, None, None)


@pytest.mark.parametrize("algorithm", ["be-tree", "k-index", "interval"])
def test_an_unsupported_expression_names_the_subscription(algorithm: str) -> None:
    index = Index(algorithm=algorithm)
    with pytest.raises(tamis.UnsupportedExpressionError, match=r'^subscription "b": '):
        index.add("b", "x = 1 OR y = 2")


@pytest.mark.parametrize(
    ("attempt", "kind", "said"),
    [
        (lambda index: Index(schema=["age"]), TypeError, "a schema is a dict of attribute to type"),
        (lambda index: tamis.parse(None), TypeError, "an expression to parse is text, not NoneType"),
        (lambda index: index.match({}, tag=["q4"]), TypeError, 'Index.match.*did you mean "tags"'),
        (lambda index: index.count({}, now_=1), TypeError, 'Index.count.*did you mean "now"'),
        (lambda index: index.exists({}, where=1), TypeError, "Index.exists.*the keywords are tags,"),
        (lambda index: index.match(), TypeError, r"^Index\.match\(\) missing"),
        (lambda index: index.top_k({}, n=3), TypeError, "^Index.top_k.*did you mean `k`"),
        (lambda index: index.top_k({}, min_scor=3), TypeError, "did you mean `min_score`"),
        (lambda index: index.top_k({}, colour=3), TypeError, "the keywords are event, k,"),
        (lambda index: index.match_batch([], colour=3), TypeError, r"^Index\.match_batch\(\) got"),
        (lambda index: index.add("b"), TypeError, r"^Index\.add\(\) missing"),
        (lambda index: index.match([{}]), TypeError, "not list; Index.match_batch takes several"),
        (lambda index: index.match(7), TypeError, "not int$"),
        (lambda index: index.match("events.jsonl"), tamis.EventError, "a string is JSON text; for a file"),
        (lambda index: index.match_batch("x.parquet"), tamis.EventError, "a string is JSON text; for a file"),
        (lambda index: index.match("{'x': 1}"), tamis.EventError, "JSON uses double quotes"),
        (lambda index: index.match_batch("{'x': 1}\n"), tamis.EventError, "JSON uses double quotes"),
        (lambda index: index.remove(7), tamis.UnknownIdError, "no subscription 7 .*: its ids are strings"),
        (lambda index: index.replace(7, "x = 1"), tamis.UnknownIdError, "its ids are strings"),
        (lambda index: index.set_priority(7, 1), tamis.UnknownIdError, "its ids are strings"),
        (lambda index: index[7], tamis.UnknownIdError, "its ids are strings"),
        (lambda index: index.remove_many([7]), tamis.UnknownIdError, "ids are strings; nothing was removed"),
        (lambda index: index.remove("z"), tamis.UnknownIdError, 'there is no subscription "z" in the index$'),
        (lambda index: tamis.Where("17"), tamis.ArgumentError, 'write "= 17"'),
        (lambda index: tamis.Where("x > 17"), tamis.ArgumentError, "leave out x"),
    ],
)
def test_a_wrong_argument_says_what_would_be_right(
    attempt: Callable[[Index], object], kind: type[Exception], said: str
) -> None:
    index = Index()
    index.add("a", "x > 1")
    with pytest.raises(kind, match=said):
        attempt(index)


def test_methods_are_named_as_users_know_them() -> None:
    for name in dir(Index):
        method = getattr(Index, name)
        if callable(method) and not name.startswith("_"):
            assert method.__qualname__ == f"Index.{name}"
    assert pickle.loads(pickle.dumps(Index.top_k)) is Index.top_k
