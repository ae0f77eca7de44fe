"""`make wheel`: what it builds holds the library and nothing else, and works where there is no Rust."""

import os
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from programs import RUST, path_without

ROOT = Path(__file__).parent.parent
UV = ROOT / ".tools" / "bin" / "uv"
PACKAGE = ROOT / "src" / "tamis"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make wheel` builds, from the kernel that is compiled for tests: seconds instead of minutes."""
    folder = tmp_path_factory.mktemp("dist")
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    command = ["make", "--no-print-directory", "wheel", f"DIST={folder}", "PROFILE=tests"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    [found] = dist.glob("*.whl")
    return found


def tracked(suffix: str) -> set[str]:
    """The files of the package as they are in the repository, or would be."""
    found = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob(f"*{suffix}")}
    return {name for name in found if "__pycache__" not in name}


@pytest.mark.thorough
def test_one_wheel_serves_every_python_from_3_11_on(wheel: Path) -> None:
    name, version, python, abi, _ = wheel.stem.split("-")
    assert (name, version, python, abi) == ("tamis", VERSION, "cp311", "abi3")


@pytest.mark.thorough
def test_the_wheel_holds_the_library_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    assert {PurePosixPath(name).parts[0] for name in names} == {"tamis", f"tamis-{VERSION}.dist-info"}
    assert {name for name in names if name.endswith(".py")} == tracked(".py")
    kernels = [name for name in names if PurePosixPath(name).suffix in (".so", ".pyd", ".dylib")]
    assert kernels == ["tamis/_kernel.abi3.so"]
    rest = {name for name in names if name.startswith("tamis/") and not name.endswith(".py")}
    template = {
        name for name in tracked("") if name.startswith("tamis/spark/template/") and not name.endswith(".py")
    }
    template = {name for name in template if PurePosixPath(name).suffix}
    others = tracked(".pyi") | tracked("py.typed") | tracked(".properties")
    assert rest - set(kernels) == others | template


@pytest.mark.thorough
def test_the_source_distribution_holds_what_building_needs(dist: Path) -> None:
    [found] = dist.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    manifests = {f"crates/{crate.name}/Cargo.toml" for crate in (ROOT / "crates").iterdir()}
    assert {"Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "LICENSE", "PKG-INFO"} <= names
    assert manifests <= names
    assert {f"src/{name}" for name in tracked(".py")} <= names
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "crates").glob("*/src/**/*.rs")}
    assert sources <= names
    assert {PurePosixPath(name).parts[0] for name in names if "/" in name} == {"crates", "src"}
    assert not [name for name in names if name.endswith((".so", ".pyc"))]


def environment(folder: Path, wheel: Path, extra: str = "") -> Path:
    """A virtual environment with the wheel, and what it needs as uv.lock pins it; no cargo is in reach."""
    path = path_without(folder / "bin", *RUST)
    settings = os.environ | {"PATH": path, "UV_PYTHON_DOWNLOADS": "never"}
    settings = {name: value for name, value in settings.items() if name != "VIRTUAL_ENV"}
    pinned = folder / "constraints.txt"
    export = [UV, "export", "--quiet", "--locked", "--all-extras", "--no-dev", "--no-hashes"]
    export += ["--no-emit-workspace", "--output-file", pinned]
    subprocess.run(export, cwd=ROOT, env=settings, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([UV, "venv", "--quiet", folder / "venv"], env=settings, check=True, cwd=folder)
    python = folder / "venv" / "bin" / "python"
    install = [UV, "pip", "install", "--quiet", "--python", python, "-c", pinned]
    subprocess.run([*install, f"{wheel}{extra}"], env=settings, check=True, cwd=folder)
    return python


def run(python: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run a command of the environment, far from the sources and from cargo."""
    folder = python.parents[2]
    settings = {
        "PATH": str(folder / "bin"),
        "HOME": str(folder),
        "JAVA_HOME": str(ROOT / ".tools" / "java"),
        "JAVA_TOOL_OPTIONS": os.environ["JAVA_TOOL_OPTIONS"],
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return subprocess.run(arguments, cwd=folder, env=settings, check=False, capture_output=True, text=True)


@pytest.mark.thorough
def test_the_tour_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path, wheel)
    assert shutil.which("cargo", path=str(tmp_path / "bin")) is None
    where = run(python, python, "-c", "import tamis; print(tamis.__file__, tamis.__version__)").stdout
    assert where.startswith(str(tmp_path / "venv"))
    assert where.endswith(f"{VERSION}\n")
    tour = run(python, python, ROOT / "tests" / "code_blocks.py", ROOT / "README.md", "pyspark")
    assert tour.returncode == 0, tour.stderr
    assert int(tour.stdout.split()[-3]) >= 5

    tamis = python.with_name("tamis")
    assert run(python, tamis, "--version").stdout == f"tamis {VERSION}\n"
    assert run(python, tamis, "demo", "--library", "--subscriptions", "1000").returncode == 0
    on_spark = run(python, tamis, "demo")
    assert on_spark.returncode == 2
    assert 'pip install "altair' in on_spark.stderr
    assert '"pyspark[connect]' in on_spark.stderr
    assert "Traceback" not in on_spark.stderr


@pytest.mark.slow  # starts Spark in another process
def test_the_whole_tour_works_with_spark(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path, wheel, "[spark]")
    tour = run(python, python, ROOT / "tests" / "code_blocks.py", ROOT / "README.md")
    assert tour.returncode == 0, tour.stderr
