"""The sources of a bronze table: landing files, or Kafka topics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import ByteSize, Discriminator, Field, Tag, field_validator, model_validator

from millrace.contracts.spec.values import NAME, Bytes, Character, ColumnName, Pattern, StartingOffsets, Wait
from millrace.contracts.strict_model import StrictModel

BATCH_SIZES = {
    "min_age",
    "wait",
    "max_attempts_per_file",
    "max_files_per_batch",
    "max_bytes_per_batch",
    "max_messages_per_batch",
    "min_bytes_per_file",
    "allowed_latency",
    "accepted_losses",
    "limits",
}
"""The settings that decide when a batch is made and how large it is, but not which rows the table gets."""


FieldNames = Literal["exact", "any_case"]
"""How the names of fields are compared with those that a spec states."""

EPOCH = "_epoch"
"""The column of a message's epoch, an int that sorts before its offset: a topic that is made again, or gets partitions,
begins the next epoch. Null, as 0, in rows of an earlier Millrace."""

SOURCE_FILE = "_source_file"
"""The column of the landing file that a row came from, relative to the landing root."""

NULL_MESSAGE = "_null_message"
"""True for a message with a key and no value: in a compacted topic it means that the key is deleted."""

MESSAGE_ORIGIN = {
    "_topic": "string",
    "_partition": "int",
    EPOCH: "int",
    "_offset": "bigint",
    "_timestamp": "timestamp",
    "_key": "binary",
    NULL_MESSAGE: "boolean",
}
"""The columns, with types, that bronze stores of every message next to its value."""

_LOSS = r"^[\w.-]+(/\d+ \d+-\d+)? [\w+/-]+$"
"""A partition with its lost offsets, or a topic, and Kafka's id of the topic."""

_CSV_SETTINGS = ("delimiter", "quote", "escape", "header", "multi_line", "encoding")


class WaitSpec(StrictModel):
    """The wait of a sensor or a deferrable task in Airflow for the landing files of its interval.

    Attributes:
        timeout: how long a task waits, from the start of the table's first task; then it fails. With `0 seconds` it
            fails at once.
        poke_interval: how often Airflow's triggerer looks for the files.
    """

    timeout: Wait = Field(default=timedelta(minutes=75), json_schema_extra={"default": "75 minutes"})
    poke_interval: Wait = Field(default=timedelta(minutes=1), json_schema_extra={"default": "1 minutes"})

    @field_validator("poke_interval")
    @classmethod
    def _takes_time(cls, interval: timedelta) -> timedelta:
        if not interval:
            raise ValueError("a poke_interval of nothing would never rest; write '30 seconds'")
        return interval


class FileLimits(StrictModel):
    """The most that one landing file may ask of those who read it; a file that asks for more is broken.

    Attributes:
        record: the size of a record, unpacked: a line of JSON, an element of an array, a record of a CSV file; of the
            last two in characters.
        header: the size of the header of a CSV file, in characters.
        columns: the number of columns of a CSV, Parquet or Avro file.
        block: the size of a block of an Avro file, unpacked.
        expansion: how many times its size a compressed file has unpacked; a small one may have the size of a `record`.
        memory: what the process that reads a Parquet or Avro file before Spark may use for that (on Linux).
        time: the computing time of that process, per 64 MiB of the file or a part of that; a well compressed file takes
            up to three minutes.
    """

    record: Bytes = Field(default=ByteSize(16 << 20), json_schema_extra={"default": "16 MiB"})
    header: Bytes = Field(default=ByteSize(1 << 20), json_schema_extra={"default": "1 MiB"})
    columns: int = Field(default=10_000, gt=0)
    block: Bytes = Field(default=ByteSize(256 << 20), json_schema_extra={"default": "256 MiB"})
    expansion: int = Field(default=500, gt=0)
    memory: Bytes = Field(default=ByteSize(1 << 30), json_schema_extra={"default": "1 GiB"})
    time: Wait = Field(default=timedelta(minutes=10), json_schema_extra={"default": "10 minutes"})

    def over(self, limit: str, found: str) -> ValueError:
        """Return the error of a file over a limit.

        >>> print(FileLimits().over("columns", "it has 40000 columns"))
        it has 40000 columns, and source.limits.columns is 10000; correct the file or raise the limit
        """
        value = getattr(self, limit)
        text = value.human_readable(separator=" ") if isinstance(value, ByteSize) else value
        text = f"{value.total_seconds():.0f} seconds" if isinstance(value, timedelta) else text
        return ValueError(f"{found}, and source.limits.{limit} is {text}; correct the file or raise the limit")


