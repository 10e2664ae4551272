"""``python -m benchmarks.aged_lake make FOLDER NUMBER [TABLES]``: make chains of three tables with NUMBER batches,
gate results and loaded landing files each, without Spark.

``python -m benchmarks.aged_lake batch FOLDER``: write one more batch of each, as a run does, without Spark's work.

Ledger and log are those of real runs: each batch is planned, committed, closed and checked; each commit replaces the
one data file, as in an optimized table; Delta has written a checkpoint at the end and removed all but twenty log files.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import yaml
from deltalake import DeltaTable, Schema
from deltalake.schema import Field, PrimitiveType

from millrace.catalog import load_catalog
from millrace.contracts.interval import Interval
from millrace.contracts.job.report import CheckResult, FileRows, RowCounts
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.gates.gates import GATES, gate_event
from millrace.control.gates.result import GateResult
from millrace.control.ledger.events import BATCHES, FILES, BatchEvent, FileEvent, batch_event, file_event, loaded_event
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.ledger.resolution import resolve, table_id
from millrace.control.log.batch import BatchSources, FileFact, Intent, Stream, Winner, new_token
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.planner import Planner
from millrace.paths import LakehousePaths
from millrace.settings import Settings

DOMAIN = "bench"
FIRST_DAY = datetime(1990, 1, 1, tzinfo=UTC)
_LOG_KEPT = 20
_AT_ONCE = 2000
_ROWS = RowCounts(read=1, applied=1, inserted=1)
_CHECK = CheckResult(rule="expect_column_values_to_be_between(n)", action="fail", passed=True, observed=0)
_RECORD = '{"n": 1, "at": "1990-01-01T00:00:00Z"}\n'
_SCHEMA = Schema([Field("n", PrimitiveType("long"))])
_DOCUMENTS = (
    {
        "table": "bronze.a{}",
        "source": {"landing": "a{}", "format": "json", "files": "*.json"},
        "columns": {"n": {"type": "bigint"}, "at": {"type": "timestamp"}},
    },
    {
        "table": "silver.a{}",
        "source": "bronze.a{}",
        "keys": ["n"],
        "sequence_by": ["at"],
        "columns": {"n": {"type": "bigint", "nullable": False}, "at": {"type": "timestamp"}},
    },
    {
        "table": "gold.a{}",
        "sources": {"s": {"table": "silver.a{}"}},
        "refresh_by": "n",
        "refresh_from": {"s": "n"},
        "group_by": {"n": "s.n"},
        "measures": {"rows": "count(*)"},
    },
)


def day(number: int) -> Interval:
    """Return the day of a batch."""
    start = FIRST_DAY + timedelta(days=number)
    return Interval(start=start, end=start + timedelta(days=1))


def environment(folder: Path) -> dict[str, str]:
    """Return the settings of `lakehouse` for these tables."""
    return {f"LAKEHOUSE_{name.upper()}": str(folder / name) for name in ("root", "landing", "tables")}


def describe(folder: Path, chains: int = 1) -> None:
    """Write the specs of chains of three tables."""
    for chain in range(chains):
        for document in _DOCUMENTS:
            text = yaml.safe_dump(document, sort_keys=False).replace("{}", str(chain))
            name = f"{document['table']}.yaml".replace("{}", str(chain)).replace(".a", f"/{DOMAIN}/a", 1)
            (folder / "tables" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "tables" / name).write_text(text)


def make(folder: Path, number: int, chains: int = 1, of_first: int = 0) -> None:
    """Make chains of three tables with so many batches each; those of the first chain have `of_first`, if stated."""
    describe(folder, chains)
    ops = OpsTables(LakehousePaths(folder / "root"))
    for spec in load_catalog(folder / "tables").specs.values():
        _age(folder, spec, of_first if of_first and spec.table.endswith(".a0") else number, ops)


def add_history(folder: Path, number: int) -> None:
    """Give tables that Spark has made the history of a table that was built anew: all batches are in its first version.

    So a rebuild leaves them; the verdicts are those on the table that it has replaced. Their days begin with the
    thousandth.
    """
    paths, numbers = LakehousePaths(folder / "root"), range(1000, 1000 + number)
    for spec in load_catalog(folder / "tables").specs.values():
        loaded = [
            Winner(_intent(folder, spec, table_id(paths.table(spec.table)), seq, "rebuild"), 1) for seq in numbers
        ]
        judged = [Winner(_intent(folder, spec, "an earlier table", seq), seq) for seq in numbers]
        _write_history(spec, loaded, judged, paths)


def _age(folder: Path, spec: AnySpec, number: int, ops: OpsTables) -> None:
    paths = ops.paths
    table = Path(paths.table(spec.table))
    id_ = str(DeltaTable.create(str(table), _SCHEMA).metadata().id)
    winners = [Winner(_intent(folder, spec, id_, seq), seq) for seq in range(1, number + 1)]
    for winner in winners:
        _commit(table, winner.intent)
    DeltaTable(str(table)).create_checkpoint()
    for version in range(max(number - _LOG_KEPT, 0)):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    _write_history(spec, winners[:-1], winners[:-1], paths)
    _record(folder, spec, winners[-1], ops)


def _write_history(
    spec: AnySpec, loaded: Sequence[Winner], with_gates: Sequence[Winner], paths: LakehousePaths
) -> None:
    batches, files = OpsTable(paths.ops("batches"), BATCHES), OpsTable(paths.ops("files"), FILES)
    gates = OpsTable(paths.ops("gates"), GATES)
    for piece, checked in zip(_pieces(loaded), _pieces(with_gates), strict=True):
        batches.append([event for winner in piece for event in _batch_events(winner)])
        gates.append([gate_event(_gate_result(spec, winner)) for winner in checked])
        if spec.layer == "bronze":
            files.append([event for winner in piece for event in _file_events(spec, winner)])


def batch(folder: Path) -> None:
    """Write one more batch of each table: planned, recorded, committed, closed and checked."""
    settings = Settings(root=folder / "root", landing=str(folder / "landing"), tables=folder / "tables")
    catalog = load_catalog(settings.tables)
    planner = Planner(catalog, settings)
    for spec in catalog.specs.values():
        table, ledger = planner.ops.paths.table(spec.table), planner.ops.ledger
        position = resolve(table, Stream(spec.table), ledger)
        land(folder, spec, position.next_seq)
        advice = planner.advise(spec, day(position.next_seq))
        if advice.nothing_new:
            raise SystemExit(f"{spec.table} has nothing to do: {advice.message}")
        intent = _intent(folder, spec, position.table_id, position.next_seq)
        _commit(Path(table), intent)
        _record(folder, spec, Winner(intent, latest_version(table)), planner.ops)


def _record(folder: Path, spec: AnySpec, winner: Winner, ops: OpsTables) -> None:
    """Write all events of a batch."""
    intent, ledger, gates = winner.intent, ops.ledger, ops.gates
    files = _files(spec, winner)
    land(folder, spec, intent.batch_seq)
    ledger.record_intent(intent, files)
    ledger.record_committed([winner])
    ledger.record_closed(winner, _ROWS, {file.path: FileRows(read=1, written=1) for file in files})
    if gates.result(spec.table, winner.version, spec.suite_hash) is None:
        gates.record(_gate_result(spec, winner))
    if gates.certified(spec.table) != winner.version:
        raise SystemExit(f"version {winner.version} of {spec.table} is not certified")


def _intent(folder: Path, spec: AnySpec, table_id: str, seq: int, stream: str = "main") -> Intent:
    sources = {source: (seq - 1 or None, seq) for source in spec.source_tables}
    paths = LakehousePaths(folder / "root")
    return Intent(
        table=spec.table,
        table_id=table_id,
        stream=stream,
        batch_seq=seq,
        token=new_token(),
        interval_start=day(seq).start,
        interval_end=day(seq).end,
        run_id=f"run {seq}",
        spec_hash=spec.spec_hash,
        sources=BatchSources(ranges=sources, source_ids={source: _id_of(paths, source) for source in sources}),
    )


@cache
def _id_of(paths: LakehousePaths, table: str) -> str:
    return str(DeltaTable(str(paths.table(table))).metadata().id)


def _commit(table: Path, intent: Intent) -> None:
    """Write the commit file that Spark would write."""
    version = intent.batch_seq
    stats = json.dumps({"numRecords": version})
    at = 1_700_000_000_000 + version
    file = {"size": 1000, "partitionValues": {}, "dataChange": True}
    actions: list[dict[str, object]] = [
        {
            "commitInfo": {
                "timestamp": at,
                "operation": "MERGE",
                "userMetadata": intent.user_metadata(),
                "txnId": intent.token,
            }
        },
        {"txn": {"appId": intent.app_id, "version": version, "lastUpdated": at}},
        {"add": {**file, "path": f"part-{version}.parquet", "modificationTime": at, "stats": stats}},
    ]
    if version > 1:
        actions.append({"remove": {**file, "path": f"part-{version - 1}.parquet", "deletionTimestamp": at}})
    name = table / "_delta_log" / f"{version:020d}.json"
    name.write_text("\n".join(json.dumps(action) for action in actions) + "\n")


def land(folder: Path, spec: AnySpec, seq: int) -> None:
    """Lay out the landing file of a batch, unless it exists."""
    if spec.layer == "bronze":
        file = folder / "landing" / _path(spec, seq)
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(_RECORD)
            os.utime(file, ns=(seq, seq))


def _path(spec: AnySpec, seq: int) -> str:
    return f"{spec.table.partition('.')[2]}/date={day(seq).start:%Y-%m-%d}/{seq}.json"


def _files(spec: AnySpec, winner: Winner) -> tuple[FileFact, ...]:
    seq = winner.batch_seq
    return (FileFact(_path(spec, seq), len(_RECORD), seq, f"{seq:064d}"),) if spec.layer == "bronze" else ()


def _file_events(spec: AnySpec, winner: Winner) -> Iterator[dict[str, object]]:
    for file in _files(spec, winner):
        yield file_event(FileEvent.PLANNED, winner.intent, file)
        yield loaded_event(winner, file, FileRows(read=1, written=1))


def _batch_events(winner: Winner) -> Iterator[dict[str, object]]:
    yield batch_event(BatchEvent.INTENT, winner.intent)
    yield batch_event(BatchEvent.COMMITTED, winner.intent, winner.version)
    yield {**batch_event(BatchEvent.CLOSED, winner.intent, winner.version), "rows": _ROWS.model_dump_json()}


def _gate_result(spec: AnySpec, winner: Winner) -> GateResult:
    intent = winner.intent
    return GateResult(
        table=spec.table,
        table_id=intent.table_id,
        version=winner.version,
        suite_hash=spec.suite_hash,
        passed=True,
        checks=(_CHECK,),
        batches=(f"main/{winner.batch_seq}",),
        facts={"in_table": winner.version},
    )


def _pieces(winners: Sequence[Winner]) -> Iterator[Sequence[Winner]]:
    return (winners[at : at + _AT_ONCE] for at in range(0, len(winners), _AT_ONCE))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), *map(int, sys.argv[3:]))
    else:
        batch(Path(sys.argv[2]))
