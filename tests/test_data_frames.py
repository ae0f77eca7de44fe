"""Subscriptions from data frames as people have them."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis


def test_a_misspelt_column_of_a_table_is_named() -> None:
    with pytest.warns(tamis.UnknownColumnWarning, match="`prority` is not read: did you mean `priority`"):
        tamis.Index().add_table(pa.table({"id": [1], "expression": ["x > 1"], "prority": [2.0]}))
    with pytest.raises(tamis.ArgumentError, match="did you mean `expresion`"):
        tamis.Index().add_table(pa.table({"id": [1], "expresion": ["x > 1"]}))


def test_a_data_frame_as_people_have_it() -> None:
    frame = pd.DataFrame(
        {
            "id": [1.0, 2.0],  # as pandas has integers of which one was missing
            "expression": pd.Categorical(["x > 1", "x > 2"]),
            "expires": ["2030-01-01", "2030-01-01T12:00:00"],
        }
    )
    index = tamis.Index()
    index.add_table(frame)
    assert index.match({"x": 3}) == [1, 2]
    with pytest.raises(tamis.ArgumentError, match="numbers with a fraction"):
        tamis.Index().add_table(frame.assign(id=[1.5, 2.0]))
    with pytest.raises(TypeError, match="a list of strings for each row"):
        tamis.Index().add_table(frame.assign(tags=["a;b", "c"]))
    with pytest.raises(TypeError, match=r"call \.collect\(\) first"):
        tamis.Index().add_table(pl.from_pandas(frame).lazy())
    with pytest.raises(tamis.EventError, match="give each column one type"):
        index.match_batch(pd.DataFrame({"x": [1, "a"]}))


def test_categories_of_polars() -> None:
    frame = pl.DataFrame({"id": ["a"], "expression": pl.Series(["x > 1"], dtype=pl.Categorical)})
    index = tamis.Index()
    index.add_table(frame)
    assert index.match({"x": 2}) == ["a"]
