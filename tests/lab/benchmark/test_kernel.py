"""The benchmark command: all figures are there, positive, and kept with their circumstances."""

import json
import math
from pathlib import Path

import pytest

from pages import Page
from tamis_lab.benchmark.kernel import WORKLOADS, run
from tamis_lab.benchmark.measure import Effort, measure

TINY = Effort(seconds=0.01, most_events=64, batch_events=64, updates=50, scan_sample=200, scan_events=3)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_figure_is_measured(name: str) -> None:
    steps: list[str] = []
    figures = measure(WORKLOADS[name](400, 1), TINY, steps.append)
    values = vars(figures)
    assert all(math.isfinite(value) for value in values.values())
    assert all(value > 0 for figure, value in values.items() if figure != "matches_per_event")
    assert figures.count_p50 <= figures.count_p99
    assert figures.scan_ratio > 0
    assert steps


@pytest.mark.thorough
def test_results_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["equality"], scales="500", seed=3, output=tmp_path, effort=TINY)
    (path,) = tmp_path.glob("kernel-*.json")
    report = json.loads(path.read_text())
    assert report["environment"]["seed"] == 3
    assert report["results"][0]["subscriptions"] == 500
    assert report["results"][0]["figures"]["count_p50"] > 0
    assert len(Page((tmp_path / "kernel.html").read_text()).charts) == 3
    assert "equality" in capsys.readouterr().out


def test_an_unknown_workload_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no workload 'nonsense'"):
        run(["nonsense"], output=tmp_path)
