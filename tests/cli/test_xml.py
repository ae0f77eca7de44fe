"""`tamis match --xml`: XML files as events."""

from pathlib import Path

import pytest

from cli.conftest import Command

RULES = """\
id,expression
dear,"xpath(doc, '/news/item[price > 5]')"
german,"xpath(doc, '//item[@lang = ''de'']') AND file LIKE '%.xml'"
"""
DOCUMENTS = {
    "a.xml": b"<news><item lang='en'><price>7</price></item></news>",
    "b.xml": b"<news><item lang='de'><price>3</price></item></news>",
    "c.xml": b"<news>\n<item lang='de'></news>",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.csv").write_text(RULES.replace("''", "\\'"))
    for name, data in DOCUMENTS.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def test_files_are_events(tamis: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    finished = tamis("match", "rules.csv", "--xml", *DOCUMENTS)
    assert finished.code == 0
    assert finished.out.splitlines() == [
        '{"event": "a.xml", "subscription": "dear"}',
        '{"event": "b.xml", "subscription": "german"}',
    ]
    assert "c.xml:2:17: </item> is expected" in finished.err


def test_a_document_from_a_pipe(tamis: Command, folder: Path) -> None:
    finished = tamis("match", folder / "rules.csv", "--xml", stdin=DOCUMENTS["a.xml"])
    assert (finished.code, finished.err) == (0, "")
    assert finished.out == '{"event": "-", "subscription": "dear"}\n'


def test_what_goes_wrong(tamis: Command, folder: Path) -> None:
    missing = tamis("match", folder / "rules.csv", "--xml", folder / "no.xml")
    assert missing.code == 2
    assert "no.xml: No such file" in missing.err
    several = tamis("match", folder / "rules.csv", folder / "a.xml", folder / "b.xml")
    assert several.code == 2
    assert "add --xml" in several.err
