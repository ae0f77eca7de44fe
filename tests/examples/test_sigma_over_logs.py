"""The example reads a log as a stream: each alert is out before the next line is in."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[2] / "examples" / "sigma-over-logs"


def test_alerts_come_while_the_log_is_written() -> None:
    command = [sys.executable, str(HERE / "watch_logs.py"), str(HERE / "rules")]
    events = (HERE / "events.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(events[0])
        process.stdin.flush()
        first = json.loads(process.stdout.readline())  # the log is still open
        assert (first["level"], first["line"]) == ("high", 1)
        process.stdin.writelines(events[1:])
        process.stdin.close()
        rest = [json.loads(line) for line in process.stdout]
        assert [(alert["line"], alert.get("level")) for alert in rest] == [
            (3, "critical"),
            (3, "medium"),
            (5, None),
        ]
        assert "1 refused because of a placeholder" in process.stderr.read()
    assert process.returncode == 0


def test_the_page_shows_what_the_example_writes() -> None:
    command = [sys.executable, str(HERE / "watch_logs.py"), str(HERE / "rules")]
    with (HERE / "events.jsonl").open() as events:
        ran = subprocess.run(command, stdin=events, capture_output=True, text=True, check=True)
    page = (HERE.parents[1] / "docs" / "log-stream.md").read_text(encoding="utf-8")
    assert ran.stderr + ran.stdout in page


def test_labelled_events_are_counted(tmp_path: Path) -> None:
    found, missed = "4b0d1bd7-0000-4000-8000-000000000001", "4b0d1bd7-0000-4000-8000-000000000002"
    system = {"EventID": 1, "Channel": "Sysmon", "Provider": {"#attributes": {"Name": "Sysmon"}}}
    for id, image in ((found, "cmd.exe"), (missed, "calc.exe")):
        detection = f"{{s: {{Image|endswith: {image}}}, f: {{User: SYSTEM}}, condition: s and not f}}"
        rule = tmp_path / "rules" / "windows" / f"{image}.yml"
        rule.parent.mkdir(parents=True, exist_ok=True)
        rule.write_text(
            f"title: {image}\nid: {id}\nlogsource: {{product: windows}}\ndetection: {detection}\n"
        )
        events = tmp_path / "regression_data" / image / f"{id}.json"
        events.parent.mkdir(parents=True)
        shown = [{"Event": {"System": system, "EventData": {"Image": name}}} for name in ("x", r"C:\cmd.exe")]
        events.write_text("\n".join(json.dumps(event, indent=2) for event in shown), encoding="utf-8")
    command = [sys.executable, str(HERE / "labelled_events.py"), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [
        "2 of 2 rules imported",
        "1 of 2 labelled files hold an event that their rule matches",
        f"not found: regression_data/calc.exe/{missed}.json",
    ]
