"""Apply rows with actions to a table in one commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.lake_path import LakePath
from millrace_spark.delta_io.tables import sql_path
from millrace_spark.transforms.silver.changes import ABSENT, DELETE, INSERT, UPDATE, bounds_sql


def merge_changes(
    session: SparkSession,
    path: LakePath,
    changes: DataFrame,
    keys: Mapping[str, str],
    bounds: Mapping[str, str | None],
    actions: Collection[str],
    partitions: str = "",
) -> None:
    """MERGE rows by their `_action`; Delta reads only target files within the key bounds.

    Args:
        session: the batch's own session.
        path: the target.
        changes: the target's columns and `_action`: insert, update, delete or absent; one row per key.
        keys: key column -> type.
        bounds: literal key bounds of the changed rows, from `key_bounds`.
        actions: the actions among the changes, at least one.
        partitions: a condition in SQL on the target's partitions, with the alias `t`; empty for all of them.
    """
    changes.createOrReplaceTempView("changes")
    columns = [name for name in changes.columns if name != "_action"]
    session.sql(merge_statement(path, columns, keys, bounds, actions, partitions)).collect()


def merge_statement(
    path: LakePath,
    columns: Sequence[str],
    keys: Mapping[str, str],
    bounds: Mapping[str, str | None],
    actions: Collection[str],
    partitions: str = "",
) -> str:
    """Return the MERGE of the view `changes` into the table at `path`, with the clauses that the actions need.

    Without an insert clause Delta can broadcast few changes to the target's rows, instead of sorting all rows of the
    files that it rewrites.
    """
    same_key = [f"t.`{key}` = s.`{key}`" for key in keys]
    condition = " AND ".join([*same_key, *([partitions] if partitions else []), *bounds_sql(keys, bounds, "t.")])
    assignments = ", ".join(f"t.`{name}` = s.`{name}`" for name in columns)
    names, values = (", ".join(f"{prefix}`{name}`" for name in columns) for prefix in ("", "s."))
    clauses = {
        (DELETE, ABSENT): f"WHEN MATCHED AND s._action IN ('{DELETE}', '{ABSENT}') THEN DELETE",
        (UPDATE,): f"WHEN MATCHED AND s._action = '{UPDATE}' THEN UPDATE SET {assignments}",
        (INSERT,): f"WHEN NOT MATCHED AND s._action = '{INSERT}' THEN INSERT ({names}) VALUES ({values})",
    }
    needed = [clause for merged, clause in clauses.items() if not set(merged).isdisjoint(actions)]
    return f"MERGE INTO {sql_path(path)} AS t USING changes AS s ON {condition} {' '.join(needed)}"


def commit_no_change(session: SparkSession, path: LakePath) -> None:
    """Make one commit that changes no row and writes no file.

    An append of no rows, or a MERGE with an insert clause, would leave a file without rows.
    """
    no_rows = "(SELECT 1 AS nothing WHERE false)"
    session.sql(f"MERGE INTO {sql_path(path)} AS t USING {no_rows} AS s ON false WHEN MATCHED THEN DELETE").collect()


def delete_matches(session: SparkSession, path: LakePath, values: Mapping[str, tuple[str, Sequence[object]]]) -> None:
    """Delete the rows in which an expression has one of its values, in one commit, also if there are none.

    The values are rows of the MERGE, since Delta's log would have those of a condition.

    Args:
        session: the session of the commit.
        path: the table.
        values: expression over the target `t` -> (the type of its values, the values).
    """
    keyed = {text: pair for text, pair in values.items() if pair[1]}
    if not keyed:
        commit_no_change(session, path)
        return
    rows = [
        tuple(value if at == own else None for at in range(len(keyed)))
        for own, (_, of_one) in enumerate(keyed.values())
        for value in of_one
    ]
    kinds = ", ".join(f"`key_{at}` {kind}" for at, (kind, _) in enumerate(keyed.values()))
    session.createDataFrame(rows, kinds).createOrReplaceTempView("keys_of_deletes")
    condition = " OR ".join(f"{text} = s.`key_{at}`" for at, text in enumerate(keyed))
    session.sql(
        f"MERGE INTO {sql_path(path)} AS t USING keys_of_deletes AS s ON {condition} WHEN MATCHED THEN DELETE"
    ).collect()


def merge_tombstones(
    session: SparkSession, path: LakePath, changes: DataFrame, keys: Sequence[str], *, forgets: bool
) -> None:
    """Write the tombstones of deleted keys; an existing one keeps its (`_sequence`, `_source_hash`) if it is greater.

    Args:
        session: the batch's own session.
        path: the tombstones.
        changes: one row per key, with the columns of the tombstones, and `_replaces`: true if the row replaces any
            earlier tombstone of its key. A null `_sequence` removes the tombstone.
        keys: the key columns.
        forgets: whether some of the changes may remove a tombstone.
    """
    changes.createOrReplaceTempView("tombstones")
    # A MERGE with unmatched rows of which it could insert some, and inserts none, leaves a file without rows behind.
    can_insert = not forgets or not changes.where("_sequence IS NOT NULL").isEmpty()
    inserts = " WHEN NOT MATCHED AND s._sequence IS NOT NULL THEN INSERT *" if can_insert else ""
    same_key = " AND ".join(f"t.`{key}` <=> s.`{key}`" for key in keys)
    newer = "struct(s._sequence, s._source_hash) > struct(t._sequence, t._source_hash)"
    session.sql(
        f"MERGE INTO {sql_path(path)} AS t USING tombstones AS s ON {same_key} "
        f"WHEN MATCHED AND s._sequence IS NULL THEN DELETE "
        f"WHEN MATCHED AND (s._replaces OR {newer}) THEN UPDATE SET *{inserts}"
    ).collect()
