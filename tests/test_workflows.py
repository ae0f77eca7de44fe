"""The workflows of hosted CI: pinned, with few rights, calling what exists. actionlint checks the rest."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", ())]


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.stem)
def workflow(request: pytest.FixtureRequest) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(request.param.read_text())
    return loaded


def test_actions_are_pinned(workflow: dict[str, Any]) -> None:
    for step in steps(workflow):
        if "uses" in step:
            assert re.fullmatch(r"[\w./-]+@((release/)?v\d+|[0-9a-f]{40})", step["uses"]), step["uses"]


def test_rights_are_given_to_the_jobs_that_need_them(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "timeout-minutes" in job or "uses" in job


def test_make_targets_and_scripts_exist(workflow: dict[str, Any]) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for step in steps(workflow):
        command = step.get("run", "")
        for named in re.findall(r"^make ([a-z -]+)$", command, re.MULTILINE):
            assert set(named.split()) <= targets, command
        for script in re.findall(r"\b((?:tests|tools)/\w+\.py)", command):
            assert (ROOT / script).exists(), script


def test_no_package_index_is_named() -> None:
    for path in [*WORKFLOWS, ROOT / "Makefile"]:
        assert not re.search(r"(pypi|crates|rust-lang|golang)\.(org|io)", path.read_text()), path.name
