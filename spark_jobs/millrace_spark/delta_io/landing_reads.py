"""Read landing files as records, with the file of each.

A JSON array is split into records: one per element, with the element's text in the file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, VariantType

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.bronze_sources import SOURCE_FILE, LandingSource
from millrace.contracts.spec.record_fields import field_text
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.formats.plain_copies import (
    COPY_OF,
    far_column,
    nanoseconds_column,
    value_column,
    variant_column,
)
from millrace.control.landing.landing import Landing
from millrace.control.log.batch import COPIED, JSON_ARRAY, MIXED_LINE_ENDS, FileFact
from millrace_spark.delta_io import tables
from millrace_spark.transforms.record_parts import RecordColumns, record_columns
from millrace_spark.transforms.records import (
    CORRUPT,
    RECORD,
    is_blank,
    parse_columns,
    parse_json,
    parse_json_lines,
)
from millrace_spark.transforms.values.avro_values import UNION_OPTIONS, plain_value
from millrace_spark.transforms.values.java_functions import java_function, with_java_functions
from millrace_spark.transforms.values.nested_values import nested_as_json

BLOCK_START = "_block_start"
"""The start, in bytes, of the split of the file that contains the record."""

_STORAGE_ERROR = re.compile(
    r"^Caused by: ((?:software\.amazon\.awssdk|org\.apache\.http|java\.net|javax\.net\.ssl)\.\S+: .*"
    r"|java\.io\.IOException: (?:Input/output error|Stale file handle|Connection).*)",
    re.MULTILINE,
)

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./=:-]+")
"""A path that is the same in a URI, so that no row needs decoding."""

_GLOB_CHARACTERS = re.compile(r"[\\*?\[\]{}]")


def read_landing(
    session: SparkSession,
    spec: BronzeSpec,
    landing: Landing,
    files: Sequence[FileFact],
    copies: Mapping[str, LakePath] | None = None,
) -> DataFrame:
    """Return the records of `files`: declared columns, `_rescued`, `_corrupt_record`, `_source_file`, `_block_start`.

    Files whose columns (CSV, Parquet, Avro) or layouts differ are read separately and combined by column name.
    `copies` has the copy of each file that is to be read from one. The session must not be used for other reads.
    """
    places = {path: tables.spark_path(copy) for path, copy in (copies or {}).items()}
    # Otherwise the reader of Parquet casts VARIANT values itself, and cannot without generated code (Spark 4.1.3).
    session.conf.set("spark.sql.variant.pushVariantIntoScan", "false")
    groups: dict[tuple[tuple[str, ...], str], list[str]] = defaultdict(list)
    for file in files:
        if file.size:
            groups[file.columns, file.layout].append(places.get(file.path) or spark_path(landing, file.path))
    record = record_columns(spec)
    frames = [_read_group(session, spec, record, landing, *group, paths) for group, paths in sorted(groups.items())]
    if frames:
        return record.declared(reduce(DataFrame.unionByName, frames))
    columns = [f"`{name}` {column.type}" for name, column in spec.columns.items()]
    more = ["_rescued string", f"{CORRUPT} string", f"{SOURCE_FILE} string", f"{BLOCK_START} bigint"]
    return session.createDataFrame([], schema=", ".join([*columns, *more]))


def spark_path(landing: Landing, path: str) -> str:
    """Return the path for Spark, with glob characters escaped: a file a*.json must not match other files."""
    return _GLOB_CHARACTERS.sub(r"\\\g<0>", landing.spark_root + path.removeprefix(landing.path_root))


def source_path(landing: Landing, spark_file: str) -> str:
    """Return the ledger's path of a file that Spark names in an error."""
    return landing.path_root + unquote(spark_file).removeprefix(landing.spark_root)