class LandingSource(StrictModel):
    """The place and the form of the files that a source system delivers.

    Attributes:
        landing: folder under the landing root, or a prefix of a bucket: `s3://bucket/prefix`.
        path: folder of one interval below `landing`, with Python format fields of `interval_start` and `interval_end`;
            without such a field every run loads all new files of the folder.
        files: glob of the file names in the folder and below; a glob with a slash matches their paths. Other files are
            ignored, and so are hidden and unfinished ones: names that begin with `.` or `_`, or end in `.tmp`,
            `.partial`, `.inprogress`, `._COPYING_` or `.crc`.
        format: `json` (one object per line, or one array of objects), `csv` (with a header line), `parquet` or `avro`;
            JSON and CSV files whose names end in `.gz` or `.zst` are unpacked.
        delimiter: CSV files: the character between two values.
        quote: CSV files: the character around a value that contains a delimiter.
        escape: CSV files: the character before a quote within a value; by default a quote is doubled.
        header: CSV files: whether the first line names the columns; without it the columns are those of the spec, in
            its order.
        multi_line: CSV files: whether a quoted value may contain line ends; if not, Spark can read one very large file
            in parallel, but cuts such values.
        encoding: CSV files: the encoding; other formats are UTF-8. A file that is not valid text of it is broken.
        field_names: whether a column also reads a field whose name differs in case only (`any_case`), or not (`exact`).
        on_changed_file: what happens when a loaded file is delivered again with other content: `reject` fails the run
            and names both, `append_new_version` loads it too and keeps the old rows, `replace` replaces the old rows,
            also in silver and gold.
        min_age: how old a file must be; a younger file may be unfinished, and waits.
        wait: how long a sensor or a deferrable task in Airflow waits for files that are not there yet.
        max_attempts_per_file: the number of runs that a file fails if it cannot be loaded, or kills whatever loads it;
            later runs continue without it, until it is delivered again or replayed.
        max_files_per_batch: the most files that a batch loads; the run makes further batches.
        max_bytes_per_batch: the most bytes that a batch loads; it loads at least one file.
        limits: the most that one file may ask of those who read it; a file that asks for more is broken.
    """

    landing: str
    path: str = "date={interval_start:%Y-%m-%d}"
    files: str = "*"
    format: Literal["json", "csv", "parquet", "avro"]
    delimiter: Character = ","
    quote: Character = '"'
    escape: Character = '"'
    header: bool = True
    multi_line: bool = True
    encoding: Literal["UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32"] = "UTF-8"
    field_names: FieldNames = "exact"
    on_changed_file: Literal["reject", "append_new_version", "replace"] = "reject"
    min_age: Wait = Field(default=timedelta(), json_schema_extra={"default": "0 seconds"})
    wait: WaitSpec = WaitSpec()
    max_attempts_per_file: int = Field(default=3, gt=0)
    max_files_per_batch: int = Field(default=1000, gt=0)
    max_bytes_per_batch: Bytes | None = None
    limits: FileLimits = FileLimits()

    @model_validator(mode="after")
    def _csv_settings_fit(self) -> Self:
        settings = [name for name in _CSV_SETTINGS if getattr(self, name) != type(self).model_fields[name].default]
        if settings and self.format != "csv":
            raise ValueError(f"only CSV files have {', '.join(settings)}")
        if self.encoding.startswith(("UTF-16", "UTF-32")) and not self.multi_line:
            raise ValueError(f"{self.encoding} files are read whole: leave out multi_line")
        if self.field_names != "exact" and not self.has_field_names:
            raise ValueError("field_names is for records that name their fields: these CSV files have no header")
        return self

    @property
    def has_field_names(self) -> bool:
        """Whether its records name their fields."""
        return self.format != "csv" or self.header

    @property
    def replaces(self) -> bool:
        """Whether a file that is delivered again with other content replaces the old rows."""
        return self.on_changed_file == "replace"

    @property
    def origin_columns(self) -> dict[str, str]:
        """The columns that say where a row came from, with their types."""
        return {SOURCE_FILE: "string"}

    @property
    def label(self) -> str:
        """The files, for people."""
        return f"{self.landing}/{self.path}/{self.files}"


