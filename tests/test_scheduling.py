"""Files that use Spark share two sessions: none is missed by how it writes the type of the fixture."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
from xdist.remote import Producer

from scheduling import ROOT, SPARK_SESSIONS, SparkFilesTogether, uses_spark


def takes_spark(file: Path) -> bool:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return any(
        test.name.startswith("test_") and "spark" in [argument.arg for argument in test.args.args]
        for test in tests
    )


@pytest.mark.thorough
def test_every_file_that_uses_spark_is_known() -> None:
    files = [file for file in (ROOT / "tests").rglob("test_*.py") if takes_spark(file)]
    assert len(files) > 10
    assert [str(file) for file in files if not uses_spark(str(file.relative_to(ROOT)))] == []


class Process:
    """A process as the scheduler sees it."""

    def __init__(self) -> None:
        self.shutting_down = False
        self.gateway = SimpleNamespace(id="process")
        self.given: list[int] = []

    def send_runtest_some(self, tests: list[int]) -> None:
        self.given += tests

    def shutdown(self) -> None:
        self.shutting_down = True


def test_three_processes_share_the_files_about_spark_and_every_test_runs_once() -> None:
    files = [str(file.relative_to(ROOT)) for file in sorted((ROOT / "tests").rglob("test_*.py"))]
    tests = [f"{file}::test_{number}" for file in files for number in range(3)]
    config = SimpleNamespace(
        getvalue=lambda _: ["popen"] * 5, option=SimpleNamespace(loadscopereorder=True, tx=["popen"] * 5)
    )
    scheduler = SparkFilesTogether(config, Producer("test", enabled=False))
    processes = [Process() for _ in range(5)]
    for process in processes:
        scheduler.add_node(process)
        scheduler.add_node_collection(process, tests)
    scheduler.schedule()
    done = [0] * len(processes)
    while scheduler.has_pending:
        for at, process in enumerate(processes):
            if done[at] < len(process.given):
                scheduler.mark_test_complete(process, process.given[done[at]])
                done[at] += 1
    assert sorted(test for process in processes for test in process.given) == list(range(len(tests)))
    ran = [{tests[test].split("::")[0] for test in process.given} for process in processes]
    assert sum(any(map(uses_spark, own)) for own in ran) == SPARK_SESSIONS
    assert all(process.shutting_down for process in processes)
