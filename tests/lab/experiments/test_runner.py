"""Experiments are found, run, printed and kept."""

import json
from pathlib import Path

import numpy as np
import pytest

from pages import Page
from tamis_lab.experiments import Experiment, Result, Row, discover, parse_scale, run
from tamis_lab.experiments.contract import Scale


def _experiment(name: str, value: float) -> Experiment:
    def measure(scale: Scale, rng: np.random.Generator) -> Result:
        size = scale.of(small=10, paper=1_000)
        return Result(
            rows=[Row("speed <b>", 2.0, value, "a note"), Row("random", None, float(rng.random()))],
            lines={"ours": [(size, 1.0), (size * 10, 2.0)]},
            axes=("size", "seconds"),
        )

    return Experiment(name, "Author 2001", "Figure 7", "How fast?", measure)


def test_every_experiment_is_found_under_its_own_name() -> None:
    found = discover()
    assert "abe-gen-sharing" in found
    assert all(experiment.name == name for name, experiment in found.items())
    assert list(found) == sorted(found)


def test_sharing_at_the_small_scale() -> None:
    result = discover()["abe-gen-sharing"].run(parse_scale("small"), np.random.default_rng(1))
    predicates, subexpressions, _ = result.rows
    assert predicates.ratio == pytest.approx(1, abs=0.05)
    assert subexpressions.ratio == pytest.approx(1, abs=0.03)


def test_json_has_figures_and_circumstances(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(_experiment("one", 3.0), parse_scale("paper"), seed=7, output=tmp_path)
    record = json.loads((tmp_path / "one.json").read_text())
    assert record["rows"][0] == {"what": "speed <b>", "paper": 2.0, "ours": 3.0, "note": "a note"}
    assert record["environment"]["seed"] == 7
    assert {"commit", "machine", "versions", "time"} <= set(record["environment"])
    assert record["lines"]["ours"][0] == [1_000, 1.0]
    assert "1.50" in capsys.readouterr().out


def test_same_seed_same_result(tmp_path: Path) -> None:
    first, again, other = (
        run(_experiment("one", 3.0), parse_scale("small"), seed, tmp_path).rows[1].ours for seed in (1, 1, 2)
    )
    assert first == again != other


def test_one_report_of_all_without_anything_from_outside(tmp_path: Path) -> None:
    run(_experiment("one", 3.0), parse_scale("small"), 1, tmp_path)
    run(_experiment("two", 4.0), parse_scale("small"), 1, tmp_path)
    run(_experiment("one", 8.0), parse_scale("small"), 1, tmp_path)
    text = (tmp_path / "report.html").read_text()
    page = Page(text)
    assert page.loads == []
    assert page.tags.count("h2") == 2
    assert len(page.charts) == 4, "lines, and ratios to the paper, of both"
    assert "speed &lt;b&gt;" in text
    assert "4.00" in text  # 8 over 2: the rerun replaced the first section


@pytest.mark.parametrize("text", ["huge", "0", "-5", "1.5", "K"])
def test_bad_scales_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_scale(text)
