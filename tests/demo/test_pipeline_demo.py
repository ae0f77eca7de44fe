"""What `make demo` runs, on less data: each step shows its answer, the pipeline template among them."""

from pathlib import Path
from typing import Any

import pytest

from tamis.demo.pipeline import PIPELINE, run

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def test_the_demonstration_runs_the_template(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / PIPELINE).mkdir()
    (tmp_path / PIPELINE / "pipeline.py").write_text("raise SystemExit('of an earlier run')")
    report = run(subscriptions=2_000, events=1_000, out=tmp_path, session=spark)
    shown = capsys.readouterr().out
    for number in range(1, 6):
        assert f"\n{number}  " in shown
    assert "events read: 6, dead letters: 1" in shown
    assert "matches: 5, alerts: 5" in shown
    assert "alerts: 5; rules refused: 1" in shown
    assert "10:00 to 11:00  large: 1 alert, 1200.50" in shown
    pipeline = tmp_path / PIPELINE
    assert spark.read.parquet(str(pipeline / "alerts")).count() == 5
    assert spark.read.parquet(str(pipeline / "dead_letters")).count() == 1
    assert "dead letters" in (pipeline / "report.html").read_text()
    assert report.exists()