class KafkaSource(StrictModel):
    """The Kafka topics that a bronze table reads; each message becomes one row.

    Attributes:
        kafka: the name of the cluster in `LAKEHOUSE_KAFKA`, which has the client's settings.
        topics: the names of the topics; or else `topic_pattern`.
        topic_pattern: regular expression of whole topic names; a topic that is created later is read from its start.
        starting_offsets: where the first batch starts: `earliest`, `latest`, or an instant, such as
            `2013-01-01T00:00:00Z`. Every later batch starts where the last committed batch ended.
        format: the format of a message's value: `json` (one object), `csv` (one line, with the values in the order of
            the columns), `avro` (with `avro_schema`), or `raw` (bytes, in a column `value`).
        delimiter: CSV values: the character between two values.
        avro_schema: the Avro schema of the values, as JSON: plain Avro, one record. A value with the five bytes of a
            schema registry, or with anything after the record, goes to the quarantine.
        field_names: whether a column also reads a field whose name differs in case only (`any_case`), or not (`exact`).
        transforms: column -> Spark SQL over the message's `key`, `value`, `headers`, `topic`, `partition`, `offset` and
            `timestamp`, with the names and types of Spark's Kafka source: `key` and `value` are bytes. No clock, no
            chance.
        headers: whether the messages' headers are kept, in `_headers`.
        max_messages_per_batch: the most messages that a batch reads, spread over the partitions; the run makes further
            batches until it has read all that were there when it began.
        min_bytes_per_file: messages that would make a smaller file wait for more, but no longer than `allowed_latency`.
        allowed_latency: how long after the last batch messages may wait for `min_bytes_per_file`.
        accepted_losses: messages that the brokers deleted before they were read, without which runs go on, as the
            error of a run names them: `topic/partition first-last id`, or `topic id`; any other loss fails the run.
    """

    kafka: str = Field(pattern=rf"^{NAME}$")
    topics: tuple[str, ...] = ()
    topic_pattern: Pattern | None = None
    starting_offsets: StartingOffsets = "earliest"
    format: Literal["json", "csv", "avro", "raw"]
    delimiter: Character = ","
    avro_schema: str | None = None
    field_names: FieldNames = "exact"
    transforms: dict[ColumnName, str] = Field(default_factory=dict)
    headers: bool = False
    max_messages_per_batch: int = Field(default=1_000_000, gt=0)
    min_bytes_per_file: Bytes | None = None
    allowed_latency: Wait = Field(default=timedelta(minutes=10), json_schema_extra={"default": "10 minutes"})
    accepted_losses: tuple[Annotated[str, Field(pattern=_LOSS)], ...] = ()

    @model_validator(mode="after")
    def _settings_fit_one_another(self) -> Self:
        if bool(self.topics) == bool(self.topic_pattern):
            raise ValueError("say which topics to read: either topics, a list of names, or topic_pattern")
        if (self.format == "avro") != (self.avro_schema is not None):
            raise ValueError("format: avro and avro_schema go together")
        if self.field_names != "exact" and self.format not in ("json", "avro"):
            raise ValueError(f"field_names is for records that name their fields: {self.format} values do not")
        return self

    @field_validator("avro_schema")
    @classmethod
    def _schema_is_json(cls, text: str | None) -> str | None:
        try:
            schema = json.loads(text or "{}")
        except json.JSONDecodeError as error:
            raise ValueError(f"an Avro schema is JSON, this is not ({error})") from error
        if text is not None and (not isinstance(schema, dict) or schema.get("type") != "record"):
            raise ValueError('the values\' schema must be a record: {"type": "record", "name": ..., "fields": [...]}')
        if like := next(_like_names(schema), None):
            raise ValueError(f"its fields {' and '.join(like)} differ only in case, and Spark takes them for one")
        return text

    def reads(self, topic: str) -> bool:
        """Return whether it names a topic; a pattern matches none of Kafka's own, such as `__consumer_offsets`."""
        if self.topic_pattern:
            return not topic.startswith("__") and bool(re.fullmatch(self.topic_pattern, topic))
        return topic in self.topics

    @property
    def has_field_names(self) -> bool:
        """Whether its records name their fields."""
        return self.format == "json"

    @property
    def origin_columns(self) -> dict[str, str]:
        """The columns that say where a message came from, with their types."""
        headers = {"_headers": "array<struct<key:string,value:binary>>"} if self.headers else {}
        return {**MESSAGE_ORIGIN, **headers}

    @property
    def label(self) -> str:
        """The cluster and its topics, for people."""
        return f"Kafka {self.kafka}: {self.topic_pattern or ', '.join(self.topics)}"


def _like_names(schema: Any) -> Iterator[list[str]]:
    """Yield the fields of a record, within an Avro schema, whose names differ only in upper and lower case."""
    if isinstance(schema, list):
        yield from (like for part in schema for like in _like_names(part))
    elif isinstance(schema, dict):
        fields = schema["fields"] if isinstance(schema.get("fields"), list) else []
        names = [str(field.get("name")) for field in fields if isinstance(field, dict)]
        of_name = {name.lower(): [each for each in names if each.lower() == name.lower()] for name in names}
        yield from (like for like in of_name.values() if len(like) > 1)
        yield from (like for key in ("type", "items", "values", "fields") for like in _like_names(schema.get(key)))


def _source_kind(source: object) -> str:
    """Return the tag of a source. A source with the key `kafka` is meant as a Kafka source, even if it is wrong."""
    return "kafka" if isinstance(source, KafkaSource) or (isinstance(source, dict) and "kafka" in source) else "files"


BronzeSource = Annotated[
    Annotated[LandingSource, Tag("files")] | Annotated[KafkaSource, Tag("kafka")], Discriminator(_source_kind)
]
"""Landing files, or Kafka topics."""

SOURCE_KINDS: dict[str, type[StrictModel]] = {"files": LandingSource, "kafka": KafkaSource}
"""Tag -> model, as pydantic names them in its errors."""
