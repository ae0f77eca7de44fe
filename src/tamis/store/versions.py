"""The versions of an index in a directory: the files of each, and which is the latest.

```text
versions/<group>/<number>.json   a version: its files, what they hold, how events find their shard
snapshots/*.tamis                index files, named in versions, written once
changes/*.arrow                  subscription changes since the snapshots of a version
pins/<query>/<batch>             the version that a micro-batch uses, also when it is replayed
leases/<run>-<hour>@<version>    the version that a batch query uses
reports/<run>/*.json             what each task saw: rows, matches, values of the wrong type
quarantine/*.arrow               changes that could not be applied
builds/<build>                   the latest version when a build was first about to be published
cleaned/<window>                 when the store was last cleaned
```

Versions are in groups, so that listing two short folders finds the latest, however many there are.

A version is complete once its JSON file exists. `Directory.create` creates that file: of two writers that
want the same number, one wins, and the other starts again from the winner's version.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from tamis.errors import SnapshotError
from tamis.store.directory import Directory

FORMAT = 2
"""Format 1 had no groups of versions, and change files without versions and shards; it can be read."""

VERSIONS_PER_GROUP = 256

_LATER_FORMAT = f"versions/{'9' * 20}.json"
"""Where a release that knows format 1 alone looks for the latest version: it is told to upgrade."""

PlanName = Literal["replicated", "sharded", "by-source"]
IdKind = Literal["int", "string"]


@dataclass(frozen=True)
class IndexFile:
    """One snapshot file.

    >>> IndexFile("snapshots/a.tamis", bytes=1024, sha256="00", subscriptions=10).name
    'snapshots/a.tamis'
    """

    name: str
    bytes: int
    sha256: str
    subscriptions: int


@dataclass(frozen=True)
class ChangeFile:
    """One file of changes. `last` is the version of the latest change in it, 0 for files of format 1.

    >>> ChangeFile("changes/a.arrow", last=7, changes=3, bytes=1024).last
    7
    """

    name: str
    last: int
    changes: int
    bytes: int


@dataclass(frozen=True)
class Router:
    """How an event finds the shards that might match it.

    `rules` is an index whose ids are `shard:number`; an event visits the shards of the ones it matches.
    `sources` gives the shards of each advertised source; `advertisements` is the index of what they promise.
    `cuts` are the places where the next shard begins, by which additions find theirs.
    """

    rules: IndexFile | None = None
    sources: dict[str, list[int]] = field(default_factory=dict)
    advertisements: IndexFile | None = None
    cuts: list[tuple[str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Version:
    """One immutable version of an index: its shards, and everything that a query must know of them.

    >>> version = Version(number=1, plan="replicated", ids="string", shards=[[]])
    >>> Version.from_json(version.to_json()) == version
    True
    """

    number: int
    plan: PlanName
    ids: IdKind
    shards: list[list[IndexFile]]
    router: Router | None = None
    """Absent in the replicated plan."""
    attributes: dict[str, list[str]] = field(default_factory=dict)
    """Attribute -> kinds of values that predicates expect."""
    subscriptions: int = 0
    base: int = 0
    """The version that wrote the shards; changes come on top of them."""
    changes: list[ChangeFile] = field(default_factory=list)
    """Files of changes that come on top of the shards, oldest first."""
    sequences: str | None = None
    """The file with the last sequence numbers of the changes that the shards contain."""
    changed: bool = False
    """Whether the first shard holds subscriptions that the router does not know of, as in format 1."""
    payloads: bool = False
    """Whether any subscription has a payload."""
    bound: bool = False
    """Whether any subscription is bound to a source."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Why the plan was chosen, and sizes, for reports; and which build wrote the shards (see `publish`)."""

    @property
    def size(self) -> int:
        """The bytes of all shards."""
        return sum(file.bytes for shard in self.shards for file in shard)

    @property
    def waiting(self) -> int:
        """The changes that are not yet in the shards."""
        return sum(file.changes for file in self.changes)

    def files(self) -> list[str]:
        """The names of all files that the version needs."""
        named = [file.name for shard in self.shards for file in shard]
        named += [file.name for file in self.changes]
        if self.sequences is not None:
            named.append(self.sequences)
        if self.router is not None:
            named += [file.name for file in (self.router.rules, self.router.advertisements) if file]
        return named

    def to_json(self) -> bytes:
        """The content of the version's file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "Version":
        """Read the content of a version's file."""
        try:
            content = json.loads(data)
            written = content.pop("format")
            if written not in (1, FORMAT):
                raise SnapshotError("the version was written by a later release of tamis; upgrade to read it")
            if written == 1:
                content = _from_format_1(content)
            shards = [[IndexFile(**file) for file in shard] for shard in content.pop("shards")]
            changes = [ChangeFile(**file) for file in content.pop("changes")]
            router = content.pop("router")
            if router is not None:
                named = {
                    key: None if router[key] is None else IndexFile(**router[key])
                    for key in ("rules", "advertisements")
                }
                cuts = [(key, number) for key, number in router.get("cuts", [])]
                router = Router(sources=router["sources"], cuts=cuts, **named)
            return cls(shards=shards, changes=changes, router=router, **content)
        except (ValueError, KeyError, TypeError) as error:
            raise SnapshotError(f"not the description of a version: {error}") from error


