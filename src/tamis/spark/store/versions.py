"""The versions of an index in a directory: what each consists of, and which is the latest.

```text
versions/00000000000000000007.json   a version: its files, what they hold, how events find their shard
snapshots/*.tamis                    index files, named in versions, written once
changes/*.arrow                      subscription changes since the snapshots of a version
pins/<query>/<batch>                 the version that a micro-batch uses, also when it is replayed
leases/<lease>                       the version that a batch query uses
reports/<run>/*.json                 what each task saw: rows, matches, values of the wrong type
quarantine/*.arrow                   changes that could not be applied
```

A version is complete once its JSON file exists, and that file is created by `Directory.create`: of two
writers that make the same number, one wins and the other starts again from the winner's.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from tamis.errors import SnapshotError
from tamis.spark.store.directory import Directory

FORMAT = 1

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
class Router:
    """How an event finds the shards that might match it.

    `rules` is an index whose ids are `shard:number`; an event visits the shards of the ones it matches.
    `sources` gives the shards of each advertised source; `advertisements` is the index of what they promise.
    """

    rules: IndexFile | None = None
    sources: dict[str, list[int]] = field(default_factory=dict)
    advertisements: IndexFile | None = None


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
    changes: list[str] = field(default_factory=list)
    """Files of changes that come on top of the shards, oldest first."""
    changed: bool = False
    """Whether the first shard holds subscriptions that came as changes: the router does not know of those."""
    payloads: bool = False
    """Whether any subscription has a payload."""
    bound: bool = False
    """Whether any subscription is bound to a source."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Why the plan was chosen, and sizes; for reports only."""

    @property
    def size(self) -> int:
        """The bytes of all shards."""
        return sum(file.bytes for shard in self.shards for file in shard)

    def files(self) -> list[str]:
        """The names of all files that the version needs."""
        named = [file.name for shard in self.shards for file in shard] + self.changes
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
            if content.pop("format") != FORMAT:
                raise SnapshotError("the version was written by a later release of tamis; upgrade to read it")
            shards = [[IndexFile(**file) for file in shard] for shard in content.pop("shards")]
            router = content.pop("router")
            if router is not None:
                named = {
                    key: None if router[key] is None else IndexFile(**router[key])
                    for key in ("rules", "advertisements")
                }
                router = Router(sources=router["sources"], **named)
            return cls(shards=shards, router=router, **content)
        except (ValueError, KeyError, TypeError) as error:
            raise SnapshotError(f"not the description of a version: {error}") from error


def version_file(number: int) -> str:
    """The name of a version's file, so that names sort as numbers.

    >>> version_file(7)
    'versions/00000000000000000007.json'
    """
    return f"versions/{number:020d}.json"


def latest_number(directory: Directory) -> int | None:
    """The number of the latest version, or None when there is none.

    >>> import tempfile
    >>> from tamis.spark.store.directory import open_directory
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     latest_number(open_directory(folder)) is None
    True
    """
    numbers = version_numbers(directory)
    return numbers[-1] if numbers else None


def version_numbers(directory: Directory) -> list[int]:
    """The numbers of all versions, ascending."""
    stems = (name.removesuffix(".json") for name in directory.list("versions") if name.endswith(".json"))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def read_version(directory: Directory, number: int | None = None) -> Version:
    """A version by its number; the latest unless one is named."""
    if number is None:
        number = latest_number(directory)
    if number is None:
        raise SnapshotError(
            f"{directory.url} holds no index: nothing was built there yet, or the path is not the one it was "
            "built at"
        )
    try:
        return Version.from_json(directory.read(version_file(number)))
    except FileNotFoundError:
        held = ", ".join(str(kept) for kept in version_numbers(directory)) or "none"
        raise SnapshotError(f"{directory.url} holds no version {number}; it holds {held}") from None


def publish(directory: Directory, version: Version) -> Version:
    """Write a version under the first number that is free from its own on."""
    number = max(version.number, (latest_number(directory) or 0) + 1)
    while not directory.create(version_file(number), replace(version, number=number).to_json()):
        number += 1
    return replace(version, number=number)
