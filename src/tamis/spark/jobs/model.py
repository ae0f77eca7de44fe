"""What a job file may contain. Each class is one section; its fields are the keys, and no others are allowed.

The keys have the same names as elsewhere in Tamis; other options of Spark's readers and writers go into
`options`.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

FILES = ("parquet", "json", "csv", "delta")
FORMATS = (*FILES, "table", "kafka", "nats")


class Section(BaseModel):
    """A part of a job file."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        if isinstance(given, dict) and (unknown := [str(key) for key in given if key not in known]):
            raise PydanticCustomError("unknown_keys", "unknown keys", {"unknown": unknown, "known": known})
        return given


def _texts(given: Any) -> Any:
    """Numbers and truths of YAML as Spark's options write them."""
    if not isinstance(given, dict):
        return given
    return {
        str(name): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
    }


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


Options = Annotated[dict[str, str], BeforeValidator(_texts)]
Names = Annotated[list[str], BeforeValidator(_listed)]


class _Source(Section):
    options: Options = Field(default_factory=dict)
    """Passed on to Spark's reader."""
    table_schema: str | None = Field(default=None, alias="schema")
    """The columns, as in `age int, country string`; of a message, those of the JSON in it."""
    select: Names = Field(default_factory=list)
    """SQL expressions to read instead of all columns."""


class FileSource(_Source):
    """Files of a folder: Parquet, JSON lines, CSV, or a Delta table."""

    format: Literal["parquet", "json", "csv", "delta"]
    path: str


class TableSource(_Source):
    """A table of the catalog."""

    format: Literal["table"]
    table: str


class _MessageSource(_Source):
    on_bad_message: Literal["fail", "skip"] = "fail"
    """What to do with a message that is not JSON of the schema."""

    @model_validator(mode="after")
    def _needs_schema(self) -> Self:
        if self.table_schema is None:
            raise PydanticCustomError(
                "schema_needed",
                "messages need a `schema`: the columns of their JSON, such as `event_id bigint, age int`",
            )
        return self


class KafkaSource(_MessageSource):
    """A Kafka topic whose messages are JSON."""

    format: Literal["kafka"]
    servers: str
    topic: str
    start: Literal["earliest", "latest"] = "earliest"


class NatsSource(_MessageSource):
    """A stream of NATS JetStream whose messages are JSON."""

    format: Literal["nats"]
    servers: str = "nats://127.0.0.1:4222"
    stream: str
    subject: str | None = None
    """Only messages of this subject; wildcards are allowed."""
    start: Literal["earliest", "latest"] = "earliest"


class _Sink(Section):
    options: Options = Field(default_factory=dict)
    """Passed on to Spark's writer."""


class FileSink(_Sink):
    """Files in a folder."""

    format: Literal["parquet", "json", "csv", "delta"]
    path: str
    mode: Literal["append", "overwrite", "error"] = "error"
    """What to do when there is something; a stream always appends."""
    partition_by: Names = Field(default_factory=list)


class TableSink(_Sink):
    """A table of the catalog."""

    format: Literal["table"]
    table: str
    table_format: str | None = None
    """How a new table is stored, such as `delta`; one that is there keeps its own format."""
    mode: Literal["append", "overwrite", "error"] = "error"
    partition_by: Names = Field(default_factory=list)


class KafkaSink(_Sink):
    """A Kafka topic that gets each match as JSON, with the key columns as the message's key."""

    format: Literal["kafka"]
    servers: str
    topic: str


class NatsSink(_Sink):
    """A subject of NATS JetStream that gets each match as JSON."""

    format: Literal["nats"]
    servers: str = "nats://127.0.0.1:4222"
    subject: str
    message_id: Names = Field(default_factory=list)
    """Columns that make the message's id, by which the server drops what it has already."""


def _format_tag(given: Any) -> str | None:
    """Which kind of section a mapping is, told by its format."""
    format = given.get("format") if isinstance(given, dict) else getattr(given, "format", None)
    if format in FILES:
        return "(files)"
    return f"({format})" if format in FORMATS else None


def _subscriptions_tag(given: Any) -> str | None:
    if isinstance(given, dict):
        for key in ("snapshot", "store"):
            if key in given:
                return f"({key})"
    elif isinstance(given, SnapshotSubscriptions | StoredSubscriptions):
        return "(snapshot)" if isinstance(given, SnapshotSubscriptions) else "(store)"
    return _format_tag(given)


_BY_FORMAT = Discriminator(_format_tag, custom_error_type="format", custom_error_message="format")
_BY_KIND = Discriminator(_subscriptions_tag, custom_error_type="kind", custom_error_message="kind")

Source = Annotated[
    Annotated[FileSource, Tag("(files)")]
    | Annotated[TableSource, Tag("(table)")]
    | Annotated[KafkaSource, Tag("(kafka)")]
    | Annotated[NatsSource, Tag("(nats)")],
    _BY_FORMAT,
]
Sink = Annotated[
    Annotated[FileSink, Tag("(files)")]
    | Annotated[TableSink, Tag("(table)")]
    | Annotated[KafkaSink, Tag("(kafka)")]
    | Annotated[NatsSink, Tag("(nats)")],
    _BY_FORMAT,
]


class SnapshotSubscriptions(Section):
    """A snapshot file, or the directory of an index."""

    snapshot: str


class StoredSubscriptions(Section):
    """A store, which other jobs may change; with `changes`, this one changes it."""

    store: str
    changes: Source | None = None
    checkpoint: str | None = None
    """Where the stream of changes remembers how far it got."""
    every: str = "1 second"
    """How often changes become a new version."""


