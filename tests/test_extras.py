"""Missing extras: what is said names a command that works, also while Tamis is on no package index."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from seeds import first_of
from tamis._extras import install_command, missing_extra

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_the_command_names_what_the_extra_brings(extra: str) -> None:
    named = re.findall(r'"([^"]+)"', install_command(extra))
    assert sorted(named) == sorted(PROJECT["optional-dependencies"][extra])


def test_from_the_sources_alone_the_folder_is_named() -> None:
    code = (
        "import importlib.metadata as metadata\n"
        "def nothing(name): raise metadata.PackageNotFoundError(name)\n"
        "metadata.requires = nothing\n"
        "from tamis._extras import install_command\n"
        "print(install_command('spark'))"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown == "pip install '.[spark]' in Tamis' folder\n"


HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Hidden())
{code}
"""


COMMAND = "from tamis.cli import main; sys.argv = {!r}; main()"
DEMO = COMMAND.format(["tamis", "demo"])
JOB = COMMAND.format(["tamis", "spark", "run", "job.yaml"])
LOG = "import asyncio; from tamis.pubsub import open_log; asyncio.run(open_log('nats://127.0.0.1:1/main'))"
SESSION = "from tamis.spark.connectors.nats_session import NatsSession; NatsSession({}).__enter__()"
URL = "from tamis.store.directory import RemoteDirectory; RemoteDirectory('s3://a/b')"


@pytest.mark.parametrize(
    ("hidden", "code", "what", "extras"),
    first_of(
        [
            ("pyspark", "import tamis.spark", "tamis.spark", "spark"),
            ("nats", LOG, "a log on NATS", "nats"),
            ("fsspec", URL, "s3://a/b", "store"),
            ("vl_convert", "import tamis.chart_page", "a page with charts", "charts"),
            ("pyspark", DEMO, "`tamis demo`", "spark charts"),
            ("altair", DEMO, "`tamis demo`", "spark charts"),
            ("vl_convert", DEMO, "`tamis demo`", "spark charts"),
            ("pyspark", JOB, "`tamis spark`", "spark"),
            ("yaml", JOB, "`tamis spark`", "spark"),
            ("nats", SESSION, 'the format "nats"', "nats"),
        ],
        4,
    ),
)
def test_what_lacks_its_packages_says_so(hidden: str, code: str, what: str, extras: str) -> None:
    code = HIDE.format(packages=[hidden], code=code)
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert missing_extra(what, *extras.split()) in done.stderr


def test_no_page_or_message_asks_an_index_for_tamis() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    pages += [*(ROOT / "examples").rglob("*.py"), ROOT / "CONTRIBUTING.md"]
    asks = re.compile(r"""(pip install|uv add|uv pip install) +["']?tamis\b(?!-)""")
    found = [page.name for page in pages if asks.search(page.read_text()) and page.name != "_extras.py"]
    assert found == []
