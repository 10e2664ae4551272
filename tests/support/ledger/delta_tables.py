"""Small real Delta tables with batches for tests of the control plane, written by delta-rs in milliseconds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from millrace.contracts.interval import Interval
from millrace.contracts.job.report import RowCounts
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.changes.table_properties import table_properties
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import resolve, table_id
from millrace.control.log.batch import BatchSources, FileFact, Intent, Stream, Winner, new_token
from millrace.control.log.delta_log import latest_version
from millrace.control.log.streams import stream_properties
from millrace.paths import LakehousePaths

ROWS = pa.schema([("n", pa.int64())])
FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)
FLIGHTS = Stream("silver.flights")


def day(number: int = 1) -> Interval:
    """Return day `number` of January 2013, from 1 on."""
    start = FIRST_DAY + timedelta(days=number - 1)
    return Interval(start=start, end=start + timedelta(days=1))


def create_table(path: Path, **properties: str) -> str:
    """Create an empty table with these Delta properties; return its id."""
    table = DeltaTable.create(
        str(path), ROWS, configuration={f"delta.{key}": value for key, value in properties.items()}
    )
    return str(table.metadata().id)


def create_table_of(spec: AnySpec, path: Path) -> str:
    """Create an empty table with properties and description of a spec, and Spark's protocol; return its id."""
    table = DeltaTable.create(
        str(path), ROWS, description=spec.description or None, configuration=table_properties(spec),
        raise_if_key_not_exists=False,
    )  # fmt: skip
    commit = commit_file(path, 0)
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    [protocol] = [action["protocol"] for action in actions if "protocol" in action]
    protocol |= {"minWriterVersion": 7, "writerFeatures": ["changeDataFeed", "invariants", "appendOnly"]}
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    return str(table.metadata().id)


def create_table_at(path: Path, at: datetime) -> None:
    """Create an empty table that says that it was created at another time."""
    create_table(path)
    commit = commit_file(path, 0)
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    [metadata] = [action["metaData"] for action in actions if "metaData" in action]
    metadata["createdTime"] = int(at.timestamp() * 1000)
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def properties_of(txn: tuple[str, int] | None = None, user_metadata: str | None = None) -> CommitProperties:
    """Return the properties of a commit with a batch number and a text of ours."""
    return CommitProperties(
        custom_metadata={"userMetadata": user_metadata} if user_metadata is not None else None,
        app_transactions=[Transaction(*txn)] if txn else None,
    )


def append(path: Path, rows: int = 1, *, txn: tuple[str, int] | None = None, user_metadata: str | None = None) -> int:
    """Append `rows` rows; return the new version."""
    numbers = pa.Table.from_arrays([pa.array(range(rows), pa.int64())], schema=ROWS)
    write_deltalake(str(path), numbers, mode="append", commit_properties=properties_of(txn, user_metadata))
    return latest_version(path)


def delete_all(path: Path) -> int:
    """Delete all rows of a table that has rows; return the new version."""
    DeltaTable(str(path)).delete()
    return latest_version(path)


def optimize(path: Path, user_metadata: str | None = None) -> int:
    """Join the small files, which changes no row; return the new version."""
    metrics = DeltaTable(str(path)).optimize.compact(commit_properties=properties_of(user_metadata=user_metadata))
    assert metrics["numFilesRemoved"] > 1, "there were no small files"
    return latest_version(path)


def set_property(path: Path) -> int:
    """Set a property of the table, which changes no row; return the new version."""
    DeltaTable(str(path)).alter.set_table_properties({"owner": "ann"}, raise_if_not_exists=False)
    return latest_version(path)


def clean_log(path: Path, below: int) -> None:
    """Write a checkpoint, and remove the commit files below a version, as Delta does with old ones."""
    DeltaTable(str(path)).create_checkpoint()
    for version in range(below):
        commit_file(path, version).unlink(missing_ok=True)


def commit_file(path: Path, version: int) -> Path:
    """Return the commit file of `version`."""
    return path / "_delta_log" / f"{version:020d}.json"


def intent_of(
    table_id: str,
    batch_seq: int = 1,
    *,
    stream: Stream = FLIGHTS,
    token: str | None = None,
    sources: BatchSources | None = None,
    spec_hash: str = "5bec",
) -> Intent:
    """Return the intent of an attempt for the day of its number."""
    interval = day(batch_seq)
    return Intent(
        table=stream.table,
        table_id=table_id,
        stream=stream.name,
        batch_seq=batch_seq,
        token=token or new_token(),
        interval_start=interval.start,
        interval_end=interval.end,
        run_id=f"run-{batch_seq}",
        spec_hash=spec_hash,
        sources=sources or BatchSources(),
    )


def commit(path: Path, intent: Intent, rows: int = 1) -> Winner:
    """Commit the intent as Spark does: rows, txn and token in one version."""
    version = append(path, rows, txn=(intent.app_id, intent.batch_seq), user_metadata=intent.user_metadata())
    return Winner(intent, version)


def file_contents(root: Path) -> dict[str, bytes]:
    """Return every file below `root` with its bytes, to check that nothing was written."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def sources_reading(root: Path, **ranges: tuple[int | None, int]) -> BatchSources:
    """Return the sources of a batch that read existing tables; two underscores join layer and name."""
    spans = {table.replace("__", "."): span for table, span in ranges.items()}
    ids = {table: table_id(LakehousePaths(root).table(table)) for table in spans}
    return BatchSources(ranges=spans, source_ids=ids)


def load_batch(
    root: Path,
    spec: AnySpec,
    *,
    rows: int = 1,
    sources: BatchSources | None = None,
    files: tuple[FileFact, ...] = (),
    closed: bool = True,
    stream: Stream | None = None,
) -> Winner:
    """Make the next batch of a stream of the spec's table with all its records; create the table if necessary."""
    paths, stream = LakehousePaths(root), stream or Stream(spec.table)
    path, ledger = paths.table(spec.table), Ledger(paths)
    if latest_version(path) < 0:
        create_table_of(spec, path)
        if properties := stream_properties(spec):
            DeltaTable(str(path)).alter.set_table_properties(properties, raise_if_not_exists=False)
    position = resolve(path, stream, ledger)
    intent = intent_of(position.table_id, position.next_seq, stream=stream, sources=sources, spec_hash=spec.spec_hash)
    ledger.record_intent(intent, files)
    winner = commit(path, intent, rows)
    ledger.record_committed([winner])
    if closed:
        ledger.record_closed(winner, RowCounts(read=rows, applied=rows, inserted=rows))
    return winner


def judge(root: Path, spec: AnySpec, version: int, *, passed: bool = True, **more: Any) -> GateResult:
    """Record the gate's result for a version, with more of its fields."""
    paths = LakehousePaths(root)
    fields = {"table": spec.table, "table_id": str(DeltaTable(str(paths.table(spec.table))).metadata().id), **more}
    result = GateResult(version=version, suite_hash=spec.suite_hash, passed=passed, **fields)
    Gates(paths).record(result)
    return result
