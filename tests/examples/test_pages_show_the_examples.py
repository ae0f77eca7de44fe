"""The how-to pages show the files of the examples as they are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOWN = [
    (page, file, code)
    for page in sorted((ROOT / "docs").glob("*.md"))
    for file, code in re.findall(
        r'^```\w+ title="(examples/[^"]+)"\n(.*?)^```$', page.read_text(encoding="utf-8"), re.M | re.S
    )
]


@pytest.mark.parametrize(("page", "file", "code"), SHOWN, ids=[file for _, file, _ in SHOWN])
def test_the_page_shows_the_file(page: Path, file: str, code: str) -> None:
    assert (ROOT / file).read_text(encoding="utf-8") == code, f"{page.name} shows another {file}"


def test_every_program_of_the_examples_is_shown() -> None:
    shown = {file for _, file, _ in SHOWN}
    assert {"examples/ads-service/service.py", "examples/sigma-over-logs/watch_logs.py"} <= shown
