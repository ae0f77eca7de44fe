"""`tamis workload`, and that what it writes is what the other commands read."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cli.conftest import Command
from tamis_lab.workloads import WORKLOADS, BookAuction
from tamis_lab.workloads.book_auction import OperandDistribution


def test_list_names_every_workload(tamis: Command) -> None:
    listed = tamis("workload", "list")
    assert listed.code == 0
    assert all(name in listed.out for name in WORKLOADS)


def test_write_is_what_the_class_generates(tamis: Command, tmp_path: Path) -> None:
    written = tamis(
        *("workload", "write", "book-auction", "--out", tmp_path / "auction", "--seed", 5),
        *("--subscriptions", 300, "--events", 40, "--advertisements", 20),
        *("--set", "distribution=reversed zipf", "--set", "classes=1,3", "--set", "swapped_captions=false"),
    )
    assert written.code == 0
    assert "300 subscriptions" in written.out
    workload = BookAuction(
        count=300,
        seed=5,
        distribution=OperandDistribution.REVERSED_ZIPF,
        classes=(1, 3),
        swapped_captions=False,
    )
    folder = tmp_path / "auction"
    assert pq.read_table(folder / "subscriptions.parquet").equals(workload.subscriptions_table())
    assert pq.read_table(folder / "events.parquet").drop("event_id").equals(workload.events_table(40))
    assert pq.read_table(folder / "advertisements.parquet").equals(next(workload.advertisements(0, 20)))


def test_same_seed_same_bytes(tamis: Command, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        tamis("workload", "write", "ads", "--out", tmp_path / folder, "--subscriptions", 500, "--events", 20)
    for name in ("subscriptions.parquet", "events.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("name", ["book-auction", "begen", "zipf-regions", "dblp-authors"])
def test_what_is_written_can_be_matched(tamis: Command, tmp_path: Path, name: str) -> None:
    options = ("--subscriptions", 2_000, "--events", 50, "--set", "seed=3")
    assert tamis("workload", "write", name, "--out", tmp_path, *options).code == 0
    matched = tamis("match", tmp_path / "subscriptions.parquet", tmp_path / "events.parquet", "--json")
    assert matched.code in (0, 1)
    assert matched.err == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("book-auctoin",), "there is no workload book-auctoin (hint: did you mean `book-auction`?)"),
        (
            ("begen", "--set", "clustres=3"),
            "begen has no parameter clustres (hint: did you mean `clusters`?)",
        ),
        (("begen", "--set", "clusters=few"), "few is not a value for clusters (hint: something like 4)"),
        (("begen", "--set", "clusters"), "clusters has no value"),
        (("begen", "--set", "match_probability=2"), "need a match_probability between 0 and 1, not 2.0"),
        (
            ("begen", "--advertisements", "3", "--subscriptions", "1", "--events", "1"),
            "has no advertisements",
        ),
    ],
)
def test_complaints(tamis: Command, tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    failed = tamis("workload", "write", *arguments, "--out", tmp_path)
    assert failed.code == 2
    assert complaint in failed.err