def _from_format_1(content: dict[str, Any]) -> dict[str, Any]:
    """What format 1 says, in the words of this one."""
    notes = content["notes"]
    waiting = notes.pop("waiting", 0)
    content["sequences"] = notes.pop("sequences", None)
    share = -(-waiting // max(1, len(content["changes"])))
    content["changes"] = [
        {"name": name, "last": 0, "changes": share, "bytes": 0} for name in content["changes"]
    ]
    return content


def version_file(number: int) -> str:
    """The name of a version's file, so that names sort as numbers.

    >>> version_file(700)
    'versions/00000000000000000002/00000000000000000700.json'
    """
    return f"versions/{number // VERSIONS_PER_GROUP:020d}/{number:020d}.json"


def latest_number(directory: Directory) -> int | None:
    """The number of the latest version, or None when there is none.

    >>> import tempfile
    >>> from tamis.store.directory import open_directory
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     latest_number(open_directory(folder)) is None
    True
    """
    entries = directory.list("versions")
    for group in reversed(_groups(entries)):
        if numbers := _numbers(directory.list(f"versions/{group}")):
            return max(numbers)
    return max(_numbers(entries), default=None)


def version_numbers(directory: Directory) -> list[int]:
    """The numbers of all versions, ascending."""
    entries = directory.list("versions")
    numbers = set(_numbers(entries))
    for group in _groups(entries):
        numbers.update(_numbers(directory.list(f"versions/{group}")))
    return sorted(numbers)


def version_groups(directory: Directory) -> list[str]:
    """The folders in which versions lie, ascending."""
    return [f"versions/{group}" for group in _groups(directory.list("versions"))]


def _groups(entries: list[str]) -> list[str]:
    return [name for name in entries if name.isdigit()]


def _numbers(entries: list[str]) -> list[int]:
    """The versions among the names in a folder."""
    stems = (name.removesuffix(".json") for name in entries if name.endswith(".json"))
    return [int(stem) for stem in stems if stem.isdigit() and stem != "9" * 20]


def files_of_version(number: int) -> list[str]:
    """Where the file of a version may lie: in its group, or where format 1 put it."""
    return [version_file(number), f"versions/{number:020d}.json"]


def read_version(directory: Directory, number: int | None = None) -> Version:
    """A version by its number; the latest unless one is named."""
    if number is None:
        number = latest_number(directory)
    if number is None:
        raise SnapshotError(
            f"{directory.url} holds no index: nothing was built there yet, or the path is not the one it was "
            "built at"
        )
    for name in files_of_version(number):
        try:
            return Version.from_json(directory.read(name))
        except FileNotFoundError:
            continue
    held = ", ".join(str(kept) for kept in version_numbers(directory)) or "none"
    raise SnapshotError(f"{directory.url} holds no version {number}; it holds {held}")


def create_version(directory: Directory, version: Version) -> bool:
    """Write a version's file unless there is a version with its number; whether it was written."""
    if not directory.create(version_file(version.number), version.to_json()):
        return False
    if version.number % VERSIONS_PER_GROUP == 1:
        directory.create(_LATER_FORMAT, json.dumps({"format": FORMAT}).encode())
    return True


def publish(directory: Directory, version: Version) -> Version:
    """Write a version with shards of its own, under the first number that is free from its own on.

    A build is published once, however many attempts of a task try, and whenever within a week each of them
    wakes up (then what it noted is removed): a second version would undo later changes. The note `build`
    tells it from all others. Its first attempt notes which version was the latest, and every attempt looks
    for the build in the versions after that one.
    """
    build = version.notes.get("build")
    since = latest = latest_number(directory) or 0
    if build is not None and not directory.create(claim := f"builds/{build}", str(latest).encode()):
        # Another attempt was here before, perhaps after `latest` was asked for.
        since, latest = int(directory.read(claim)), latest_number(directory) or 0
    # Looked for after that: what is published from here on has a number that is tried below.
    if since < latest and (published := _published_after(directory, version, since)) is not None:
        return published
    number = max(version.number, latest + 1)
    while True:
        numbered = replace(version, number=number, base=number)
        if create_version(directory, numbered):
            return numbered
        if (published := _published(directory, version, number)) is not None:
            return published
        number += 1


def _published_after(directory: Directory, version: Version, since: int) -> Version | None:
    """The version that an earlier attempt made of the same build."""
    later = [number for number in version_numbers(directory) if number > since]
    for number in later:
        if (published := _published(directory, version, number)) is not None:
            return published
    if len(later) < max(later, default=since) - since:
        raise SnapshotError(
            f"{directory.url}: this build may have been published by an earlier attempt, but some versions "
            f"after {since} have been removed since; build again"
        )
    return None


def _published(directory: Directory, version: Version, number: int) -> Version | None:
    """The version of that number, if it is the same build."""
    try:
        found = read_version(directory, number)
    except SnapshotError:  # removed in the meantime
        return None
    same = found.base == found.number and found.notes.get("build") == version.notes.get("build", "")
    return found if same else None