def storage_error_in(error: Exception) -> str:
    """Return the part of Spark's error on a store or disk that failed while it read; empty for other errors.

    >>> storage_error_in(RuntimeError("no luck\\nCaused by: java.net.SocketTimeoutException: Read timed out\\n"))
    'java.net.SocketTimeoutException: Read timed out'
    """
    match = _STORAGE_ERROR.search(str(error))
    return match[1][:300] if match else ""


def _read_group(
    session: SparkSession,
    spec: BronzeSpec,
    record: RecordColumns,
    landing: Landing,
    columns: tuple[str, ...],
    layout: str,
    paths: list[str],
) -> DataFrame:
    # recursiveFileLookup keeps folder names such as date=2013-01-01 from becoming columns.
    reader = session.read.options(recursiveFileLookup="true", **landing.spark_options)
    origin = _origin(landing, paths)
    if layout == JSON_ARRAY:
        whole = reader.text(paths, wholetext=True).select("value", *origin)
        return parse_json(json_elements(whole, SOURCE_FILE), record, spec.source.field_names)
    if spec.landing_source.format == "json":
        lines = reader.text(paths).where(~is_blank("value"))
        return parse_json_lines(lines.select(F.col("value").alias(RECORD), *origin), record, spec.source.field_names)
    # A field may have any name, also that of a column that reads another field: no column is named after its field.
    readers = record.readers(spec, columns)
    names = [readers.get(field, f"_undeclared_{number}") for number, field in enumerate(columns)]
    undeclared = {name: field_text(field) for name, field in zip(names, columns, strict=True) if field not in readers}
    if spec.landing_source.format in ("parquet", "avro"):
        if layout.startswith(COPIED):
            received, of_texts = _of_copies(
                _copies(session, paths, len(names)), dict(zip(names, columns, strict=True)), record
            )
            undeclared |= of_texts
            origin = F.col(SOURCE_FILE), F.col(BLOCK_START)
        else:
            options = {**UNION_OPTIONS, "parquet.page.verify-checksum.enabled": "true"}
            received = reader.format(spec.landing_source.format).options(**options).load(paths).toDF(*names)
        fields = [field for field in received.schema if field.name not in (SOURCE_FILE, BLOCK_START)]
        values = list[Column]()
        for field in fields:
            sent = F.col(field.name), field.dataType
            plain = plain_value(*sent, record.has_commas(field.name))
            values.append(nested_as_json(*plain, record.whole_kind(field.name), sent).alias(field.name))
        received = received.select(*values, F.lit(None).cast("string").alias(CORRUPT), *origin)
    else:
        schema = StructType([StructField(name, StringType()) for name in (*names, CORRUPT)])
        lines = reader.schema(schema).options(**_csv_options(spec.landing_source, layout)).csv(paths)
        # The same, but Spark refuses a query that needs no column but this one.
        corrupt = F.when(F.col(CORRUPT).isNotNull() | F.col(names[0]).isNull(), F.col(CORRUPT))
        received = lines.select(*names, corrupt.alias(CORRUPT), *origin)
    # A CSV file that is not text of its encoding has failed its inspection.
    return parse_columns(received, record, undeclared, sound=names if spec.landing_source.format == "csv" else ())


def _copies(session: SparkSession, paths: list[str], count: int) -> DataFrame:
    """Return the rows of copies of files with `count` columns."""
    copies, variants = session.read.parquet(*paths), {variant_column(number) for number in range(count)}
    if variants.isdisjoint(copies.columns):
        return copies
    fields = [StructField(each.name, VariantType()) if each.name in variants else each for each in copies.schema]
    return session.read.schema(StructType(fields)).parquet(*paths)


