"""The comparison of two commits: it notices slower figures and different answers, and nothing else."""

import doctest
import importlib
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import compare
import tamis
from comparison import builds, figures, golden, inputs, report, turns, verdict
from comparison.side import Side, SideError
from tamis_lab.benchmark.environment import describe

PACKAGE = Path(tamis.__file__).parents[1]
MODULES = ("golden", "golden_inputs", "report", "turns", "verdict")


@pytest.mark.parametrize("module", [importlib.import_module(f"comparison.{name}") for name in MODULES])
def test_examples(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert failed == 0
    assert tried or module is turns


# --- the verdict -----------------------------------------------------------------------------------------


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    dice = random.Random(7)
    held = 0
    for _ in range(4_000):
        # Skewed, with outliers: a machine that others use.
        found = verdict.estimate(
            [dice.lognormvariate(0, 0.05) * (1 + (dice.random() < 0.1)) for _ in range(15)]
        )
        # The median of that mixture, a little above that of its body, lies at 1.007.
        held += found.low <= 1.007 <= found.high
    assert 0.95 <= held / 4_000 <= 0.98


def test_fifteen_pairs_drop_three_ratios_at_either_end() -> None:
    ratios = [1 + number / 100 for number in range(15)]
    found = verdict.estimate(random.Random(3).sample(ratios, 15))
    assert (found.ratio, found.low, found.high) == (1.07, 1.03, 1.11)
    assert found.confidence == pytest.approx(0.9648, abs=1e-4)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([1.05] * 15, "slower"),
        ([0.9] * 15, "faster"),
        ([1.02] * 15, "same"),
        ([1.0] * 11 + [9.0] * 4, "same"),
        ([1.02] * 4 + [1.5] * 11, "same"),
        ([1.02] * 3 + [1.5] * 12, "slower"),
        ([2.0] * 5, "too few pairs"),
    ],
)
def test_only_an_interval_beyond_three_percent_is_a_difference(ratios: list[float], expected: str) -> None:
    assert verdict.estimate(ratios).verdict == expected


# --- measuring -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> inputs.Inputs:
    return inputs.prepare("dense", 400, seed=3, cache=tmp_path_factory.mktemp("cache"))


@pytest.mark.thorough
def test_a_side_measured_against_itself_gives_every_figure_and_the_same_answers(
    small: inputs.Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "ROUND_NS", 3e6)
    build = builds.library(PACKAGE)
    found = turns.compare(build, build, small, list(figures.GROUPS), pairs=1)
    assert found.different == []
    assert sorted(figure.name for figure in found.figures) == sorted(sum(figures.GROUPS.values(), ()))
    assert sorted(figures.TITLES) == sorted(figure.name for figure in found.figures)
    assert all(len(figure.ratios) == 1 and figure.base[0] > 0 for figure in found.figures)
    memory = next(figure for figure in found.figures if figure.name == "memory")
    assert memory.ratios == [1.0]


@pytest.fixture
def worse(tmp_path: Path) -> builds.Build:
    """The package with a `count` that takes twice the time and a `match` that loses the first id."""
    shutil.copytree(PACKAGE / "tamis", tmp_path / "worse" / "tamis", ignore=shutil.ignore_patterns("*cache*"))
    with (tmp_path / "worse" / "tamis" / "index.py").open("a") as source:
        source.write(
            "\n_count, _match = Index.count, Index.match\n"
            "Index.count = lambda *event, **by: max(_count(*event, **by) for _ in range(2))\n"
            "Index.match = lambda self, event, **by: _match(self, event, **by)[1:]\n"
        )
    return builds.library(tmp_path / "worse")


@pytest.mark.slow
def test_a_slower_side_and_wrong_answers_are_noticed(
    small: inputs.Inputs, worse: builds.Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "ROUND_NS", 3e6)
    found = turns.compare(builds.library(PACKAGE), worse, small, ["single"], pairs=2)
    ratios = {figure.name: figure.ratios for figure in found.figures}
    # More than once and less than three times: what the second count costs beside converting the dict.
    assert all(1.2 < ratio < 3 for ratio in ratios["dict"])
    assert all(0.5 < ratio < 1.2 for ratio in ratios["count"]), "time inside the kernel is not affected"
    assert found.different == ["match, as built"]


