"""Versions of tables with rows of a test's choice, and the results of their gates, written without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.ledger.resolution import table_id
from millrace.control.log.stored_tables import options_of
from millrace.paths import LakehousePaths

ORDERS = "silver.orders"
HASH = "rules"


def write_version(
    paths: LakehousePaths,
    rows: pa.Table,
    *,
    table: str = ORDERS,
    passed: bool | None = True,
    partition_by: Sequence[str] = (),
) -> int:
    """Replace the rows of a table by a new version, with a result of its gate unless `passed` is None."""
    path = paths.table(table)
    options = options_of(path)
    write_deltalake(str(path), rows, mode="overwrite", partition_by=list(partition_by) or None, storage_options=options)
    if passed is not None:
        certify(paths, table, passed=passed)
    return DeltaTable(str(path), storage_options=options).version()


def certify(paths: LakehousePaths, table: str, *, passed: bool = True) -> int:
    """Record a result of the gate on the newest version of a table, and return the version."""
    path = paths.table(table)
    delta = DeltaTable(str(path), storage_options=options_of(path))
    refused = "" if passed else f"{table} version {delta.version()} refused: too many rows"
    version, of_table = delta.version(), table_id(path)
    result = GateResult(
        table=table, table_id=of_table, version=version, suite_hash=HASH, passed=passed, refused=refused
    )
    Gates(paths).record(result)
    return version


def orders(*names: str) -> pa.Table:
    """Rows with a name and a number from 0."""
    return pa.table({"name": pa.array(names, pa.string()), "n": pa.array(range(len(names)), pa.int64())})


def now_of(paths: LakehousePaths, table: str = ORDERS) -> datetime:
    """The time of the newest result of the table's gate."""
    return next(Gates(paths).newest_results(table)).at
