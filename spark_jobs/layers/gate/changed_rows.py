"""What changed since the last checked version, so that a gate need not read all rows (ADR 38)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from include.contracts.lake_path import LakePath
from include.contracts.spec.table_spec import AnySpec
from include.control.gates.judged_figures import JudgedFigures, kept_figures
from include.control.ledger.resolution import table_id
from include.control.log.delta_log import commit_mark
from spark_jobs.delta_io.reads import read_changes
from spark_jobs.quality.fused.adjustments import Facts
from spark_jobs.quality.fused.change import Change

READ_ALL_AFTER = 50
"""After so many versions that were checked by their changes, all rows are read again."""


@dataclass(frozen=True)
class JudgedVersion:
    """The version that a gate checks.

    Attributes:
        path: the table.
        version: the version.
        rules: the digest of the rules and of the columns.
        rows: the number of its rows, by the log.
    """

    path: LakePath
    version: int
    rules: str
    rows: int


def rules_digest(spec: AnySpec, columns: StructType) -> str:
    """Return the digest of the table rules, and of the columns and types that they are checked on."""
    return f"{spec.suite_hash} {hashlib.sha256(columns.simpleString().encode()).hexdigest()[:16]}"


def change_since(last: JudgedFigures | None, judged: JudgedVersion, session: SparkSession) -> Change | None:
    """Return what changed since the last checked version; None if all rows have to be read.

    They have to be read if the rules or the columns are others, if something else than batches changed rows, if there
    is no change feed, and after `READ_ALL_AFTER` versions.
    """
    if last is None or last.table_id != table_id(judged.path) or last.rules != judged.rules:
        return None
    batches = last.batches_upto(judged.path, judged.version)
    if batches is None or last.adjusted >= READ_ALL_AFTER:
        return None
    if not batches:
        return Change(last, judged.rows, feed=None)
    feed = read_changes(session, judged.path, last.version, judged.version)
    return None if feed is None else Change(last, judged.rows, feed)


def next_figures(judged: JudgedVersion, change: Change | None, lasting: Facts) -> JudgedFigures | None:
    """Return the figures with which the check of the next version can begin; None if there are none."""
    if not lasting:
        return None
    return JudgedFigures(
        table_id=table_id(judged.path),
        version=judged.version,
        mark=commit_mark(judged.path, judged.version),
        rules=judged.rules,
        rows=judged.rows,
        adjusted=change.judged.adjusted + 1 if change else 0,
        figures=kept_figures(lasting),
    )
