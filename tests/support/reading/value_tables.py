"""Tables of Spark with the values at which readers fail: nulls, extremes, NaN, -0.0, zero, the ends of time."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.control.changes.table_properties import READER_SAFE
from millrace.control.log.delta_log import USER_METADATA_KEY
from millrace.control.log.stored_tables import TABLE_ID, open_table
from millrace.paths import LakehousePaths
from millrace_spark.delta_io.reads import read_version
from millrace_spark.delta_io.tables import replace_statement
from tests.support.reading.predicates import Predicate, random_predicates

PLAIN, BY_VALUE = "silver.plain", "silver.by_value"
"""A table with all types, and one with partitions of all values."""

_NUMBERS = ["NaN", "-0.0", "0.0", "1.5", "-2.25", "Infinity", "-Infinity"]
VALUES = {
    "boolean": ["true", "false"],
    "tinyint": ["0", "7", "-128", "127"],
    "smallint": ["0", "7", "-32768", "32767"],
    "int": ["0", "7", "-2147483648", "2147483647"],
    "bigint": ["0", "7", "9007199254740993", "-9223372036854775808", "9223372036854775807"],
    "float": [*_NUMBERS, "3.4028235E38", "1.4E-45"],
    "double": [*_NUMBERS, "1.7976931348623157E308", "4.9E-324"],
    "decimal(10,2)": ["0.00", "7.00", "0.01", "-12.50", "-0.50", "99999999.99"],
    "decimal(18,8)": ["0.00000000", "0.50000000", "-0.00000001", "-1.50000000", "9999999999.99999999"],
    "decimal(38,18)": ["0.000000000000000000", "0.500000000000000000", "-99999999999999999999.999999999999999999"],
    "date": ["2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31"],
    "timestamp": [
        "2024-02-29 12:00:00.000001", "2024-02-29 12:00:00.000999", "1969-12-31 23:59:59.999900",
        "0001-01-01 00:00:00.000000", "9999-12-31 23:59:59.999999",
    ],
    "string": ["", "a", "é", "NULL", '%20 a=b/"c"', "__HIVE_DEFAULT_PARTITION__", "x" * 40, "\U0010ffff" * 40],
    "binary": ["", "00", "ff00", "616263"],
}  # fmt: skip
"""Type -> texts of its values."""
KINDS = {kind.replace("(", "_").replace(",", "_").rstrip(")"): kind for kind in VALUES}
"""Column -> its type; each column has the name of its type."""
PARTED = {name: kind for name, kind in KINDS.items() if kind not in ("tinyint", "smallint", "bigint", "binary")}
"""The partition columns of the second table; Spark has no partitions of bytes that a folder could name."""
FIELDS = {"parts.x": "double", "parts.d": "decimal(18,8)"}
"""Field of a struct -> its type."""
TYPES = {
    "id": "int", **KINDS, "parts": "struct<x: double, d: decimal(18,8)>", "items": "array<double>",
    "named": "map<string, date>",
}  # fmt: skip
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_ROWS_OF_A_FILE, _STATISTICS = 3, "delta.dataSkippingStatsColumns"


def rows_of_files() -> list[dict[str, str | int | None]]:
    """Return texts of rows: a file of nulls, files with one value of each column, and files of any values."""
    chosen, files = random.Random(1), 1 + max(map(len, VALUES.values()))
    rows: list[dict[str, str | int | None]] = []
    for file in range(files + 3):
        for at in range(_ROWS_OF_A_FILE):
            row: dict[str, str | int | None] = {"file": file, "id": len(rows)}
            for name, kind in KINDS.items():
                values = VALUES[kind]
                any_value = chosen.choice([*values, None])
                row[name] = None if file == 0 else values[file % len(values)] if file < files else any_value
                if at == 0 and file % 2:
                    row[name] = None
            rows.append(row)
    return rows


STATES = {
    "loaded": (),
    "restored": ("DELETE FROM {} WHERE id % 2 = 0", "RESTORE {} VERSION AS OF {version}"),
    "optimized": ("OPTIMIZE {}",),
    "vacuumed": ("VACUUM {} RETAIN 0 HOURS",),
    "rebuilt": ("{rebuild}",),
}
"""What is done to a table, one after the other -> the statements; none of them changes its rows in the end."""


def create(spark: SparkSession, paths: LakehousePaths, table: str) -> Path:
    """Create one of the two tables. The first has its rows twice: only the second ones have statistics."""
    path, partitions = Path(str(paths.table(table))), list(PARTED) if table == BY_VALUE else []
    kinds = {name: kind for name, kind in TYPES.items() if not partitions or name in ("id", *partitions)}
    columns = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) {_how(partitions, 'id')}")
    rows = typed_rows(spark)
    if not partitions:
        rows = rows.repartitionByRange(rows.select("file").distinct().count(), "file")
        rows.select(*kinds).write.format("delta").mode("append").save(str(path))
        skippable = [name for name, kind in KINDS.items() if kind not in ("boolean", "binary")]
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{_STATISTICS}' = '{','.join(['id', *skippable])}')")
    rows.select(*kinds).write.format("delta").mode("append").save(str(path))
    return path


def change(spark: SparkSession, path: Path, state: str) -> None:
    """Bring a table into a state."""
    delta = open_table(path)
    metadata = delta.metadata()
    read_version(spark, path, delta.version()).createOrReplaceTempView("built")
    properties = {**metadata.configuration, TABLE_ID: str(uuid4())}
    rebuild = replace_statement(path, "built", metadata.partition_columns, properties, "")
    # By this entry in its log a table is known to be another one from here on.
    spark.conf.set(_METADATA, json.dumps({USER_METADATA_KEY: {"sources": {"rebuild": state == "rebuilt"}}}))
    for statement in STATES[state]:
        spark.sql(statement.replace("{}", f"delta.`{path}`").format(version=delta.version(), rebuild=rebuild)).collect()
    spark.conf.unset(_METADATA)


def _how(partitions: Sequence[str], statistics: str) -> str:
    """Return the clauses of a CREATE TABLE."""
    by = f"PARTITIONED BY ({', '.join(f'`{name}`' for name in partitions)})" if partitions else ""
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in {**READER_SAFE, _STATISTICS: statistics}.items())
    return f"USING delta {by} TBLPROPERTIES ({listed})"


def typed_rows(spark: SparkSession) -> DataFrame:
    """Return the rows with their types, and the number of the file."""
    rows = rows_of_files()
    texts = ", ".join(f"`{name}` {'int' if name in ('file', 'id') else 'string'}" for name in rows[0])
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], texts)
    typed = [
        (F.unhex(name) if kind == "binary" else F.col(name).cast(kind)).alias(name) for name, kind in KINDS.items()
    ]
    return frame.select("file", "id", *typed).selectExpr(
        "*",
        "if(id % 4 = 1, null, named_struct('x', double, 'd', decimal_18_8)) AS parts",
        "if(id % 4 = 2, null, array(double)) AS items",
        "if(id % 4 = 3, null, map('k', date)) AS named",
    )


def file_count(path: Path) -> int:
    """Return the number of data files of the newest version."""
    return len(open_table(path).file_uris())


def filters_of(table: str, seed: str, count: int) -> list[Predicate]:
    """Return filters on each column of a table, by its values."""
    kinds = PARTED if table == BY_VALUE else {**KINDS, **FIELDS}
    return [one for name, kind in kinds.items() for one in random_predicates(seed, name, kind, VALUES[kind], count)]


def ids_of_spark(spark: SparkSession, path: Path, filters: Sequence[Predicate]) -> list[list[int]]:
    """Return the ids of the rows that Spark finds by each filter; it evaluates all of them in one query."""
    return ids_of_frame(spark.sql(f"FROM delta.`{path}`"), filters)


def ids_of_frame(frame: DataFrame, filters: Sequence[Predicate]) -> list[list[int]]:
    """Return the ids of the rows of a frame of Spark that it finds by each filter."""
    rows = frame.selectExpr("id", *(f"{one.spark} AS p{at}" for at, one in enumerate(filters))).collect()
    return [sorted(row["id"] for row in rows if row[f"p{at}"]) for at in range(len(filters))]
