"""Detection rules in the manner of Sigma, and log records of Windows hosts, for `bench/patterns.py`.

A rule is a list of *selections*, each a list of tests on fields (field, modifier, values); it matches if one
selection does and none of its filters. Words are drawn from vocabularies with a long tail, as in public rule
sets: few programs occur in many rules, most arguments in one.

| share of the tests | field | modifier |
|---|---|---|
| 45 % | CommandLine | contains, also several words at once; a few wildcards and regular expressions |
| 25 % | Image, ParentImage | endswith, startswith, contains |
| 20 % | TargetFilename, TargetObject, ImageLoaded | endswith, contains |
| 10 % | OriginalFileName, User, EventID, IntegrityLevel | equal to one of some |
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Test = tuple[str, str, list[str]]
"""A field, how its value is compared (contains, all, startswith, endswith, is, like, re), and with what."""

SYLLABLES = (
    "ba",
    "cor",
    "dex",
    "fi",
    "gor",
    "hal",
    "in",
    "jo",
    "kel",
    "lum",
    "mar",
    "nex",
    "or",
    "pa",
    "qui",
)
SYLLABLES += ("ras", "sec", "tor", "ul", "ver", "win", "xo", "yar", "zen")
PROGRAMS = [
    "powershell",
    "cmd",
    "rundll32",
    "regsvr32",
    "mshta",
    "wscript",
    "cscript",
    "certutil",
    "bitsadmin",
    "schtasks",
    "sc",
    "net",
    "net1",
    "reg",
    "wmic",
    "msbuild",
    "explorer",
    "svchost",
    "winword",
    "excel",
    "outlook",
    "chrome",
    "msedge",
    "firefox",
    "python",
    "node",
    "java",
    "conhost",
    "services",
    "lsass",
    "taskeng",
]
WORDS = [
    "download",
    "upload",
    "invoke",
    "bypass",
    "hidden",
    "encoded",
    "exec",
    "policy",
    "noprofile",
    "service",
    "create",
    "delete",
    "query",
    "export",
    "import",
    "shadow",
    "copy",
    "backup",
    "registry",
    "run",
    "startup",
    "user",
    "group",
    "admin",
    "domain",
    "trust",
    "ticket",
    "dump",
    "memory",
    "token",
    "hash",
    "ping",
    "http",
]
FOLDERS = (
    "\\Windows\\System32",
    "\\Windows\\SysWOW64",
    "\\Windows\\Temp",
    "\\ProgramData",
    "\\Users\\Public",
)
FOLDERS += (
    "\\AppData\\Local\\Temp",
    "\\AppData\\Roaming",
    "\\Program Files",
    "\\Program Files (x86)",
    "\\Perflogs",
)
SUFFIXES = (
    "exe",
    "dll",
    "ps1",
    "bat",
    "vbs",
    "js",
    "tmp",
    "dat",
    "lnk",
    "hta",
    "scr",
    "zip",
    "log",
    "docx",
    "xml",
)
HIVES = (
    "HKLM\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion",
    "HKCU\\Software\\Classes",
    "HKLM\\SYSTEM\\Services",
)
PATHS = ("TargetFilename", "TargetObject", "ImageLoaded")


@dataclass(frozen=True)
class Rule:
    """What must hold, and what must not."""

    selections: list[list[Test]]
    filters: list[list[Test]] = field(default_factory=list)


class Words:
    """A vocabulary: the usual words often, and made-up ones that hardly ever come twice."""

    def __init__(self, draw: random.Random) -> None:
        """Draw from `draw`."""
        self.draw = draw

    def rare(self) -> str:
        """A word that was made up."""
        return "".join(self.draw.choices(SYLLABLES, k=self.draw.randint(2, 4)))

    def program(self) -> str:
        """The name of a program, without its folder."""
        usual = self.draw.random() < 0.5
        return (self.draw.choice(PROGRAMS) if usual else self.rare()) + ".exe"

    def argument(self) -> str:
        """A piece of a command line."""
        kind = self.draw.randrange(6)
        word = self.draw.choice(WORDS) if self.draw.random() < 0.35 else self.rare()
        if kind == 0:
            return f" -{word[:6]} "
        if kind == 1:
            return f" /{word[:4]} "
        if kind == 2:
            return f"{word}-{self.rare().capitalize()}"
        if kind == 3:
            return f"\\{word}\\{self.rare()}"
        if kind == 4:
            return f"{word}.{self.draw.choice(SUFFIXES)}"
        return f"{word} {self.rare()}"

    def folder(self) -> str:
        """A folder, with a separator at both ends."""
        own = f"\\{self.rare().capitalize()}" if self.draw.random() < 0.4 else ""
        return f"{self.draw.choice(FOLDERS)}{own}\\"

    def file(self) -> str:
        """The name of a file."""
        return f"{self.rare()}.{self.draw.choice(SUFFIXES)}"

    def key(self) -> str:
        """A key of the registry."""
        return f"{self.draw.choice(HIVES)}\\{self.rare().capitalize()}\\{self.rare()}"


def rules(count: int, seed: int) -> list[Rule]:
    """This many rules.

    >>> rules(1, 1) == rules(1, 1)
    True
    """
    words = Words(random.Random(seed))
    return [_rule(words) for _ in range(count)]


def _rule(words: Words) -> Rule:
    draw = words.draw
    selections = [_selection(words) for _ in range(draw.choice((1, 1, 1, 2)))]
    filters = [_filter(words) for _ in range(draw.choice((0, 0, 1, 2)))]
    return Rule(selections, filters)


def _selection(words: Words) -> list[Test]:
    draw = words.draw
    kind = draw.random()
    if kind < 0.7:
        tests = [_of_command_line(words) for _ in range(draw.choice((1, 1, 2)))]
        if draw.random() < 0.7:
            programs = [f"\\{words.program()}" for _ in range(draw.choice((1, 1, 2, 4)))]
            tests.append((draw.choice(("Image", "Image", "ParentImage")), "endswith", programs))
        if draw.random() < 0.2:
            tests.append(("OriginalFileName", "is", [words.program() for _ in range(draw.randint(1, 3))]))
        return tests
    name = draw.choice(PATHS)
    if name == "TargetObject":
        return [(name, "contains", [words.key() for _ in range(draw.randint(1, 4))])]
    pieces = [words.folder() + words.file() for _ in range(draw.randint(1, 3))]
    return [
        (name, "endswith", [f"\\{words.file()}" for _ in range(draw.randint(1, 6))]),
        (name, draw.choice(("contains", "startswith")), [words.folder()])
        if draw.random() < 0.5
        else ("Image", "contains", pieces),
    ]


def _of_command_line(words: Words) -> Test:
    draw = words.draw
    kind = draw.random()
    if kind < 0.04:
        return ("CommandLine", "re", [f"{words.rare()}[\\-/]{{1,2}}{words.rare()}\\s+[a-z0-9]{{4,}}"])
    if kind < 0.06:
        return ("CommandLine", "re", [f"(?i)({words.rare()}|{words.rare()}).*{words.rare()[:3]}\\d+"])
    if kind < 0.07:
        return ("CommandLine", "re", ["\\s[a-z]:\\\\[^\\\\]{1,8}\\\\\\d{3,}$"])
    if kind < 0.11:
        return ("CommandLine", "like", [f"%{words.rare()}%{words.argument()}%{words.rare()}%"])
    if kind < 0.13:
        return ("CommandLine", "like", [f"%{words.rare()}_{words.rare()}%"])
    pieces = [words.argument() for _ in range(draw.choice((1, 2, 3, 5, 8)))]
    return ("CommandLine", draw.choice(("contains", "contains", "all")), pieces)


def _filter(words: Words) -> list[Test]:
    draw = words.draw
    if draw.random() < 0.2:
        return [("User", "contains", ["AUTHORI", "AUTORI"])]
    if draw.random() < 0.2:
        return [("IntegrityLevel", "is", ["System"])]
    if draw.random() < 0.4:
        return [("ParentImage", "endswith", [f"\\{words.program()}"]), _of_command_line(words)]
    return [("Image", "startswith", [f"C:{words.folder()}"])]


def records(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """This many log records, most of which satisfy no rule. Every tenth is made of the words of rules.

    >>> sorted(next(records(1, 1)))[:4]
    ['CommandLine', 'Computer', 'CurrentDirectory', 'EventID']
    """
    words = Words(random.Random(seed))
    for number in range(count):
        hit = number % 10 == 0
        yield _record(words, hit)


def _record(words: Words, hit: bool) -> dict[str, Any]:
    draw = words.draw

    def path() -> str:
        return f"C:{words.folder()}{draw.choice(PROGRAMS)}.exe"

    length = draw.choice((2, 4, 8, 16, 40))
    arguments = [words.argument() if hit or draw.random() < 0.2 else _harmless(draw) for _ in range(length)]
    image = path()
    event = {
        "EventID": draw.choice((1, 1, 1, 7, 11, 13)),
        "UtcTime": f"2026-03-{draw.randint(1, 28):02} 10:{draw.randint(0, 59):02}:13.417",
        "Computer": f"WS-{draw.randint(1, 5000):05}.corp.example",
        "ProcessGuid": f"{{{draw.getrandbits(128):032x}}}",
        "ProcessId": draw.randint(100, 30_000),
        "Image": image,
        "OriginalFileName": image.rsplit("\\", 1)[1].capitalize(),
        "CommandLine": f'"{image}" {" ".join(arguments)}',
        "CurrentDirectory": f"C:{words.folder()}",
        "User": draw.choice(("NT AUTHORITY\\SYSTEM", "CORP\\alice", "CORP\\bob", "CORP\\svc-deploy")),
        "LogonId": f"0x{draw.getrandbits(24):x}",
        "IntegrityLevel": draw.choice(("System", "High", "Medium", "Medium")),
        "Hashes": f"SHA1={draw.getrandbits(160):040X},MD5={draw.getrandbits(128):032X}",
        "ParentImage": path(),
        "ParentCommandLine": f'"{path()}" -k {_harmless(draw)}',
    }
    if event["EventID"] == 7:
        event["ImageLoaded"] = f"C:{words.folder()}{words.rare()}.dll"
    if event["EventID"] == 11:
        event["TargetFilename"] = f"C:{words.folder()}{words.file()}"
    if event["EventID"] == 13:
        event["TargetObject"] = words.key()
        event["Details"] = f"DWORD (0x{draw.getrandbits(32):08x})"
    return event


def _harmless(draw: random.Random) -> str:
    kind = draw.randrange(4)
    if kind == 0:
        return f"--type={draw.choice(('renderer', 'utility', 'gpu-process', 'crashpad'))}"
    if kind == 1:
        return f"--field-trial-handle={draw.getrandbits(40)},i,{draw.getrandbits(60)},262144"
    if kind == 2:
        return f"C:\\Users\\alice\\Documents\\Report {draw.randint(1, 9999)}.docx"
    return f"-{draw.choice('abcdpqs')} {draw.randint(0, 99999)}"


def written(rule: Rule, lowered: bool = False) -> str:
    """A rule as an expression: with ILIKE, or over `lower(field)` as the importer of Sigma writes it.

    >>> written(Rule([[("Image", "endswith", ["\\\\a.exe"])]], [[("User", "is", ["Bob"])]]))
    "(Image ILIKE '%\\\\\\\\\\\\\\\\a.exe') AND ((User ILIKE 'Bob')) IS NOT TRUE"
    """
    chosen = " OR ".join(" AND ".join(_test(test, lowered) for test in tests) for tests in rule.selections)
    filters = [
        f"({' AND '.join(_test(test, lowered) for test in tests)}) IS NOT TRUE" for tests in rule.filters
    ]
    return " AND ".join([f"({chosen})" if filters and len(rule.selections) > 1 else chosen, *filters])


def _test(test: Test, lowered: bool) -> str:
    name, modifier, values = test
    if modifier == "re":
        return f"({' OR '.join(f'{name} RLIKE {_quoted(value)}' for value in values)})"
    term = f"lower({name})" if lowered else name
    values = [value.lower() for value in values] if lowered else values
    if modifier == "is" and lowered:
        return f"{term} IN ({', '.join(_quoted(value) for value in values)})"
    parts = [_one(term, modifier, value, lowered) for value in values]
    return "(" + (" AND " if modifier == "all" else " OR ").join(parts) + ")"


def _one(term: str, modifier: str, value: str, lowered: bool) -> str:
    kind = "contains" if modifier == "all" else modifier
    if lowered and kind in ("contains", "startswith", "endswith"):
        return f"{kind}({term}, {_quoted(value)})"
    start = "%" if kind in ("contains", "endswith") else ""
    end = "%" if kind in ("contains", "startswith") else ""
    pattern = value if kind == "like" else f"{start}{value}{end}"
    body = pattern.replace("\\", "\\\\")
    if kind != "like":
        body = body.replace("_", "\\_")
    return f"{term} {'LIKE' if lowered else 'ILIKE'} {_quoted(body)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
