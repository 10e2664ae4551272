"""The types of a table's columns at a version, from the commit files and the checkpoint of its log.

delta-rs is not used, for the reason given in `lakehouse_airflow.lineage.task_lineage`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from millrace.contracts.lake_path import LakePath
from millrace.control.changes.table_columns import types_in
from millrace.control.log.delta_log import commit_actions
from millrace.control.storage.stored_files import names_in, read_bytes

_REACH = 100
"""How many commits are read at most; a table has a checkpoint after each ten commits."""

_CHECKPOINT = ".checkpoint.parquet"


def stored_types(table: LakePath, version: int) -> dict[str, str]:
    """Return column -> type in Delta's names; empty if neither the last commits nor a checkpoint have the types.

    Raises:
        TornLogError: a commit file is damaged.
    """
    log, oldest = table / "_delta_log", max(version - _REACH, 0)
    names = [name for name in names_in(log, f"{oldest:020d}") if len(name) == 20 + len(_CHECKPOINT)]
    checkpoints = {int(name[:20]): name for name in names if name.endswith(_CHECKPOINT)}
    for at in range(version, oldest - 1, -1):
        try:
            actions = commit_actions(table, at)
        except FileNotFoundError:
            actions = []
        for action in actions:
            if "metaData" in action:
                return types_in(action["metaData"]["schemaString"])
        if at in checkpoints:
            checkpoint = pq.ParquetFile(pa.BufferReader(read_bytes(log / checkpoints[at])))
            column = checkpoint.read(columns=["metaData.schemaString"], use_threads=False)["metaData"]
            (metadata,) = column.drop_null().to_pylist()
            return types_in(metadata["schemaString"])
    return {}
