"""Where a bronze table takes its records from: landing files, or Kafka topics."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from include.contracts.spec.part import SpecPart
from include.contracts.spec.values import NAME, Bytes, Character, ColumnName, Pattern, StartingOffsets, Wait

BATCH_SIZES = {
    "min_age",
    "max_attempts_per_file",
    "max_files_per_batch",
    "max_bytes_per_batch",
    "max_messages_per_batch",
    "min_bytes_per_file",
    "allowed_latency",
    "fail_on_data_loss",
}
"""The settings that say when a batch is made and how large it is, and nothing about its rows."""


_OF_CSV = ("delimiter", "quote", "escape", "header", "multi_line", "encoding")


class LandingSource(SpecPart):
    """Where a source system delivers files, and in which form.

    Attributes:
        landing: folder under the landing root, or a prefix of a bucket: `s3://bucket/prefix`.
        path: folder of one interval below it, by Python format fields of `interval_start` and `interval_end`; without
            such a field every run takes whatever is new in the folder.
        files: glob of the file names in the folder and below, or with a slash of their paths; others are left alone.
        format: `json` (one object a line, or one array of objects), `csv` (with a header line), `parquet` or `avro`;
            JSON and CSV files whose names end in `.gz` or `.zst` are unpacked.
        delimiter: of CSV files.
        quote: of CSV files: what stands around a value that holds a delimiter.
        escape: of CSV files: what stands before a quote within a value; a doubled quote by default.
        header: whether a CSV file begins with the names of its columns; else they are those of the spec, in its order.
        multi_line: of CSV files: whether a quoted value may hold line ends; without, Spark can read a file in parts.
        encoding: of CSV files; other formats are UTF-8.
        on_changed_file: what a loaded name with other content is: `reject` fails the run and names both,
            `append_new_version` loads it beside the old one, whose rows stay, and `replace` puts its rows in the place
            of the old ones, also in silver and gold.
        min_age: a file that was changed more recently is taken to be unfinished, and waits.
        max_attempts_per_file: a file that cannot be loaded fails so many runs; later ones go on without it, until it is
            delivered again or replayed.
        max_files_per_batch: a batch loads so many files at most; the run goes on with further batches until all are in.
        max_bytes_per_batch: a batch loads so many bytes at most, but one file at least; such as `10 GiB`.
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
    on_changed_file: Literal["reject", "append_new_version", "replace"] = "reject"
    min_age: Wait = Field(default=timedelta(), json_schema_extra={"default": "0 seconds"})
    max_attempts_per_file: int = Field(default=3, gt=0)
    max_files_per_batch: int = Field(default=1000, gt=0)
    max_bytes_per_batch: Bytes | None = None

    @model_validator(mode="after")
    def _only_csv_is_written_in_many_ways(self) -> Self:
        of_csv = [name for name in _OF_CSV if getattr(self, name) != type(self).model_fields[name].default]
        if of_csv and self.format != "csv":
            msg = f"only CSV files have {', '.join(of_csv)}"
            raise ValueError(msg)
        if self.encoding.startswith(("UTF-16", "UTF-32")) and not self.multi_line:
            msg = f"{self.encoding} files are read whole: leave out multi_line"
            raise ValueError(msg)
        return self

    @property
    def names_its_fields(self) -> bool:
        """Whether a field can be told by its name from those that the spec has."""
        return self.format != "csv" or self.header

    @property
    def replaces(self) -> bool:
        """Whether a loaded name with other content takes the place of what it held."""
        return self.on_changed_file == "replace"

    @property
    def label(self) -> str:
        """The files, as a person calls them."""
        return f"{self.landing}/{self.path}/{self.files}"