Subscriptions = Annotated[
    Annotated[FileSource, Tag("(files)")]
    | Annotated[TableSource, Tag("(table)")]
    | Annotated[KafkaSource, Tag("(kafka)")]
    | Annotated[NatsSource, Tag("(nats)")]
    | Annotated[SnapshotSubscriptions, Tag("(snapshot)")]
    | Annotated[StoredSubscriptions, Tag("(store)")],
    _BY_KIND,
]

Mode = Literal["all", "top_k", "count", "exists", "unmatched", "count_by_subscription"]


class Matching(Section):
    """What is asked about each event."""

    mode: Mode = "all"
    key: Names = Field(default_factory=lambda: ["event_id"])
    k: int | None = Field(default=None, ge=1)
    score: Literal["priority", "relevance", "relaxed"] | None = None
    min_score: float | None = None
    tags: list[str] | None = None
    tags_all: list[str] | None = None
    tags_none: list[str] | None = None
    payload: bool | None = None
    spread: Names = Field(default_factory=list)
    intervals: Names = Field(default_factory=list)
    on_error: Literal["fail", "quarantine"] = "fail"
    """What to do with subscriptions that cannot be accepted."""

    @model_validator(mode="after")
    def _ranked(self) -> Self:
        ranked = ["k", "score", "min_score"]
        if self.mode == "top_k" and self.k is None:
            raise PydanticCustomError("k_needed", "`mode: top_k` needs `k`, how many matches to keep")
        if self.mode != "top_k":
            for name in ranked:
                if getattr(self, name) is not None:
                    raise PydanticCustomError(
                        "not_ranked", f"`{name}` ranks matches: write `mode: top_k` as well"
                    )
        return self


class Trigger(Section):
    """When a stream's micro-batches start; exactly one of these."""

    once: Literal[True] | None = None
    available_now: Literal[True] | None = None
    processing_time: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_word(cls, given: Any) -> Any:
        if given in ("once", "available_now"):
            return {given: True}
        if given == "continuous" or (isinstance(given, dict) and "continuous" in given):
            raise PydanticCustomError(
                "continuous",
                "continuous processing in Spark cannot run Python functions; `processing_time: 0 seconds` "
                "starts each micro-batch as soon as the last is done",
            )
        if isinstance(given, str):
            raise PydanticCustomError(
                "trigger",
                "a trigger is `once`, `available_now`, or `processing_time: 5 seconds` (a key with a value)",
            )
        return given

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.as_options()) != 1:
            raise PydanticCustomError(
                "trigger", "give exactly one of `once`, `available_now` and `processing_time`"
            )
        return self

    def as_options(self) -> dict[str, Any]:
        """The arguments of `DataStreamWriter.trigger`.

        >>> Trigger.model_validate("available_now").as_options()
        {'availableNow': True}
        """
        named = {
            "once": self.once,
            "availableNow": self.available_now,
            "processingTime": self.processing_time,
        }
        return {name: value for name, value in named.items() if value is not None}


class SparkSettings(Section):
    """The session that runs the job; `spark-submit` and a running session decide what is not said here."""

    master: str | None = None
    remote: str | None = None
    """A Spark Connect server, as in `sc://host:15002`."""
    settings: Options = Field(default_factory=dict)

    @field_validator("remote")
    @classmethod
    def _one_of_two(cls, remote: str | None, info: ValidationInfo) -> str | None:
        if remote is not None and info.data.get("master") is not None:
            raise PydanticCustomError("two_masters", "give `master` or `remote`, not both")
        return remote


class Job(Section):
    """A whole job file. With a `trigger` the events are a stream, otherwise a table.

    >>> job = Job.model_validate({
    ...     "events": {"format": "parquet", "path": "events"},
    ...     "subscriptions": {"format": "csv", "path": "rules.csv"},
    ...     "sink": {"format": "parquet", "path": "matches"},
    ... })
    >>> job.match.key, job.streaming
    (['event_id'], False)
    """

    name: str = "tamis"
    events: Source
    subscriptions: Subscriptions
    match: Matching = Field(default_factory=Matching)
    sink: Sink
    trigger: Trigger | None = None
    checkpoint: str | None = None
    directory: str | None = None
    """Where the index is kept: a path or URL that all executors reach."""
    spark: SparkSettings = Field(default_factory=SparkSettings)

    @property
    def streaming(self) -> bool:
        """Whether the events are a stream."""
        return self.trigger is not None

    @property
    def formats(self) -> set[str]:
        """The formats of all sources and sinks."""
        parts: list[Any] = [self.events, self.sink, self.subscriptions]
        parts.append(getattr(self.subscriptions, "changes", None))
        return {part.format for part in parts if hasattr(part, "format")}

    @model_validator(mode="after")
    def _stream_or_table(self) -> Self:
        if not self.streaming:
            return self
        if self.checkpoint is None:
            raise PydanticCustomError(
                "checkpoint", "a stream needs a `checkpoint`, the path where it remembers how far it got"
            )
        if self.match.mode == "count_by_subscription":
            raise PydanticCustomError(
                "unbounded", "`mode: count_by_subscription` adds up a whole table; a stream has no end"
            )
        stored = self.subscriptions
        changes = stored.changes if isinstance(stored, StoredSubscriptions) else None
        if isinstance(stored, StoredSubscriptions) and changes and stored.checkpoint is None:
            raise PydanticCustomError(
                "checkpoint", "a stream of changes needs a `checkpoint` in `subscriptions`"
            )
        for place, source in (("events", self.events), ("subscriptions.changes", changes)):
            if isinstance(source, FileSource) and source.table_schema is None and source.format != "delta":
                raise PydanticCustomError(
                    "schema_needed",
                    f"a stream of files needs `schema` in `{place}`, such as `event_id bigint, age int`",
                )
        return self
