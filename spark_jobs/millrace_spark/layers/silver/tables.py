"""The Delta tables of a silver table: its own, and that of its deleted keys."""

from __future__ import annotations

from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.changes.table_properties import table_properties
from millrace.control.log.batch import Intent
from millrace.control.log.delta_log import latest_version, remaining_commits
from millrace.control.log.streams import stream_properties
from millrace.paths import LakehousePaths
from millrace_spark.delta_io.tables import TableShape, committed_txn
from millrace_spark.protocol.secondary import SecondaryTable
from millrace_spark.transforms.silver.timeline import END_AT, START_AT
from millrace_spark.transforms.stamps import STAMP_COLUMNS


def silver_shape(spec: SilverSpec) -> TableShape:
    """Return the shape of a silver table: its columns, the order of each row's event, and the batch that wrote it."""
    stored = {name: spec.columns[name].type for name in spec.stored_columns}
    history = dict.fromkeys((START_AT, END_AT), spec.start_type) if spec.keeps_history else {}
    columns = {**stored, **history, **_order_columns(spec), "_content_hash": "bigint", **STAMP_COLUMNS}
    return TableShape(
        columns=columns,
        comments={name: spec.columns[name].description for name in stored},
        partitioned_by=spec.partitioned_by,
        properties=table_properties(spec),
        first_properties=stream_properties(spec),
        comment=spec.description,
    )


def tombstones_of(spec: SilverSpec, paths: LakehousePaths, table_id: str) -> SecondaryTable:
    """Return the tombstones of a silver table: its deleted keys, each with its sequence."""
    path = paths.tombstones(spec.table, table_id)
    keys = {key: spec.columns[key].type for key in spec.keys}
    columns = {**keys, **_order_columns(spec), **STAMP_COLUMNS}
    return SecondaryTable(f"silver_tombstones.{spec.name}", path, TableShape(columns, comment="Deleted keys"))


def version_before(table: SecondaryTable, intent: Intent) -> int:
    """Return the newest version of a secondary table before the batch wrote to it: the batch may be counted again."""
    newest = latest_version(table.path)
    if committed_txn(table.path, intent.secondary_app_id(table.name)) < intent.batch_seq:
        return newest
    commits = remaining_commits(table.path, None)
    return min(
        (commit.version - 1 for commit in commits if commit.metadata.get("token") == intent.token), default=newest
    )


def _order_columns(spec: SilverSpec) -> dict[str, str]:
    return {"_sequence": spec.sequence_type, "_source_hash": "bigint"}
