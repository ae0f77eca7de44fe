"""The example of intrusion detection finds what was hidden, and draws it."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "intrusion.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    specification = importlib.util.spec_from_file_location("intrusion", EXAMPLE)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_each_attack_is_found_and_little_else(example: ModuleType) -> None:
    alerts = example.detect(example.traffic())
    found = {rule: [alert for alert in alerts if alert.query == rule] for rule in example.RULES}
    assert {alert.events[-1]["attack"] for alert in found["spraying"]} == {"spraying"}
    [guessed] = found["brute force"]
    assert guessed.events[-1]["attack"] == "brute force"
    assert guessed.row["a"] >= 10
    assert [alert.events[0]["attack"] for alert in found["hijacking"]] == ["hijacking"]
    assert found["storm"]
    assert {alert.events[-1]["attack"] for alert in found["storm"]} <= {"spraying", ""}


@pytest.mark.thorough
def test_the_page_has_a_chart_of_all_alerts(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example.main(tmp_path / "alerts.html")
    page = (tmp_path / "alerts.html").read_text()
    assert "<figure" in page
    assert "hijacking" in page
    assert "alerts, written to" in capsys.readouterr().out
