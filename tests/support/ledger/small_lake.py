"""Batches for tests of the worker: real Delta tables, ledger and gate results, written without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from millrace.contracts.interval import Interval
from millrace.contracts.job.report import CheckResult, FileRows, RowCounts
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.landing.inspection import inspect
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import resolve
from millrace.control.log.batch import BatchSources, FileFact, Stream, Winner
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import intent_of, properties_of
from tests.support.ledger.delta_tables import judge as judge_version
from tests.support.listing import list_files

ROW = FileRows(read=1, written=1)
COLUMNS = pa.schema([("order_id", pa.string()), ("amount", pa.int64())])


def commit_batch(root: Path, landing: Path, spec: BronzeSpec, interval: Interval, run_id: str) -> Winner:
    """Commit the interval's landing files as one batch of `spec`, with the protocol's own records."""
    place = LocalLanding(str(landing))
    files = tuple(inspect(file, place, spec) for file in list_files(spec, place, interval))
    return commit_sources(root, spec, interval, run_id, BatchSources(files=len(files)), files)


def commit_sources(
    root: Path,
    spec: AnySpec,
    interval: Interval,
    run_id: str,
    sources: BatchSources,
    files: tuple[FileFact, ...] = (),
) -> Winner:
    """Commit a batch of `spec` that says that it has read these sources, with the protocol's own records."""
    paths, stream = LakehousePaths(root), Stream(spec.table)
    table, ledger = paths.table(spec.table), Ledger(paths)
    DeltaTable.create(str(table), COLUMNS, mode="ignore")
    position = resolve(table, stream, ledger)
    intent = intent_of(position.table_id, position.next_seq, stream=stream, sources=sources, spec_hash=spec.spec_hash)
    of_run = {"interval_start": interval.start, "interval_end": interval.end, "run_id": run_id}
    winner = Winner(intent.model_copy(update=of_run), position.version + 1)
    ledger.record_intent(winner.intent, files)
    rows = pa.table({"order_id": [file.path for file in files], "amount": [file.size for file in files]}, COLUMNS)
    properties = properties_of((intent.app_id, intent.batch_seq), winner.intent.user_metadata())
    write_deltalake(str(table), rows, mode="append", commit_properties=properties)
    ledger.record_committed([winner])
    ledger.record_closed(winner, RowCounts(read=len(files), applied=len(files)), {file.path: ROW for file in files})
    return winner


def judge(root: Path, spec: AnySpec, winner: Winner, *, passed: bool = True) -> GateResult:
    """Record the gate's result for the version of `winner`."""
    check = CheckResult(
        rule="expect_table_row_count_to_be_between()",
        action="fail",
        passed=passed,
        reason="no empty days",
        expected={"min_value": 1},
        observed=0,
    )
    if passed:
        return judge_version(root, spec, winner.version, checks=(check,))
    stay = f"readers stay on version {Gates(LakehousePaths(root)).certified(spec.table)}"
    refused = f"{spec.table} version {winner.version} refused: {check.rule} observed 0; {stay}"
    return judge_version(root, spec, winner.version, passed=False, checks=(check,), refused=refused)
