"""The service with two worker processes: they map one snapshot, follow it, and answer under load."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from servers import answers, free_port, stop, wait_for

HERE = Path(__file__).parents[2] / "examples" / "ads-service"
VISITOR = {"country": "CA", "temperature": -3, "device": "phone"}


def publish(campaigns: Path, snapshot: Path) -> None:
    command = [sys.executable, str(HERE / "publish.py"), str(campaigns), str(snapshot)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ads") / "ads.tamis"
    publish(HERE / "campaigns.csv", path)
    return path


@pytest.fixture(scope="module")
def service(snapshot: Path) -> Iterator[str]:
    port, log = free_port(), snapshot.with_name("log")
    command = [sys.executable, "-m", "uvicorn", "service:app", "--app-dir", str(HERE), "--workers", "2"]
    command += ["--port", str(port)]
    surroundings = {**os.environ, "ADS": str(snapshot), "ADS_INTERVAL": "0.05"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=surroundings, stdout=output, stderr=output)
    try:
        wait_for(lambda: answers(port), process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)


def health(service: str) -> dict[str, Any]:
    """One answer, over a connection of its own: any worker may take it."""
    return dict(httpx.get(f"{service}/health", timeout=60).json())


def of_both(service: str, is_right: Callable[[dict[str, Any]], bool]) -> dict[int, dict[str, Any]]:
    """Ask until two workers have given the answer that is waited for; the time limit is that of the test."""
    found: dict[int, dict[str, Any]] = {}
    while len(found) < 2:
        asking = [threading.Thread(target=ask, args=(service, is_right, found)) for _ in range(8)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        time.sleep(0.02)
    return found


def ask(service: str, is_right: Callable[[dict[str, Any]], bool], found: dict[int, dict[str, Any]]) -> None:
    answer = health(service)
    if is_right(answer):
        found[answer["worker"]] = answer


@pytest.mark.thorough
def test_answers_come_ranked_with_their_pages(service: str) -> None:
    answer = httpx.post(f"{service}/ads?k=2", json=VISITOR, timeout=60).json()
    assert [(ad["id"], ad["page"]) for ad in answer["ads"]] == [
        ("winter-sale", "/ads/winter-sale.html"),
        ("city-bikes", "/ads/city-bikes.html"),
    ]
    wrong = httpx.post(f"{service}/ads", content="[1]", timeout=60)
    assert wrong.status_code == 422


@pytest.mark.slow
@pytest.mark.thorough
def test_workers_share_one_snapshot_and_follow_it_under_load(service: str, snapshot: Path) -> None:
    before = of_both(service, lambda answer: answer["campaigns"] == 4)
    if Path("/proc/self/maps").exists():
        for worker in before:
            assert str(snapshot) in Path(f"/proc/{worker}/maps").read_text(), "the file is mapped, not copied"
    wrong: list[Any] = []
    enough = threading.Event()

    def load() -> None:
        with httpx.Client(timeout=60) as client:
            while not enough.is_set():
                answer = client.post(f"{service}/ads?k=1", json=VISITOR)
                if answer.status_code != 200 or answer.json()["ads"][0]["id"] not in ("winter-sale", "new"):
                    wrong.append(answer.text)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        more = snapshot.with_name("campaigns.csv")
        more.write_text((HERE / "campaigns.csv").read_text() + "new,country = 'CA',9.0,/ads/new.html\n")
        publish(more, snapshot)
        after = of_both(service, lambda answer: answer["campaigns"] == 5)
        assert set(after) == set(before), "no worker was restarted"
        assert all(after[worker]["generation"] > before[worker]["generation"] for worker in after)
        draft = snapshot.with_name("draft")
        draft.write_bytes(b"half a file")
        draft.replace(snapshot)
        damaged = of_both(service, lambda answer: answer["error"] is not None)
        assert all(answer["campaigns"] == 5 for answer in damaged.values()), json.dumps(damaged)
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[:3]
