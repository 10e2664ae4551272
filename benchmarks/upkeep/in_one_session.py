"""Many small commits with maintenance between them; then OPTIMIZE of many small files, against a sort by DuckDB.

spark-submit in_one_session.py WORK COSTS FACTS     WORK: JSON of `folder`, `commits` and `rounds`

It notes the costs under the names that `series/upkeep.py` reads. In the second part, the first round warms up.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import yaml
from pyspark.sql import DataFrame, SparkSession

from benchmarks.cost import noted
from millrace.catalog import Catalog, load_catalog
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.changes.table_properties import READER_SAFE
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import logged_files, open_table
from millrace.control.maintenance.log_files import clean_log, write_checkpoint
from millrace.control.maintenance.plan import PlannedTable, Step, planned_table
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from millrace_spark.delta_io.maintenance import optimize, optimize_conf
from millrace_spark.runtime.entrypoint import start_process
from millrace_spark.runtime.session import own_session

COMMIT, MAINTENANCE, SORT = "commit", "maintenance", "sort by DuckDB"
PACKED, ORDERED = "packed", "ordered"
_SMALL, _ORIGIN = "small_commits", "origin"
COMMITS_BETWEEN = 50
COLUMNS = ("customer", "day")
"""The columns of the Z-order; filters look for values of the first one most often."""

_ROWS_OF_COMMIT = 1000
_FILES, _ROWS = 1000, 2_000_000
_ORDERED_BYTES = 128 * 1024
"""The size of the files in order: there are as many as of 100 million rows in files of the usual size."""

_PEERS_SQL = """
    COPY (SELECT * FROM read_parquet({files}) ORDER BY {columns}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)
"""
_POINTS = 200


def main(work: Path, costs: Path, facts: Path) -> None:
    """Run both parts."""
    start_process()
    asked = json.loads(work.read_text())
    folder, rounds = Path(asked["folder"]), range(asked["rounds"] + 1)
    tables = [_SMALL, _ORIGIN, *(f"{kind}_{at}" for kind in (PACKED, ORDERED) for at in rounds)]
    lake = _Lake(folder, tables)
    found = small_commits(lake, asked["commits"], costs)
    facts.write_text(json.dumps(found))
    found |= many_files(lake, rounds, costs)
    facts.write_text(json.dumps(found))


class _Lake:
    """Tables that only this benchmark writes, without a ledger."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder
        for name in names:
            file = folder / "tables" / "bronze" / "upkeep" / f"{name}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(yaml.safe_dump(_document(name)))
        self.catalog: Catalog = load_catalog(folder / "tables")
        self.ops = OpsTables(LakehousePaths(folder / "root"))

    def spec(self, name: str) -> AnySpec:
        return self.catalog.spec(f"bronze.{name}")

    def path(self, name: str) -> Path:
        return Path(self.ops.paths.table(f"bronze.{name}"))

    def append(self, name: str, numbers: range, files: int) -> None:
        with own_session({}) as session:
            writer = _rows(session, numbers, files).write.format("delta").mode("append")
            if latest_version(self.path(name)) < 0:
                writer = writer.options(**READER_SAFE)
            writer.save(str(self.path(name)))

    def planned(self, name: str) -> PlannedTable:
        table = planned_table(self.spec(name), self.catalog, self.ops, datetime.now(UTC))
        assert table is not None, "it was written"
        return table

    def maintain(self, name: str) -> None:
        """Do what is planned for the table, but delete no data files."""
        table, path = self.planned(name), self.path(name)
        for step in [action.step for action in table.actions]:
            match step:
                case Step.BIN_PACK | Step.Z_ORDER:
                    with own_session(optimize_conf(table.health.layout.target_file_bytes)) as session:
                        optimize(session, path, COLUMNS if step is Step.Z_ORDER else ())
                case Step.CHECKPOINT:
                    write_checkpoint(path)
                case Step.CLEAN_LOG:
                    clean_log(path, table.health.log)


