"""The engines that rules come from, run beside Tamis: json-logic-js from npm, Event Ruler from Maven."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TOOLS = ROOT / ".tools" / "engines"


def json_logic(cases: list[Any]) -> list[Any]:
    """What json-logic-js says of pairs of a rule and data."""
    program = str(HERE / "judge_json_logic.cjs")
    return _answers(["node", program, str(_json_logic_js())], cases)


def event_ruler(cases: list[Any]) -> list[Any]:
    """What Event Ruler says of pairs of a pattern and an event."""
    return _answers(["java", "-cp", _event_ruler_classes(), "JudgeEventRuler"], cases)


@cache
def _json_logic_js() -> Path:
    package = TOOLS / "npm" / "node_modules" / "json-logic-js" / "logic.js"
    if not package.exists():
        (TOOLS / "npm").mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-save", "--prefix", str(TOOLS / "npm"), "json-logic-js@2.0.5"]
        subprocess.run(install, check=True, capture_output=True, timeout=300)
    return package


@cache
def _event_ruler_classes() -> str:
    jars, classes = TOOLS / "java" / "lib", TOOLS / "java" / "classes"
    if not list(jars.glob("event-ruler-*.jar")):
        pom = ROOT / "bench" / "peers" / "java" / "pom.xml"
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *copy], check=True, timeout=600)
    javac = shutil.which("javac") or "javac"
    program = str(HERE / "JudgeEventRuler.java")
    subprocess.run([javac, "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), program], check=True)
    return f"{classes}:{jars}/*"


def _answers(command: list[str], cases: list[Any]) -> list[Any]:
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=300)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(cases)
    return answers
