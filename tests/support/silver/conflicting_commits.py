"""Commits of other writers to a table of orders while a write reads it: delta-rs makes them within the write's scan.

The functions run in a Python worker of the Spark server, which gets them by value and has none of these modules.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from pyspark import cloudpickle

ConflictingCommit = Callable[[str], None]

OTHER_RUN = "backfill__2013-01-01"
MADE = 2
"""The version of the table that a write under test begins at: it was made, and two files were written."""


def appends_another(table: str) -> None:
    """A row of a key that the write does not touch."""
    _append(table, 3, 3)


def appends_the_same(table: str) -> None:
    """A row of the key that the write touches."""
    _append(table, 1, 5)


def deletes(table: str) -> None:
    """The row that the write touches."""
    from deltalake import DeltaTable

    DeltaTable(table).delete("n = 1", commit_properties=_other_metadata())


def deletes_another(table: str) -> None:
    """A row of a file that the write does not need."""
    from deltalake import DeltaTable

    DeltaTable(table).delete("n = 2", commit_properties=_other_metadata())


def puts_files_together(table: str) -> None:
    """All files in one, as OPTIMIZE does."""
    from deltalake import DeltaTable

    DeltaTable(table).optimize.compact(commit_properties=_other_metadata())


def sets_a_property(table: str) -> None:
    """A property of the table, as a changed spec does."""
    from deltalake import DeltaTable

    DeltaTable(table).alter.set_table_properties(
        {"owner": "ann"}, raise_if_not_exists=False, commit_properties=_other_metadata()
    )


def raises_the_protocol(table: str) -> None:
    """The features that a writer must know."""
    from deltalake import DeltaTable, TableFeatures

    DeltaTable(table).alter.add_feature(
        TableFeatures.AppendOnly, allow_protocol_versions_increase=True, commit_properties=_other_metadata()
    )


def takes_the_number(app_id: str, user_metadata: str) -> ConflictingCommit:
    """A batch of the same stream and number, of another row."""

    def takes(table: str) -> None:
        from deltalake import CommitProperties, Transaction

        said = {"userMetadata": user_metadata}
        _append(table, 3, 3, CommitProperties(custom_metadata=said, app_transactions=[Transaction(app_id, 1)]))

    return takes


def once(other_commit: ConflictingCommit, table: str) -> Callable[[int], int]:
    """A function of SQL that gives back what it is given, and lets the other_commit commit before the first time."""

    def read_slowly(n: int) -> int:
        from deltalake import DeltaTable

        if DeltaTable(table).version() == MADE:
            other_commit(table)
        return n

    return read_slowly


def _append(table: str, n: int, amount: int, said: object = None) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    row = pa.table({"n": pa.array([n], pa.int32()), "amount": pa.array([amount], pa.int32())})
    write_deltalake(table, row, mode="append", commit_properties=said or _other_metadata())


def _other_metadata() -> object:
    from deltalake import CommitProperties

    told = json.dumps({"millrace": {"run_id": OTHER_RUN}})
    return CommitProperties(custom_metadata={"userMetadata": told})


def ship_by_value() -> None:
    """Have this module pickled with its functions, wherever they go."""
    import tests.support.silver.conflicting_commits

    cloudpickle.register_pickle_by_value(tests.support.silver.conflicting_commits)