class KafkaSource(SpecPart):
    """The Kafka topics that a bronze table reads; each message becomes one row.

    Attributes:
        kafka: the cluster, by its name in LAKEHOUSE_KAFKA, which says how it is reached.
        topics: the topics, by name; or else `topic_pattern`.
        topic_pattern: regular expression of whole topic names; a topic that is created later is read from its start.
        starting_offsets: where the first batch starts: `earliest`, `latest`, or an instant, such as
            `2013-01-01T00:00:00Z`. Every later batch starts where the last committed one ended.
        format: of a message's value: `json` (one object), `csv` (one line, its values in the order of the columns),
            `avro` (with `avro_schema`), or `raw` (bytes, in a column `value`).
        delimiter: of CSV values.
        avro_schema: the Avro schema of the values, as JSON.
        transforms: column -> Spark SQL over the message's `key`, `value`, `headers`, `topic`, `partition`, `offset` and
            `timestamp`, named and typed as Spark's Kafka source does: such as `cast(key as string)`.
        headers: whether the messages' headers are kept, in `_headers`.
        max_messages_per_batch: a batch takes so many messages at most; the run goes on with further batches.
        min_bytes_per_file: messages that would make a smaller file wait for more, but no longer than `allowed_latency`.
        allowed_latency: how long after the last batch messages may wait for `min_bytes_per_file`.
        fail_on_data_loss: whether messages that the broker deleted before they were read fail the run; else the run
            goes on with what is left, and says what was lost.
    """

    kafka: str = Field(pattern=rf"^{NAME}$")
    topics: tuple[str, ...] = ()
    topic_pattern: Pattern | None = None
    starting_offsets: StartingOffsets = "earliest"
    format: Literal["json", "csv", "avro", "raw"]
    delimiter: Character = ","
    avro_schema: str | None = None
    transforms: dict[ColumnName, str] = Field(default_factory=dict)
    headers: bool = False
    max_messages_per_batch: int = Field(default=1_000_000, gt=0)
    min_bytes_per_file: Bytes | None = None
    allowed_latency: Wait = Field(default=timedelta(minutes=10), json_schema_extra={"default": "10 minutes"})
    fail_on_data_loss: bool = True

    @model_validator(mode="after")
    def _names_its_topics_once(self) -> Self:
        if bool(self.topics) == bool(self.topic_pattern):
            msg = "say which topics to read: either topics, a list of names, or topic_pattern"
            raise ValueError(msg)
        return self

    @field_validator("avro_schema")
    @classmethod
    def _schema_is_json(cls, text: str | None) -> str | None:
        try:
            stated = json.loads(text or "{}")
        except json.JSONDecodeError as error:
            msg = f"an Avro schema is JSON, this is not ({error})"
            raise ValueError(msg) from error
        if text is not None and (not isinstance(stated, dict) or stated.get("type") != "record"):
            msg = 'the values\' schema must be a record: {"type": "record", "name": ..., "fields": [...]}'
            raise ValueError(msg)
        return text

    @model_validator(mode="after")
    def _avro_has_its_schema(self) -> Self:
        if (self.format == "avro") != (self.avro_schema is not None):
            msg = "format: avro and avro_schema go together"
            raise ValueError(msg)
        return self

    @property
    def names_its_fields(self) -> bool:
        """Whether a field can be told by its name from those that the spec has."""
        return self.format == "json"

    @property
    def label(self) -> str:
        """The cluster and its topics, as a person calls them."""
        return f"Kafka {self.kafka}: {self.topic_pattern or ', '.join(self.topics)}"


def _kind_of_source(source: object) -> str:
    """Which of the two a source is, or is meant to be: a Kafka source names its cluster."""
    return "kafka" if isinstance(source, KafkaSource) or (isinstance(source, dict) and "kafka" in source) else "files"


BronzeSource = Annotated[
    Annotated[LandingSource, Tag("files")] | Annotated[KafkaSource, Tag("kafka")], Discriminator(_kind_of_source)
]
"""Either kind of source."""

SOURCE_KINDS: dict[str, type[SpecPart]] = {"files": LandingSource, "kafka": KafkaSource}
"""Tag -> model, as pydantic names them in its errors."""
