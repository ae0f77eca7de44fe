"""A versioned store of rules for any program: a directory that many hosts write and read.

It is the store of `tamis.spark.SubscriptionStore`, without Spark: a service opens what a pipeline publishes,
and the other way round. Each batch of changes becomes a version; of two writers one creates it, and the other
continues from there, so no change is lost. Changes carry sequence numbers: for each rule the highest wins, so
late and repeated changes do no harm.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from tamis._suggest import closest, did_you_mean
from tamis.errors import ArgumentError, SnapshotError
from tamis.index import Index
from tamis.store.apply_changes import Applied, apply_to_store, quarantined_changes, with_sequences
from tamis.store.bound_rules import from_source, is_bound
from tamis.store.change_log import changes_after
from tamis.store.changes import apply_changes, change_schema
from tamis.store.directory import open_directory
from tamis.store.folding import attributes_of
from tamis.store.garbage import collect
from tamis.store.host_cache import open_file
from tamis.store.index_files import put_index
from tamis.store.rows import subscription_batches
from tamis.store.versions import IdKind, Version, latest_number, publish, read_version, version_numbers


class RuleStore:
    """A directory of rules and their versions: a path, or a URL (`s3://`, `gs://`, ...) with fsspec.

    >>> import tempfile
    >>> from tamis.store import RuleStore
    >>> store = RuleStore(tempfile.mkdtemp())
    >>> store.apply([
    ...     {"op": "add", "sequence": 1, "id": "a", "expression": "x > 1"},
    ...     {"op": "add", "sequence": 2, "id": "b", "expression": "x > 2"},
    ...     {"op": "remove", "sequence": 3, "id": "b"},
    ... ])
    Applied(version=1, applied=2, stale=1, quarantined=0)
    >>> store.open().match({"x": 3})
    ['a']

    `tamis.open(path)` opens the latest version too, and `tamis.open(path, watch=True)` follows the store.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Set the directory. It is created on the first write."""
        self._directory = open_directory(path)

    @property
    def url(self) -> str:
        """Where it is."""
        return self._directory.url

    @property
    def latest(self) -> int | None:
        """The number of the latest version; None if there is none yet.

        >>> import tempfile
        >>> RuleStore(tempfile.mkdtemp()).latest is None
        True
        """
        return latest_number(self._directory)

    @property
    def versions(self) -> list[int]:
        """The numbers of the versions that are kept, ascending.

        >>> import tempfile
        >>> RuleStore(tempfile.mkdtemp()).versions
        []
        """
        return version_numbers(self._directory)

    def __repr__(self) -> str:
        """Where it is."""
        return f"RuleStore({self.url!r})"

    def open(self, version: int | None = None) -> Index:
        """The rules of a version, by default the latest, as an independent index.

        A version that is one snapshot without later changes is mapped; changes are applied in memory. To
        change the store, use `apply`; changing the index does not change the store.

        >>> import tempfile
        >>> store = RuleStore(tempfile.mkdtemp())
        >>> for number in (1, 2):
        ...     change = {"op": "add", "sequence": number, "id": "a", "expression": f"x > {number}"}
        ...     _ = store.apply([change])
        >>> str(store.open(1)["a"].expression), str(store.open()["a"].expression)
        ('x > 1', 'x > 2')
        """
        if version is None:
            return self.open_latest()[1]
        return self._opened(read_version(self._directory, version))

    def open_latest(self) -> tuple[int, Index]:
        """The number of the latest version and its rules.

        >>> import tempfile
        >>> store = RuleStore(tempfile.mkdtemp())
        >>> _ = store.replace_all([{"id": 1, "expression": "x > 1"}])
        >>> number, index = store.open_latest()
        >>> number, index.match({"x": 2})
        (1, [1])
        """
        while True:
            number = self.latest
            try:
                return number or 0, self._opened(read_version(self._directory, number))
            except SnapshotError:
                if self.latest == number:
                    raise
                # Collected while it was opened: a later version has taken its place.

    def apply(self, changes: Any) -> Applied:
        """Create the next version from changes: a table, a dict of columns, or a list of records.

        The columns are `op` ("add" or "replace", which both store the rule, or "remove"), `sequence`, and
        those of a subscription: `id`, `expression`, `priority`, `weights`, `tags`, `owner`, `payload`,
        `expires` and `starts`; with `source`, a rule matches events of that source only. Changes that cannot
        be accepted are in `quarantined`, each with its error. The result contains the latest version
        afterwards.

        >>> import tempfile
        >>> store = RuleStore(tempfile.mkdtemp())
        >>> store.apply({"op": ["add"], "sequence": [1], "id": [7], "expression": ["x >"]}).quarantined
        1
        >>> store.quarantined().column("error")[0].as_py().splitlines()[0]
        'expected a value, found the end of the expression (line 1, column 4)'
        """
        rows = _records(changes)
        missing = [name for name in ("op", "sequence", "id") if rows and name not in rows[0]]
        if missing:
            raise ArgumentError(
                f"changes have the columns op, sequence, id and expression; these have no {missing[0]!r}"
            )
        for row in rows:
            number = row.get("sequence")
            if isinstance(number, float) and not number.is_integer():
                raise ArgumentError(f"sequence numbers are whole: {number!r} would be cut to {int(number)}")
        given, ids = self._table(rows, ("op", "sequence"))
        return apply_to_store(self._directory, given, change_schema(ids))

    def replace_all(self, rules: Any, *, schema: Mapping[str, Any] | None = None) -> int:
        """Publish a version with exactly these rules, atomically, and return its number.

        `rules` is what `Index.add_table` takes, or a list of records. Sequence numbers are remembered: a
        change that was stale before stays stale.

        >>> import tempfile
        >>> store = RuleStore(tempfile.mkdtemp())
        >>> store.replace_all([{"id": "a", "expression": "x > 1"}, {"id": "b", "expression": "x > 2"}])
        1
        >>> len(store.open())
        2
        """
        given, ids = self._table(_records(rules), ())
        types = None if schema is None else dict(schema)
        index = Index(types)
        index.add_table(given)
        payloads = given.column("payload")
        version = Version(
            number=1,
            plan="replicated",
            ids=ids,
            shards=[[put_index(self._directory, index)] if len(index) else []],
            attributes=attributes_of([index]),
            subscriptions=len(index),
            payloads=payloads.null_count < len(payloads),
            bound=any(is_bound(text) for text in given.column("expression").to_pylist()),
            notes={"reason": "rules without Spark", "schema": types},
        )
        return publish(self._directory, with_sequences(self._directory, version)).number

    def quarantined(self) -> pa.Table:
        """The changes that could not be applied, each with its error.

        >>> import tempfile
        >>> RuleStore(tempfile.mkdtemp()).quarantined().num_rows
        0
        """
        return quarantined_changes(self._directory)

    def collect_garbage(self, *, keep: int = 3, grace: float = 3600.0) -> list[str]:
        """Remove unused files and return their names.

        The latest `keep` versions stay, and those that queries of Spark have pinned or leased; no file
        younger than `grace` seconds is removed. Stores in use clean themselves from time to time.

        >>> import tempfile
        >>> RuleStore(tempfile.mkdtemp()).collect_garbage()
        []
        """
        return collect(self._directory, keep, grace) if self.latest is not None else []

    def _opened(self, version: Version) -> Index:
        try:
            return self._put_together(version)
        except FileNotFoundError as gone:
            raise SnapshotError(
                f"{self.url}: version {version.number} names a file that is not there: {gone}"
            ) from gone

    def _put_together(self, version: Version) -> Index:
        files = [file for shard in version.shards for file in shard]
        kept = {file.sha256 for file in files}
        if len(files) == 1:
            index = open_file(self._directory, files[0], kept)
        else:
            index = Index(version.notes.get("schema"))
            for batch in subscription_batches(
                (open_file(self._directory, file, kept) for file in files), version.ids
            ):
                index.add_table(pa.Table.from_batches([batch]))
        for changes in changes_after(self._directory, version, -1):
            whole = changes.drop_columns(["shard"]) if "shard" in changes.column_names else changes
            apply_changes([index], whole)
        return index

    def _table(self, rows: list[dict[str, Any]], more: tuple[str, ...]) -> tuple[pa.Table, IdKind]:
        """The rows as a table with all columns of a subscription and some more."""
        ids = self._ids(rows)
        schema = pa.schema(
            [field for field in change_schema(ids) if field.name in more or field.name not in _OF_CHANGES]
        )
        known = {*schema.names, "source"}
        for name in {name: None for row in rows for name in row}:
            if name not in known:
                meant = closest(name, sorted(known))
                hint = did_you_mean(meant) if meant else f"the columns are {', '.join(sorted(known))}"
                raise ArgumentError(f"rules have no column {name!r}; {hint}")
        bound = [
            {**row, "expression": from_source(row.get("expression"), row.get("source"))}
            if row.get("source") is not None
            else row
            for row in rows
        ]
        columns = {}
        for field in schema:
            try:
                columns[field.name] = pa.array([_value(field.name, row) for row in bound], field.type)
            except (pa.ArrowException, TypeError, OverflowError) as error:
                raise ArgumentError(f"the column {field.name!r} must be {field.type}: {error}") from error
        return pa.table(columns, schema), ids

    def _ids(self, rows: list[dict[str, Any]]) -> IdKind:
        for row in rows:
            if row.get("id") is not None:
                return "int" if isinstance(row["id"], int) else "string"
        return "string" if self.latest is None else read_version(self._directory).ids


_OF_CHANGES = frozenset({"op", "sequence"})


def _records(rows: Any) -> list[dict[str, Any]]:
    """Any kind of rows, as records."""
    if isinstance(rows, Iterable) and not isinstance(rows, Mapping) and not hasattr(rows, "columns"):
        listed = list(rows)
        if all(isinstance(row, Mapping) for row in listed):
            return [dict(row) for row in listed]
        raise ArgumentError("rules are a table, a dict of columns, or a list of records")
    table: list[dict[str, Any]] = pa.table(rows).to_pylist()
    return table


def _value(name: str, row: Mapping[str, Any]) -> Any:
    value = row.get(name)
    if name == "weights" and isinstance(value, Mapping):
        return list(value.items())
    if name == "payload" and isinstance(value, str):
        return value.encode()
    return str(value) if name == "expression" and value is not None else value