@pytest.mark.thorough
def test_a_side_that_fails_says_so(
    small: inputs.Inputs, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Side(PACKAGE, small.folder) as side:
        side.wait_until_ready()
        with pytest.raises(SideError, match="ended with status 1"):
            side.ask("round", figure="nonsense", first=0, count=1, repeats=1)
    assert "KeyError: 'nonsense'" in capfd.readouterr().err
    (tmp_path / "elsewhere").mkdir()
    with Side(tmp_path / "elsewhere", small.folder) as side, pytest.raises(SideError):
        side.wait_until_ready()
    assert "but Python imported" in capfd.readouterr().err


def test_the_report_has_the_circumstances_and_every_ratio(tmp_path: Path) -> None:
    measured = [figures.Figure("count", "dense", 1_000, "µs", [1.1] * 6, [2.0] * 6, [2.2] * 6)]
    circumstances = {"environment": {"time": "2026-01-31T12:00:00+00:00"}, "base": "a", "head": "b"}
    path = report.write(measured, ["golden: match"], circumstances, tmp_path)
    written = json.loads(path.read_text())
    assert written["base"] == "a"
    assert written["different_answers"] == ["golden: match"]
    assert written["results"][0]["verdict"] == "slower"
    assert written["results"][0]["ratios"] == [1.1] * 6
    assert path.with_suffix(".md").read_text().count("\n") == 3


def test_runs_side_by_side_become_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def write(folder: str, ratio: float, pairs: int, head: str = "b") -> Path:
        measured = [
            figures.Figure("count", "dense", 1_000, "µs", [ratio] * pairs, [2.0] * pairs, [2.0] * pairs)
        ]
        environment = {"time": "2026-01-31T12:00:00+00:00", **environment_of_this_machine}
        circumstances = {"environment": environment, "base": "a", "head": head}
        return report.write(
            measured, ["dense: match"] if folder == "x" else [], circumstances, tmp_path / folder
        )

    environment_of_this_machine = {k: v for k, v in describe(seed=1).items() if k != "time"}
    paths = [write("x", 1.1, 4), write("y", 1.1, 4), write("z", 0.9, 1)]
    assert compare.main(["--reports", *map(str, paths)]) == 1
    shown = capsys.readouterr().out
    assert "slower" in shown
    assert "answers differ: dense: match" in shown
    (whole,), _ = report.joined(paths)
    assert whole.ratios == [1.1] * 8 + [0.9]
    assert compare.main(["--reports", str(write("w", 1.0, 6))]) == 0
    with pytest.raises(ValueError, match="different sides"):
        report.joined([paths[0], write("v", 1.0, 6, head="c")])


# --- the command -----------------------------------------------------------------------------------------


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = builds.ROOT / "bench" / "compare.py"
    return subprocess.run(
        [sys.executable, str(program), *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "name the commit to compare with"),
        (["no-such-branch"], "'no-such-branch' is no commit"),
        (["--libraries", str(builds.ROOT), str(builds.ROOT)], "has no compiled tamis"),
        (["--libraries", str(PACKAGE), str(PACKAGE), "--only", "speed"], "there are no figures 'speed'"),
        (["--libraries", str(PACKAGE), str(PACKAGE), "--workloads", "x"], "there is no workload 'x'"),
    ],
)
def test_wrong_arguments_are_explained(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])  # the command adds what it measures
    try:
        status = compare.main(arguments)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert expected in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.thorough
def test_the_exit_status_tells_that_an_answer_differs(
    worse: builds.Build, small: inputs.Inputs, tmp_path: Path
) -> None:
    (tmp_path / "cache" / "inputs").mkdir(parents=True)
    shutil.copytree(small.folder, tmp_path / "cache" / "inputs" / "dense-400-3")
    finished = _run(
        *("--libraries", str(PACKAGE), str(worse.folder), "--workloads", "dense", "--scales", "400"),
        *("--seed", "3", "--pairs", "1", "--only", "memory", "--cache", str(tmp_path / "cache")),
        *("--output", str(tmp_path / "results")),
    )
    assert finished.returncode == 1, finished.stderr
    assert "answers differ: dense, 400: match, as built" in finished.stderr
    (written,) = (tmp_path / "results").glob("*.json")
    assert json.loads(written.read_text())["different_answers"] == ["dense, 400: match, as built"]


# --- what is built ---------------------------------------------------------------------------------------


def test_the_working_tree_is_taken_with_its_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "ROOT", tmp_path)
    for name, value in builds.AUTHOR.items():
        monkeypatch.setenv(name, value)

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "--quiet")
    (tmp_path / ".gitignore").write_text("ignored\n")
    (tmp_path / "changed").write_text("before\n")
    git("add", "--all")
    git("commit", "--quiet", "-m", "first")
    head = git("rev-parse", "HEAD")
    assert builds._working_tree()[0] == head

    for name in ("changed", "new", "ignored"):
        (tmp_path / name).write_text("after\n")
    commit, name = builds._working_tree()
    assert name.endswith("+changes")
    assert git("ls-tree", "--name-only", commit).split() == [".gitignore", "changed", "new"]
    assert git("show", f"{commit}:changed") == "after"
    assert git("rev-parse", "HEAD") == head
    assert git("diff", "--cached", "--name-only") == "", "the index of the user is untouched"


def test_differences_name_what_is_missing() -> None:
    assert golden.differences({"match": "1", "gone": "2"}, {"match": "1"}) == ["gone"]
