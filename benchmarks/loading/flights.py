"""The flights of 2013, repeated with new numbers, as files of one format."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import yaml

from demo.source_system.nycflights import open_source

TABLE = "bronze.many_flights"
DAY = "2013-01-01"
FILES = 8
COLUMNS = {
    "flight_id": "bigint",
    "carrier": "string",
    "flight": "int",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "time_hour": "timestamp",
    "dep_delay": "int",
    "arr_delay": "int",
    "air_time": "int",
    "distance": "int",
}
_WRITE = {"csv": "FORMAT csv, HEADER", "json": "FORMAT json", "parquet": "FORMAT parquet, COMPRESSION zstd"}
_OF_DUCKDB = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}


def delivered(folder: Path, kind: str, rows: int) -> Path:
    """Make a landing root with `FILES` files of `kind`, and next to it, in `tables`, the spec that reads them.

    What an earlier run has laid out is left as it is.
    """
    place = folder / "landing" / "flights" / f"date={DAY}"
    if not place.exists():
        place.mkdir(parents=True)
        with open_source() as source:
            _write(source, place, kind, rows)
    spec = folder / "tables" / "bronze" / "bench" / "many_flights.yaml"
    spec.parent.mkdir(parents=True, exist_ok=True)
    columns = {name: {"type": kind_of_column} for name, kind_of_column in COLUMNS.items()}
    stated: dict[str, object] = {"landing": "flights", "files": f"*.{kind}", "format": kind}
    # Values of flights have no line ends: a file can be read in parts.
    stated = {**stated, "multi_line": False} if kind == "csv" else stated
    spec.write_text(yaml.safe_dump({"table": TABLE, "source": stated, "columns": columns}, sort_keys=False))
    return folder / "landing"


def _write(source: duckdb.DuckDBPyConnection, place: Path, kind: str, rows: int) -> None:
    copies = math.ceil(rows / source.table("source_flights").shape[0])
    columns = ", ".join(f"{name}::{_OF_DUCKDB.get(type_, type_)} AS {name}" for name, type_ in COLUMNS.items())
    numbered = f"SELECT *, row_number() OVER () AS flight_id FROM source_flights, range({copies})"
    source.execute(f"CREATE TABLE many AS SELECT {columns} FROM ({numbered}) WHERE flight_id <= {rows}")
    for number in range(FILES):
        file = place / f"flights-{number}.{kind}"
        source.execute(f"COPY (FROM many WHERE flight_id % {FILES} = {number}) TO '{file}' ({_WRITE[kind]})")
