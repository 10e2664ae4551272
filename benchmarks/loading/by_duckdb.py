"""DuckDB: read files, write one Parquet file.

by_duckdb.py FOLDER KIND OUT
"""

from __future__ import annotations

import sys

import duckdb

from benchmarks.loading.flights import COLUMNS


def load(folder: str, kind: str, out: str) -> None:
    """Write the typed rows of the files of `folder` to the file `out`."""
    kinds = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}
    columns = {name: kinds.get(type_, type_) for name, type_ in COLUMNS.items()}
    schema = "" if kind == "parquet" else f", columns = {columns}"
    reader = {"csv": "read_csv", "json": "read_json", "parquet": "read_parquet"}[kind]
    more = ", format = 'newline_delimited'" if kind == "json" else ", header = true" if kind == "csv" else ""
    rows = f"SELECT * FROM {reader}('{folder}/*.{kind}'{schema}{more}, filename = true, hive_partitioning = false)"
    duckdb.execute(f"COPY ({rows}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)")


if __name__ == "__main__":
    load(*sys.argv[1:])
