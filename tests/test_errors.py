"""Exceptions: one base, the built-in bases that callers expect, and a way through pickle."""

import pickle

import pytest

import tamis


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
