"""Arrays that are put together from buffers are those that pyarrow makes."""

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis._lists import array

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
NUMBERS = st.floats(allow_nan=False) | st.integers(-(2**53), 2**53)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): NUMBERS,
    pa.string(): TEXTS,
    pa.large_binary(): st.binary(max_size=5),
    pa.list_(pa.string()): st.lists(st.none() | TEXTS, max_size=3),
    pa.map_(pa.string(), pa.float64()): st.lists(st.tuples(TEXTS, NUMBERS), max_size=3),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_as_pyarrow_makes_them(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=20))
    made = array(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1, "a"], pa.float64()), ([2**63], pa.int64()), (["a"], pa.int64()), ([5], pa.list_(pa.string()))],
)
def test_what_does_not_fit_is_refused_as_pyarrow_refuses_it(values: list[Any], kind: pa.DataType) -> None:
    with pytest.raises((pa.ArrowException, OverflowError)) as expected:
        pa.array(values, kind)
    with pytest.raises(type(expected.value)) as raised:
        array(values, kind)
    assert str(raised.value) == str(expected.value)


def test_a_command_does_not_wait_for_pandas(tmp_path: Any) -> None:
    """It takes longer to import than everything else together."""
    rules = tmp_path / "rules.csv"
    rules.write_text('id,expression,priority,weights,tags\na,x > 1,1.5,"{""x"": 1}",q4;q5\nb,x > 2,,,\n')
    code = (
        "import sys\n"
        "from tamis.cli.app import run\n"
        "try:\n"
        "    run(sys.argv[1:])\n"
        "finally:\n"
        "    slow = {'pandas', 'rich.console', 'asyncio', 'pyspark'}\n"
        "    print(sorted(slow & set(sys.modules)), file=sys.stderr)\n"
    )
    for arguments in (["match", str(rules), "-k", "1"], ["match", str(rules), "--key", "name", "--count"]):
        finished = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            input='{"x": 3, "name": "ann"}\n',
            capture_output=True,
            text=True,
            check=True,
        )
        assert finished.stdout.count("\n") == 1
        assert finished.stderr == "[]\n"


def test_names_of_weights_are_text() -> None:
    for weights in ({None: 1.0}, {1: 1.0}):
        with pytest.raises(TypeError, match="weights"):
            tamis.Index().add_many([1], ["x > 1"], weights=[weights])  # type: ignore[list-item]