def small_commits(lake: _Lake, commits: int, costs: Path) -> dict[str, Any]:
    """Append small batches, with maintenance after each fifty of them."""
    for number in range(commits):
        with noted(costs, f"{COMMIT}/{number}"):
            lake.append(_SMALL, range(number * _ROWS_OF_COMMIT, (number + 1) * _ROWS_OF_COMMIT), files=1)
        if number % COMMITS_BETWEEN == COMMITS_BETWEEN - 1:
            with noted(costs, f"{MAINTENANCE}/{number}"):
                lake.maintain(_SMALL)
    health = lake.planned(_SMALL).health
    return {"log, bytes": health.log.size, "live files": health.layout.files}


def many_files(lake: _Lake, rounds: range, costs: Path) -> dict[str, Any]:
    """Bin-pack and Z-order tables of small files, and sort the rows of the same files by DuckDB, in turn."""
    lake.append(_ORIGIN, range(_ROWS), files=_FILES)
    files = open_table(lake.path(_ORIGIN)).file_uris()
    for at in rounds:
        for kind in (PACKED, ORDERED):
            shutil.copytree(lake.path(_ORIGIN), lake.path(f"{kind}_{at}"))
    sort = _PEERS_SQL.format(files=files, columns=", ".join(COLUMNS), file=lake.folder / "sorted.parquet")
    for at in rounds:
        for kind in (PACKED, ORDERED):
            with noted(costs, f"{kind}/{at}"):
                lake.maintain(f"{kind}_{at}")
        with noted(costs, f"{SORT}/{at}"):
            duckdb.sql(sort)
    last = {kind: lake.path(f"{kind}_{rounds[-1]}") for kind in (PACKED, ORDERED)}
    versions = {kind: latest_version(path) for kind, path in last.items()}
    for kind in last:
        lake.maintain(f"{kind}_{rounds[-1]}")
    again = [kind for kind, path in last.items() if latest_version(path) != versions[kind]]
    listed = logged_files(open_table(last[ORDERED]))
    return {"rewritten again": again, "files in order": listed.num_rows, "share skipped": _skipped(listed)}


def _skipped(listed: pa.Table) -> dict[str, float]:
    """Return the share of files that filters for single values leave out on average: by column, and by both."""
    by_column = {}
    for column in COLUMNS:
        least, greatest = listed[f"min.{column}"], listed[f"max.{column}"]
        first, last = pc.min(least).as_py(), pc.max(greatest).as_py()
        values = [first + (last - first) * point // _POINTS for point in range(_POINTS)]
        read = [pc.and_(pc.less_equal(least, value), pc.greater_equal(greatest, value)) for value in values]
        by_column[column] = 1 - sum(pc.sum(files).as_py() for files in read) / _POINTS / listed.num_rows
    return by_column


def _rows(session: SparkSession, numbers: range, files: int) -> DataFrame:
    """Return rows whose values are in no order."""
    ids = session.range(numbers.start, numbers.stop, numPartitions=files)
    return ids.selectExpr(
        "CAST(id AS string) AS number",
        "CAST(abs(hash(id)) % 100000 AS int) AS customer",
        "CAST(abs(hash(id, 1)) % 3650 AS int) AS day",
        "CAST(abs(hash(id, 2)) % 100000 / 100 AS double) AS amount",
        "md5(CAST(id AS string)) AS note",
    )


def _document(name: str) -> dict[str, Any]:
    types = {"number": "string", "customer": "int", "day": "int", "amount": "double", "note": "string"}
    order = {"zorder_by": list(COLUMNS), "maintenance": {"target_file_size": _ORDERED_BYTES}}
    return {
        "table": f"bronze.{name}",
        "source": {"landing": name, "format": "json"},
        "columns": {column: {"type": of_column} for column, of_column in types.items()},
        **(order if name.startswith(ORDERED) else {}),
    }


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
