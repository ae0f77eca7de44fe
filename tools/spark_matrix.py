"""Runs the tests of the pipeline on several releases of Spark, each in its own environment.

`make test-spark-matrix` runs all of them, with `SPARK_RELEASES="3.5 4.3"` some. A release is installed from
the package index into `.tools/spark/<release>` the first time; packages that Spark does not determine have
the version of `uv.lock`. The kernel is the one in `src`: it is built against the stable ABI, so every
environment can use it. Tests that need a later Spark say so (`spark_since`) and are left out of older ones.

`make test-thorough` runs a few tests on the oldest release.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent

RELEASES: dict[str, list[str]] = {
    # What each release was published with: Spark 3.5 knows neither NumPy 2 nor the Arrow that needs it.
    "3.5": ["numpy<2", "pyarrow<20", "setuptools"],
    "4.0": [],
    "4.1": [],
    "4.2": [],
    "4.3": [],
}

PACKAGES = [
    "altair>=5.5",
    "cryptography",
    "duckdb",
    "fsspec>=2024.9",
    "hypothesis",
    "lxml",
    "moto[s3,server]",
    "nats-py",
    "pandas>=2.2,<3",
    "pyarrow>=17",
    "pydantic>=2.7",
    "pytest>=8.3",
    "pytest-timeout",
    "pytest-xdist",
    "pyyaml",
    "rich",
    "s3fs",
    "typer",
    "vl-convert-python>=1.7",
]

BY_SPARK = re.compile(
    r"(pyspark|py4j|numpy|pandas|pyarrow|grpcio.*|googleapis-common-protos|protobuf|zstandard)=="
)
"""Packages whose version depends on the release of Spark."""

TESTS = [
    "tests/spark/test_match.py",
    "tests/spark/test_match_column.py",
    "tests/spark/test_odd_values.py",
    "tests/spark/test_plans.py",
    "tests/spark/test_silent_non_matches.py",
    "tests/spark/test_sql.py",
    "tests/spark/test_store.py",
    "tests/spark/test_single_writer.py",
    "tests/spark/test_history.py",
    "tests/spark/test_clusters.py",
    "tests/spark/test_stream_recovery.py",
    "tests/spark/test_template.py",
]
"""What depends on the release: connectors are tested with the one that they are published for."""


UV = ROOT / ".tools" / "bin" / "uv"


def environment(release: str, uv: Path = UV) -> Path:
    """The Python of an environment with a release, which is installed if it is not there."""
    folder = ROOT / ".tools" / "spark" / release
    python = folder / "bin" / "python"
    done = folder / ".installed"
    wanted = [f"pyspark[connect]=={release}.*", *PACKAGES, *RELEASES[release]]
    asked = "\n".join([*wanted, (ROOT / "uv.lock").read_text()])
    if not done.exists() or done.read_text() != asked:
        print(f"== Installing Spark {release} into .tools", flush=True)
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True)
        constraints = folder / "constraints.txt"
        constraints.write_text(locked(uv))
        command = [uv, "pip", "install", "--no-config", "--quiet", "--python", python]
        subprocess.run([*command, "--constraints", constraints, *wanted], check=True)
        done.write_text(asked)
    # By a file, because the workers of a Connect server do not get the variables of this process.
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    (packages / "tamis.pth").write_text("".join(f"{ROOT / folder}\n" for folder in ("src", "lab/src")))
    return python


def locked(uv: Path) -> str:
    """The versions of `uv.lock`, but for what a release of Spark decides, a line each."""
    command = [uv, "export", "--quiet", "--frozen", "--all-packages", "--all-extras", "--no-hashes"]
    command += ["--no-annotate", "--no-header", "--no-emit-workspace"]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return "".join(f"{line}\n" for line in told.splitlines() if not BY_SPARK.match(line))


def run_tests(python: Path, tests: list[str], *, slow: bool) -> tuple[int, str]:
    """Run tests in an environment: the exit status of pytest, and how many tests passed and failed."""
    variables = {**os.environ, "PYSPARK_PYTHON": str(python)}
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    command += ["-m", "slow or not slow" if slow else "not slow"]
    told = b""
    with subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, bufsize=0) as running:
        assert running.stdout is not None
        while chunk := running.stdout.read(1 << 16):  # as it comes: a line of dots takes minutes
            sys.stdout.buffer.write(chunk)
            sys.stdout.flush()
            told = (told + chunk)[-1000:]
    return running.returncode, counts(told.decode(errors="replace").strip().rpartition("\n")[2])


def counts(summary: str) -> str:
    """The counts in pytest's last line.

    >>> counts("2 failed, 10 passed, 1 skipped, 3 deselected, 7 warnings, 1 error in 4.21s")
    '10 passed, 2 failed, 1 skipped, 1 error'
    """
    found = {what: number for number, what in re.findall(r"(\d+) (passed|failed|skipped|error)", summary)}
    kinds = ("passed", "failed", "skipped", "error")
    return ", ".join(f"{found[what]} {what}" for what in kinds if what in found)


def exact_release(python: Path) -> str:
    """The release of Spark that an environment has."""
    ask = [python, "-c", "import pyspark; print(pyspark.__version__)"]
    return subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    """Run the matrix; 0 if every release passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("releases", nargs="*", default=list(RELEASES), metavar="RELEASE")
    parser.add_argument("--uv", type=Path, default=UV)
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="PATH")
    parser.add_argument("--slow", action="store_true", help="also those that take minutes: kills of drivers")
    given = parser.parse_args()
    unknown = [release for release in given.releases if release not in RELEASES]
    if unknown:
        parser.error(f"unknown releases: {', '.join(unknown)}; known are {', '.join(RELEASES)}")
    results = {}
    for release in given.releases:
        print(f"== Spark {release}", flush=True)
        started = time.monotonic()
        python = environment(release, given.uv)
        status, counted = run_tests(python, given.tests, slow=given.slow)
        results[exact_release(python)] = (status, counted, time.monotonic() - started)
    for release, (status, counted, seconds) in results.items():
        print(f"Spark {release}: {'ok' if status == 0 else 'FAILED'}: {counted}, in {seconds:.0f} s")
    return max((status for status, _, _ in results.values()), default=0)


if __name__ == "__main__":
    sys.exit(main())
