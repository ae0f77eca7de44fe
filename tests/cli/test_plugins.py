"""Commands of other packages: found, lazy, unable to break or replace ours; and what is said without them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tamis

SITE = Path(next(path for path in sys.path if path.endswith("site-packages")))
SOURCE = Path(tamis.__file__).parents[1]


def run(*arguments: str, path: list[Path], isolated: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the command in a process that finds packages in these folders, and nowhere else if isolated."""
    code = "import sys; from tamis.cli import main; sys.argv[0] = 'tamis'; main()"
    environment = {**os.environ, "PYTHONPATH": ":".join(map(str, path)), "COLUMNS": "200"}
    flags = ["-S"] if isolated else []
    return subprocess.run(
        [sys.executable, *flags, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


@pytest.fixture
def without_lab(tmp_path: Path) -> list[Path]:
    """An environment with all that is installed but tamis-lab."""
    for package in SITE.iterdir():
        if not package.name.startswith(("tamis_lab", "_tamis_lab", "_editable_impl_tamis_lab")):
            (tmp_path / package.name).symlink_to(package)
    return [SOURCE, tmp_path]


def distribution(folder: Path, name: str, code: str, commands: str) -> None:
    """A package as `pip install` leaves it: a module, and a folder that says which entry points it has."""
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tamis.commands]\n{commands}\n")


@pytest.mark.parametrize("name", ["bench", "cost", "experiment", "workload"])
def test_who_lacks_the_laboratory_learns_where_the_command_is(without_lab: list[Path], name: str) -> None:
    finished = run(name, "list", path=without_lab, isolated=True)
    assert finished.returncode == 2
    assert finished.stderr == (
        f"tamis: `tamis {name}` is in the package tamis-lab, which is not installed "
        "(hint: in a checkout of Tamis: pip install ./lab)\n"
    )


@pytest.mark.thorough
def test_the_rest_works_without_the_laboratory(without_lab: list[Path]) -> None:
    shown = run("--help", path=without_lab, isolated=True)
    assert shown.returncode == 0
    assert "why-not" in shown.stdout
    assert "experiment" not in shown.stdout
    demo = run(
        "demo", "--library", "--subscriptions", "1000", "--events", "50", path=without_lab, isolated=True
    )
    assert demo.returncode == 0, demo.stderr


def test_the_laboratory_adds_its_commands() -> None:
    shown = run("--help", path=[])
    for part in ("Commands of tamis-lab", "bench", "cost", "experiment", "workload"):
        assert part in shown.stdout
    mistyped = run("experimnt", path=[])
    assert "Did you mean 'experiment'" in mistyped.stderr


def test_a_command_of_our_own_looks_for_no_other() -> None:
    code = (
        "import sys; from tamis.cli.app import run\n"
        "try: run(['check', '--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit('tamis_lab was imported' if 'tamis_lab' in sys.modules else 0)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_a_function_and_a_group_of_another_package(tmp_path: Path) -> None:
    code = (
        "import typer\n"
        "def hello(name: str = 'you') -> int:\n    'Say hello.'\n    typer.echo('hello ' + name)\n"
        "    return 1\n"
        "app = typer.Typer(help='Several.')\n"
        "@app.command()\ndef one() -> None:\n    'The first.'\n    typer.echo('one')\n"
        "@app.command()\ndef two() -> None:\n    'The second.'\n"
    )
    distribution(tmp_path, "greeter", code, "hello = greeter:hello\nseveral = greeter:app")
    shown = run("-h", path=[tmp_path]).stdout
    assert "Commands of greeter" in shown
    assert "Say hello." in shown
    greeted = run("hello", "--name", "Ann", path=[tmp_path])
    assert (greeted.returncode, greeted.stdout) == (1, "hello Ann\n")
    assert run("several", "one", path=[tmp_path]).stdout == "one\n"
    assert "--install-completion" not in run("several", "-h", path=[tmp_path]).stdout


def test_a_broken_package_breaks_no_other(tmp_path: Path) -> None:
    distribution(tmp_path, "broken", "import no_such_module", "oops = broken:app")
    shown = run("--help", path=[tmp_path])
    assert shown.returncode == 0
    assert "Measure matching" in shown.stdout
    assert "No module named 'no_such_module'" in shown.stdout
    called = run("oops", path=[tmp_path])
    assert called.returncode == 2
    assert "broken: broken:app cannot be loaded: ModuleNotFoundError" in called.stderr
    assert "Traceback" not in called.stderr


def test_no_package_replaces_our_commands(tmp_path: Path) -> None:
    code = "def check() -> None:\n    'Not ours.'\n    print('taken over')\n"
    distribution(tmp_path, "thief", code, "check = thief:check")
    assert "Not ours" not in run("--help", path=[tmp_path]).stdout
    assert "taken over" not in run("check", "no-such-file.csv", path=[tmp_path]).stdout
