"""Series 22: `lakehouse table-diff` of two versions of a million rows without a common file, 1 % of them changed,
against one full join of the Parquet files by DuckDB."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import duckdb
from deltalake import DeltaTable, write_deltalake

from benchmarks.bench import Bench
from benchmarks.cost import Cost, FailedRunError, measure
from benchmarks.result import Result
from benchmarks.rounds import interleaved
from millrace.paths import LakehousePaths

ROWS = 1_000_000
TARGET = 6.0
"""The command finds out more: which columns changed, keys of several rows, examples; and reads files through Arrow."""
_TABLE = "silver.orders"
_COLUMNS = ("customer", "amount", "status", "ordered_at", "note", "score")
_DIFFERS, _CHANGED = 1, f"{ROWS // 100:,}"


def run(bench: Bench) -> list[Result]:
    """Write both versions, then compare them in both ways.

    Raises:
        FailedRunError: one of them finds another number of changed rows.
    """
    root = bench.fresh("table-diff")
    table = LakehousePaths(root).table(_TABLE)
    bench.console.print(f"  writing {ROWS:,} rows twice")
    for changed in (False, True):
        write_deltalake(str(table), _orders(changed).to_arrow_reader(), mode="overwrite", target_file_size=8_000_000)
    join = _full_join(*(DeltaTable(str(table), version=version).file_uris() for version in (0, 1)))
    command, peer = "table-diff", "full join"
    versions = " ".join(f"{_TABLE}@{version}" for version in (0, 1))
    diff = f"{Path(sys.executable).parent / 'lakehouse'} table-diff {versions} --key order_id; test $? = {_DIFFERS}"
    commands = {command: ["sh", "-c", diff], peer: [sys.executable, "-c", join]}
    environ = {**os.environ, "LAKEHOUSE_ROOT": str(root), "LAKEHOUSE_TABLES": str(root)}
    runs = {side: partial(_compare, bench, side, words, environ) for side, words in commands.items()}
    sides = interleaved(runs, bench.rounds, bench.print_cost)
    facts = {f"peak memory, {name}": f"{side.peak_mb:.0f} MB" for name, side in sides.items()}
    return [Result("two versions of a million rows, 1 % changed", command, peer, sides, TARGET, facts)]


def _orders(changed: bool) -> duckdb.DuckDBPyRelation:
    more = "CASE WHEN i % 100 = 7 THEN 0.01 ELSE 0 END" if changed else "0"
    return duckdb.sql(f"""
        SELECT i AS order_id, 'customer-' || (i * 7919 % 100000) AS customer,
            (((i * 31) % 100000 / 100)::DECIMAL(12, 2) + {more})::DECIMAL(12, 2) AS amount,
            ['new', 'paid', 'sent'][1 + i % 3] AS status,
            TIMESTAMPTZ '2026-01-01 00:00:00+00' + INTERVAL (i) SECOND AS ordered_at,
            md5(i::VARCHAR) AS note, (i % 1000) / 3.0 AS score
        FROM range({ROWS}) AS numbers(i)
    """)


def _full_join(before: list[str], after: list[str]) -> str:
    """Return a script that prints the number of changed rows."""
    differs = " OR ".join(f"a.{name} IS DISTINCT FROM b.{name}" for name in _COLUMNS)
    sql = f"""
        SELECT count(*) FILTER (WHERE a.order_id IS NULL), count(*) FILTER (WHERE b.order_id IS NULL),
            format('{{:,}}', count(*) FILTER (WHERE a.order_id = b.order_id AND ({differs})))
        FROM read_parquet({before}) AS a FULL JOIN read_parquet({after}) AS b ON a.order_id = b.order_id
    """
    return f"import duckdb; print(duckdb.sql({sql!r}).fetchall())"


def _compare(bench: Bench, side: str, command: list[str], environ: dict[str, str], _round: int) -> Cost:
    log = bench.folder / "logs" / f"table-diff.{side}.log"
    cost = measure(command, environ, log).whole
    if _CHANGED not in log.read_text():
        raise FailedRunError(f"{side} does not find {_CHANGED} changed rows: {log}")
    return cost
