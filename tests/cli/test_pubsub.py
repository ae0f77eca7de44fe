"""`tamis router`, `publish`, `subscribe` and `pubsub`: real processes on a log in a file."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from cli.conftest import Command
from pubsub.router_processes import RouterProcess, metric


def get(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_from_publisher_to_subscriber(tamis: Command, tmp_path: Path) -> None:
    log = f"sqlite:{tmp_path}/site.db"
    with RouterProcess(tmp_path, "--log", log, "--listen", "127.0.0.1:0") as router:
        address = router.until("listening")["address"]
        router.until("ready")
        listening = subprocess.Popen(
            [sys.executable, "-m", "tamis.cli", "subscribe", "price < 15", "--log", log, "--count", "2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert listening.stderr is not None
        assert "subscribed as subscriber/cli at main; ends after 2 events" in listening.stderr.readline()
        events = b'{"price": 12}\n{"price": 20}\n\n{"price": 9}\n'
        published = tamis("publish", "--log", log, stdin=events)
        assert (published.code, published.out) == (0, "1\n2\n3\n")
        out, _ = listening.communicate(timeout=60)
        assert [json.loads(line)["event"]["price"] for line in out.splitlines()] == [12, 9]
        assert listening.returncode == 0

        kept = tamis("publish", "--log", log, '{"price": 1}', "[1]")
        assert kept.code == 2
        assert "event 2: an event must be a JSON object" in kept.err

        status = json.loads(tamis("pubsub", "status", "--log", log).out)
        assert status["site"] == "main"
        assert status["last_event"] == 4
        assert status["subscriptions"] == 0
        [name] = status["routers"]
        assert {one["router"] for one in status["partitions"]} == {name}

        code, text = get(address, "/metrics")
        assert code == 200
        assert metric(text, "tamis_router_deliveries_total") == 2
        assert metric(text, "tamis_router_ready") == 1
        assert get(address, "/health")[0] == 200
        assert json.loads(get(address, "/ready")[1])["ready"] is True
        assert get(address, "/other")[0] == 404

        assert tamis("pubsub", "drain", "nobody", "--log", log).code == 2
        assert tamis("pubsub", "drain", name, "--log", log).code == 0
        assert router.process.wait(60) == 0
        assert router.lines()[-1]["event"] == "stopped"


@pytest.mark.thorough
def test_ls_replay_and_rm(tamis: Command, tmp_path: Path) -> None:
    log = f"sqlite:{tmp_path}/site.db"
    # `--count` never comes: without a router, the subscription is taken back by SIGTERM and kept with --keep.
    command = [
        sys.executable,
        "-m",
        "tamis.cli",
        "subscribe",
        "n > 0",
        "--log",
        log,
        "--name",
        "ann",
        "--keep",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        waiting.stderr.readline()
        waiting.send_signal(signal.SIGTERM)
        assert waiting.wait(60) == 128 + signal.SIGTERM
    tamis("publish", "--log", log, '{"n": 1}', '{"n": 2}')
    with RouterProcess(tmp_path, "--log", log) as router:
        router.until("ready")
        heard = tamis("subscribe", "n > 0", "--log", log, "--name", "ann", "--keep", "-c", 2)
        assert [json.loads(line)["event"]["n"] for line in heard.out.splitlines()] == [1, 2]
        [ann] = [json.loads(line) for line in tamis("pubsub", "ls", "--log", log).out.splitlines()]
        assert (ann["subscriber"], ann["waiting"]) == ("ann", 0)
        assert tamis("pubsub", "replay", "ann", "--log", log).out == "2 events again\n"
        again = tamis("subscribe", "n > 0", "--log", log, "--name", "ann", "--keep", "-c", 2)
        assert again.out == heard.out
        assert tamis("pubsub", "rm", "ann", "--log", log).code == 0
        assert tamis("pubsub", "ls", "--log", log).out == ""
        for command_name in ("rm", "replay"):
            missing = tamis("pubsub", command_name, "ann", "--log", log)
            assert (missing.code, "there is no subscriber ann" in missing.err) == (2, True)
        assert router.stop() == 0


@pytest.mark.thorough
def test_a_router_reads_its_config_file_and_reads_it_again(tmp_path: Path, tamis: Command) -> None:
    config = tmp_path / "router.toml"
    base = f'log = "sqlite:{tmp_path}/site.db"\nsite = "paris"\nlisten = "127.0.0.1:0"\nname = "r1"\n'
    config.write_text(base + f'snapshot = "{tmp_path}/paris.tamis"\n[grants.ann]\nattributes = ["price"]\n')
    with RouterProcess(tmp_path, str(config)) as router:
        router.until("ready")
        log = f"sqlite:{tmp_path}/site.db"
        refused = tamis("subscribe", "secret = 1", "--log", log, "--name", "ann", "-c", 1)
        assert (refused.code, "may not name secret, only price" in refused.err) == (2, True)
        config.write_text(base + '[grants.ann]\nattributes = ["price", "secret"]\n')
        router.process.send_signal(signal.SIGHUP)
        router.until("reloaded")
        tamis("publish", "--log", log, '{"price": 1}')
        config.write_text("nonsense = 1")
        router.process.send_signal(signal.SIGHUP)
        assert "there is no key `nonsense`" in router.until("not reloaded")["error"]
        assert router.stop() == 0
    assert (tmp_path / "paris.tamis").exists()
    # It starts again from its snapshot, under the same name.
    with RouterProcess(tmp_path, str(config)) as again:
        assert again.process.wait(60) == 2
    config.write_text(base)
    with RouterProcess(tmp_path, str(config)) as third:
        third.until("ready")
        assert third.stop() == 0


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "`log` is missing"),
        ("log = 3", "`log` must be text, not 3"),
        ('log = "x"', "a log is sqlite:PATH or nats://HOST:PORT/SITE"),
        ('log = "sqlite:x"\nbatsh = 3', "there is no key `batsh`: did you mean `batch`?"),
        ('log = "sqlite:x"\nbatch = 0', "`batch` must be a whole number from 1 to 1000"),
        ('log = "sqlite:x"\nlease_seconds = nan', "`lease_seconds` must be a number of seconds above 0"),
        ('log = "sqlite:x"\n[interest]\nmeasure = "size"', "`interest.measure` must be accuracy"),
        ('log = "sqlite:x"\n[grants.ann]\nfilter = "price <"', "`grants.ann.filter`"),
        ('log = "sqlite:x"\n[neighbours]\nmain = "sqlite:y"', "a site is not its own neighbour"),
        ('log = "sqlite:x"\nlisten = "0.0.0.0:1"', "is reached from other machines"),
        ('log = "nats://10.1.2.3:4222/x"', "anyone may read and write it there"),
        (
            'log = "sqlite:x"\n[neighbours]\nb = "nats://example.org:4222/x"',
            "anyone may read and write it there",
        ),
        ("log = ", "is no TOML"),
    ],
)
def test_a_wrong_config_says_what_would_be_right(
    tamis: Command, tmp_path: Path, text: str, part: str
) -> None:
    config = tmp_path / "router.toml"
    config.write_text(text)
    finished = tamis("router", config)
    assert finished.code == 2
    assert part in finished.err


def test_a_router_needs_a_log(tamis: Command, tmp_path: Path) -> None:
    assert "which log?" in tamis("router").err
    assert "a config file and options" in tamis("router", tmp_path / "x.toml", "--log", "sqlite:x").err
    assert "cannot read" in tamis("router", tmp_path / "x.toml").err
    assert "is no log, or is damaged" in tamis("pubsub", "status", "--log", f"sqlite:{__file__}").err
