"""Tables that a test only reads: batches by the commit protocol itself, whose commits delta-rs makes in milliseconds.

Ledger, state, certificate and report are those of a job, since the same code writes them. The rows are the test's own:
nothing is parsed or judged by row rules, deletes leave no tombstone, and a row of silver has no hashes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from millrace.contracts.job.report import FileRows, JobReport, RowCounts
from millrace.contracts.spec.nested_type import is_nested, nested_type
from millrace.contracts.spec.table_spec import BronzeSpec, SilverSpec
from millrace.control.changes.table_properties import READER_SAFE
from millrace.control.landing.inspection import inspect
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.log.batch import BatchSources, FileFact, Intent, Stream, StreamPosition, Winner, files_digest
from millrace.control.log.stored_tables import is_table
from millrace.control.planning.source_ranges import pin_sources
from millrace_spark.delta_io.tables import TableShape
from millrace_spark.layers.bronze.bronze import bronze_shape
from millrace_spark.layers.own_table import batch_request
from millrace_spark.layers.silver.tables import silver_shape
from millrace_spark.layers.writing import check_and_report
from millrace_spark.protocol.batches import BatchPlan, BatchWriter, Closing
from millrace_spark.runtime.context import JobContext
from tests.support.lakehouse import Lakehouse

Row = Mapping[str, Any]

ARROW_TYPES = {
    "string": pa.string(), "boolean": pa.bool_(), "int": pa.int32(), "bigint": pa.int64(), "smallint": pa.int16(),
    "tinyint": pa.int8(), "float": pa.float32(), "double": pa.float64(), "date": pa.date32(), "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}  # fmt: skip
READ = {
    "date": date.fromisoformat,
    "timestamp": lambda text: datetime.fromisoformat(text).astimezone(UTC),
    "decimal": Decimal,
}
"""Type -> what reads a value that a test writes as text."""


def given(lakehouse: Lakehouse, table: str, rows: Sequence[Row], number: int = 1, name: str = "") -> JobReport:
    """Make the next batch of a bronze or silver table, of these rows of day `number`, and certify it.

    A row of silver takes the place of the row with its key unless its sequence is lower; with `op` "delete", or `gone`,
    it removes that row. Rows of bronze come from a landing file, which gets a name unless it has one.
    """
    context = JobContext(lakehouse.args(table, number))
    spec = context.spec
    work: GivenBronze | GivenSilver
    if isinstance(spec, BronzeSpec):
        name = name or f"given-{len(lakehouse.reports)}.json"
        path = lakehouse.deliver(number, name, rows, feed=spec.landing_source.landing)
        landing = LocalLanding(str(context.args.landing))
        fact = landing.file_at(str(path.relative_to(str(context.args.landing))))
        assert fact
        work = GivenBronze(context, rows, inspect(fact, landing, spec))
    else:
        assert isinstance(spec, SilverSpec)
        assert not spec.keeps_history
        work = GivenSilver(context, rows)
    _ensure_table(context, work.shape)
    request = batch_request(context, Stream(table))
    context.ops.specs.record(spec, str(DeltaTable(str(request.path)).metadata().id))
    writer = BatchWriter(request, work, context.ops.ledger, lambda _: nullcontext(None))  # type: ignore[arg-type]
    report = check_and_report(context, [writer.run(context.leases)])
    lakehouse.reports.append(report)
    assert report.exit_code == 0, report.message
    return report


@dataclass
class GivenBronze:
    """A `BatchWork` that appends rows as if they came from one landing file."""

    context: JobContext
    rows: Sequence[Row]
    file: FileFact

    @property
    def shape(self) -> TableShape:
        spec = self.context.spec
        assert isinstance(spec, BronzeSpec)
        return bronze_shape(spec)

    def plan(self, _: StreamPosition) -> BatchPlan:
        files = (self.file,)
        return BatchPlan(BatchSources(files=1, files_digest=files_digest(files)), files)

    def write(self, _: object, intent: Intent, __: BatchPlan) -> None:
        origin = {"_source_file": self.file.path, "_interval_start": intent.interval_start}
        stamped = [{**row, **origin, "_ingested_at": self.context.now(), **_stamp(intent)} for row in self.rows]
        path = str(self.context.paths.table(intent.table))
        write_deltalake(path, _arrow(self.shape, stamped), mode="append", commit_properties=_properties(intent))
        _write_metrics(path, RowCounts(inserted=len(stamped)))

    def close(self, _: Winner) -> Closing:
        count = len(self.rows)
        rows = RowCounts(read=count, applied=count, inserted=count)
        return Closing(rows, {self.file.path: FileRows(read=count, written=count)})


@dataclass
class GivenSilver:
    """A `BatchWork` that inserts, updates and deletes rows by key."""

    context: JobContext
    rows: Sequence[Row]
    counts: RowCounts = field(default_factory=RowCounts)

    @property
    def spec(self) -> SilverSpec:
        assert isinstance(self.context.spec, SilverSpec)
        return self.context.spec

    @property
    def shape(self) -> TableShape:
        return silver_shape(self.spec)

    def plan(self, position: StreamPosition) -> BatchPlan:
        paths, gates = self.context.paths, self.context.ops.gates
        has_sources = all(is_table(paths.table(source)) for source in self.spec.source_tables)
        return BatchPlan(pin_sources(self.spec, paths, gates, position) if has_sources else BatchSources())

    def write(self, _: object, intent: Intent, __: BatchPlan) -> None:
        delta = DeltaTable(str(self.context.paths.table(intent.table)))
        keys = self.spec.keys
        stored = {_key(row, keys): row for row in delta.to_pyarrow_table(columns=[*keys, "_sequence"]).to_pylist()}
        latest: dict[tuple[Any, ...], dict[str, Any]] = dict(stored)
        # Both sides of the comparison are as Arrow has them.
        for row, given_row in zip(self._stamped(intent), self.rows, strict=True):
            before = latest.get(_key(row, keys))
            if before is None or _order(before) <= _order(row):
                is_delete = given_row.get("op") == "delete" or bool(given_row.get("gone"))
                latest[_key(row, keys)] = {**row, "_delete": is_delete}
        changes = [
            row for key, row in latest.items() if "_delete" in row and not (row["_delete"] and key not in stored)
        ]
        deleted = sum(row["_delete"] for row in changes)
        updated = sum(_key(row, keys) in stored for row in changes) - deleted
        self.counts = RowCounts(
            read=len(self.rows), applied=len(changes), superseded=len(self.rows) - len(changes),
            inserted=len(changes) - updated - deleted, updated=updated, deleted=deleted,
        )  # fmt: skip
        rows = pa.Table.from_pylist(changes, schema=_schema(self.shape).append(pa.field("_delete", pa.bool_())))
        if self.counts.inserted == len(changes):
            write_deltalake(delta, rows.drop_columns("_delete"), mode="append", commit_properties=_properties(intent))
        else:
            self._merge(delta, rows, intent)
        _write_metrics(delta.table_uri, self.counts)

    def _merge(self, delta: DeltaTable, rows: pa.Table, intent: Intent) -> None:
        by_key = " AND ".join(f"t.{key} = s.{key}" for key in self.spec.keys)
        columns = {name: f"s.{name}" for name in self.shape.columns}
        (
            delta.merge(rows, by_key, source_alias="s", target_alias="t", commit_properties=_properties(intent))
            .when_matched_delete("s._delete")
            .when_matched_update(columns)
            .when_not_matched_insert(columns)
            .execute()
        )

    def close(self, _: Winner) -> Closing:
        return Closing(self.counts)

    def _stamped(self, intent: Intent) -> list[dict[str, Any]]:
        sequences = self.spec.sequence_fields
        rows = [
            {**row, "_sequence": {name: row.get(name) for name in sequences}, **_stamp(intent)} for row in self.rows
        ]
        return _arrow(self.shape, rows).to_pylist()


def _ensure_table(context: JobContext, shape: TableShape) -> None:
    path = context.paths.table(context.spec.table)
    if not is_table(path):
        properties = {**READER_SAFE, **shape.properties, **shape.first_properties}
        DeltaTable.create(
            str(path), _schema(shape), partition_by=list(shape.partitioned_by), configuration=properties,
            description=shape.comment or None,
        )  # fmt: skip


def _stamp(intent: Intent) -> dict[str, Any]:
    return {"_stream": intent.stream, "_batch_seq": intent.batch_seq, "_batch_token": intent.token}


def _properties(intent: Intent) -> CommitProperties:
    return CommitProperties(
        custom_metadata={"userMetadata": intent.user_metadata()},
        app_transactions=[Transaction(intent.app_id, intent.batch_seq)],
    )


def _write_metrics(table: str, counts: RowCounts) -> None:
    """Write into the newest commit the figures that Spark writes, and from which plans follow."""
    [*_, commit] = sorted(Path(table.removeprefix("file://"), "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    changed = {"Inserted": counts.inserted, "Updated": counts.updated, "Deleted": counts.deleted}
    metrics = {f"numTargetRows{kind}": str(rows) for kind, rows in changed.items()}
    for action in actions:
        if (info := action.get("commitInfo")) and info["operation"] == "WRITE":
            info["operationMetrics"] = {"numOutputRows": str(counts.inserted)}
        elif info:
            info["operationMetrics"] = metrics
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def _key(row: Row, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[key] for key in keys)


def _order(row: Row) -> list[tuple[bool, Any]]:
    return [(value is not None, value) for value in row["_sequence"].values()]


def _arrow(shape: TableShape, rows: Sequence[Row]) -> pa.Table:
    values = [{name: _value(row.get(name), kind) for name, kind in shape.columns.items()} for row in rows]
    return pa.Table.from_pylist(values, schema=_schema(shape))


def _schema(shape: TableShape) -> pa.Schema:
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in shape.columns.items()])


def arrow_type(kind: str) -> pa.DataType:
    """Return a type of Spark SQL as one of Arrow."""
    if is_nested(kind):
        nested = nested_type(kind)
        parts = {name: arrow_type(part) for name, part in nested.parts.items()}
        match nested.kind:
            case "struct":
                return pa.struct(list(parts.items()))
            case "array":
                return pa.list_(parts["element"])
            case _:
                return pa.map_(pa.string(), parts["value"])
    if decimal := re.fullmatch(r"decimal\((\d+), ?(\d+)\)", kind):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return ARROW_TYPES[kind]


def _value(value: Any, kind: str) -> Any:
    """Return a value of a test as one of a type: `"2013-01-01"` as a date."""
    if isinstance(value, dict) and is_nested(kind):
        parts = nested_type(kind).parts
        return {name: _value(part, parts.get(name, parts.get("value", ""))) for name, part in value.items()}
    if isinstance(value, list):
        return [_value(part, nested_type(kind).parts["element"]) for part in value]
    read = READ.get(kind.partition("(")[0])
    return read(value) if read and isinstance(value, str) else value