def _of_copies(
    copies: DataFrame, field_of: Mapping[str, str], record: RecordColumns
) -> tuple[DataFrame, dict[str, str]]:
    """Return the values of copied files, and further columns -> the paths of what they have, in `_rescued`.

    A time with nanoseconds is cut to microseconds for a column of times, and rescued as a whole under another path.
    One that is too far for microseconds is rescued. For any other column, and for `_rescued`, both are text.
    """
    values, of_texts, existing = list[Column](), dict[str, str](), set(copies.columns)
    for number, (name, field) in enumerate(field_of.items()):
        is_variant = variant_column(number) in existing
        value = F.col(variant_column(number) if is_variant else value_column(number))
        below_of = {nanoseconds_column(number): ".nanoseconds", far_column(number): ""}
        for rest, below in ((rest, below) for rest, below in below_of.items() if rest in existing):
            if record.kinds.get(name) in ("timestamp", "timestamp_ntz", *(() if below else ("date",))):
                values.append(F.col(rest))
                of_texts[rest] = f"{field_text(field)}{below}"
            else:
                value = F.coalesce(F.col(rest), value.cast("string"))
        values.append(value.alias(name))
    origin = F.col(COPY_OF).alias(SOURCE_FILE), F.col("_metadata.file_block_start").alias(BLOCK_START)
    return copies.select(*values, *origin), of_texts


def _csv_options(source: LandingSource, layout: str) -> dict[str, str]:
    # Without lineSep, Spark turns each line end within quotes into a line feed; line by line it accepts every kind.
    is_by_line = not source.multi_line or layout == MIXED_LINE_ENDS
    line_end = {} if is_by_line else {"lineSep": layout or "\n"}
    return {
        **line_end,
        "columnNameOfCorruptRecord": CORRUPT,
        "columnPruning": "false",
        "header": str(source.header),
        "sep": source.delimiter,
        "quote": source.quote,
        "escape": source.escape,
        "multiLine": str(not is_by_line),
        "encoding": source.encoding,
    }


def _origin(landing: Landing, paths: list[str]) -> tuple[Column, Column]:
    path = F.col("_metadata.file_path")  # a URI, with one or three slashes after file:
    if not all(_PLAIN_PATH.fullmatch(path_text) for path_text in paths):
        # url_decode alone would turn a plus sign in a name into a blank.
        path = F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))
    root = landing.spark_root
    starts = (root,) if "://" in root else (f"file://{root}", f"file:{root}")
    # Cut by bytes, because counting characters takes a tenth of a large load.
    lengths = {start: len(start.encode()) for start in starts}
    below_root = (
        F.when(path.startswith(start), F.substring(path.cast("binary"), length + 1, 2**31 - 1 - length).cast("string"))
        for start, length in lengths.items()
    )
    file = F.concat(F.lit(landing.path_root), F.coalesce(*below_root))
    return file.alias(SOURCE_FILE), F.col("_metadata.file_block_start").alias(BLOCK_START)


_ERROR_PREFIX = "not one sound JSON array: "
_ERROR = re.compile(rf"{_ERROR_PREFIX}(.+?) - have it")


def json_elements(files: DataFrame, source: str) -> DataFrame:
    """Return the elements of files that each contain one JSON array.

    Args:
        files: one row per file: its text as `value`, and other columns.
        source: the column with the name of the file.

    Returns:
        One row per element: its text as `_record`, and the other columns. Reading it fails at a file that is no array:
        the file changed after its inspection, or only Python's reader accepts it as an array.
    """
    refusal = F.raise_error(F.concat(F.lit(_ERROR_PREFIX), source, F.lit(" - have it delivered again"))).cast(
        "array<binary>"
    )
    elements = F.coalesce(java_function("JsonElements", F.col("value").cast("binary")), refusal)
    others = [name for name in files.columns if name != "value"]
    rows = with_java_functions(files).select(F.explode(elements).alias(RECORD), *others)
    return rows.withColumn(RECORD, F.col(RECORD).cast("string"))


def invalid_array_in(error: BaseException) -> str:
    """Return the file that failed a read because it is no JSON array; empty for another error.

    >>> invalid_array_in(RuntimeError("[USER_RAISED_EXCEPTION] not one sound JSON array: a/b.json - have it delivered"))
    'a/b.json'
    """
    match = _ERROR.search(str(error))
    return match[1] if match else ""
