"""Commits of another writer to a table of orders: delta-rs makes them while a write scans the table.

The functions run in a Python worker of the Spark server, which gets them by value: it has none of these modules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from pyspark import cloudpickle

ConflictingCommit = Callable[[str], None]

OTHER_RUN = "backfill__2013-01-01"
FIRST_VERSION = 2
"""The version at which the tested write begins, after the creation of the table and of two files."""


def create_orders(table: str) -> None:
    """Create a table of the rows of `add_orders`."""
    from deltalake import DeltaTable

    DeltaTable.create(table, _orders([]).schema)
    add_orders(table)


def add_orders(table: str) -> None:
    """Append two rows, (1, 1) and (2, 2), in a file each."""
    for n in (1, 2):
        _append(table, n, n)


def append_another_key(table: str) -> None:
    """Append a row of a key that the write does not change."""
    _append(table, 3, 3)


def append_same_key(table: str) -> None:
    """Append a row of the key that the write changes."""
    _append(table, 1, 5)


def delete_row(table: str) -> None:
    """Delete the row that the write changes."""
    from deltalake import DeltaTable

    DeltaTable(table).delete("n = 1", commit_properties=_other_metadata())


def delete_row_of_other_file(table: str) -> None:
    """Delete a row of a file that the write does not read."""
    from deltalake import DeltaTable

    DeltaTable(table).delete("n = 2", commit_properties=_other_metadata())


def join_files(table: str) -> None:
    """Join all files, as OPTIMIZE does."""
    from deltalake import DeltaTable

    DeltaTable(table).optimize.compact(commit_properties=_other_metadata())


def set_property(table: str) -> None:
    """Set a property of the table, as a changed spec does."""
    from deltalake import DeltaTable

    DeltaTable(table).alter.set_table_properties(
        {"owner": "ann"}, raise_if_not_exists=False, commit_properties=_other_metadata()
    )


def upgrade_protocol(table: str) -> None:
    """Add a table feature that a writer must support."""
    from deltalake import DeltaTable, TableFeatures

    DeltaTable(table).alter.add_feature(
        TableFeatures.AppendOnly, allow_protocol_versions_increase=True, commit_properties=_other_metadata()
    )


def take_number(app_id: str, user_metadata: str) -> ConflictingCommit:
    """Return a commit of another row as a batch of the same stream and number."""

    def commit_batch(table: str) -> None:
        from deltalake import CommitProperties, Transaction

        metadata = {"userMetadata": user_metadata}
        _append(table, 3, 3, CommitProperties(custom_metadata=metadata, app_transactions=[Transaction(app_id, 1)]))

    return commit_batch


def commit_while_reading(other_commits: Sequence[ConflictingCommit], table: str) -> Callable[[int], int]:
    """Return a function for SQL that returns its argument; the first reading meets the first commit, and so on."""

    def read_slowly(n: int) -> int:
        from deltalake import DeltaTable

        made = DeltaTable(table).version() - FIRST_VERSION
        if made < len(other_commits):
            other_commits[made](table)
        return n

    return read_slowly


def _append(table: str, n: int, amount: int, properties: object = None) -> None:
    from deltalake import write_deltalake

    write_deltalake(table, _orders([(n, amount)]), mode="append", commit_properties=properties or _other_metadata())


def _orders(rows: list[tuple[int, int]]) -> Any:
    import pyarrow as pa

    schema = pa.schema([("n", pa.int32()), ("amount", pa.int32())])
    return pa.Table.from_pylist([{"n": n, "amount": amount} for n, amount in rows], schema)


def _other_metadata() -> object:
    from deltalake import CommitProperties

    metadata = json.dumps({"millrace": {"run_id": OTHER_RUN}})
    return CommitProperties(custom_metadata={"userMetadata": metadata})


def pickle_by_value() -> None:
    """Let pickle include this module in each of its functions."""
    import tests.support.silver.conflicting_commits

    cloudpickle.register_pickle_by_value(tests.support.silver.conflicting_commits)
