"""What changed since the last checked version, so that a gate need not read all rows (ADR 38)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.gates.judged_figures import ExactVersion, JudgedFigures, kept_figures
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.delta_log import Commit, commit_mark
from millrace.control.log.file_bounds import file_bounds
from millrace.settings import GateReads
from millrace_spark.delta_io.reads import read_changes
from millrace_spark.quality.fused.adjustments import Facts
from millrace_spark.quality.fused.change import VersionChange

_FEW_ROWS = 500_000
"""All rows are read of a version with fewer rows: that costs less than the two queries of a change, whose cost is
mostly that of planning."""

_READS_OF_CHANGE = 4
"""A changed row costs as much as so many rows of the table: both of its images are read, for several queries."""


@dataclass(frozen=True)
class JudgedVersion:
    """The version that a gate checks.

    Attributes:
        path: the table.
        version: the version.
        rules: the digest of the rules and of the columns.
        rows: the number of its rows, by the log.
        others: another table whose values the rules require -> its path, and the version that is read.
    """

    path: LakePath
    version: int
    rules: str
    rows: int
    others: Mapping[str, tuple[LakePath, int]] = field(default_factory=dict)


def rules_digest(spec: AnySpec, columns: StructType) -> str:
    """Return the digest of the table rules, and of the columns and types that they are checked on."""
    return f"{spec.suite_hash} {hashlib.sha256(columns.simpleString().encode()).hexdigest()[:16]}"


def change_since(
    last: JudgedFigures | None, judged: JudgedVersion, session: SparkSession, reads: GateReads, proof_after: int
) -> VersionChange | None:
    """Return what changed since the last checked version; None if all rows have to be read.

    They have to be read if the rules or the columns are others, if something else than batches changed rows, and if
    there is no change feed. They may also be read because that costs less: if there are few rows, or many changed, here
    and in the tables whose values the rules require.

    Args:
        last: the figures of the last checked version.
        judged: the version that is checked.
        session: the session of the gate.
        reads: the setting `gate_reads`.
        proof_after: after how many versions that were checked by what changed the change is a proof, for which all rows
            are read, too.
    """
    if reads == "all_rows" or last is None or last.table_id != table_id(judged.path) or last.rules != judged.rules:
        return None
    batches = last.batches_upto(judged.path, judged.version)
    if batches is None:
        return None
    of_others = {other: _batches(last, other, *at) for other, at in judged.others.items()}
    known = {other: of_other for other, of_other in of_others.items() if of_other is not None}
    is_proof = last.adjusted >= proof_after
    every = [*batches, *chain.from_iterable(known.values())]
    all_rows = judged.rows + sum(table_rows(*judged.others[other]) for other in known)
    changed = sum(commit.changed_rows for commit in every)
    is_cheaper = bool(every) and all_rows < _FEW_ROWS + _READS_OF_CHANGE * changed
    if reads == "cheaper" and is_cheaper and not is_proof:
        return None
    feed = read_changes(session, judged.path, last.version, judged.version) if batches else None
    if batches and feed is None:
        return None
    feeds: dict[str, DataFrame | None] = {other: None for other, of_other in known.items() if not of_other}
    for other in known.keys() - feeds.keys():
        path, version = judged.others[other]
        their_feed = read_changes(session, path, last.others[other].version, version)
        if their_feed is not None:
            feeds[other] = their_feed
    return VersionChange(last, judged.rows, feed, partial(file_bounds, judged.path, judged.version), is_proof, feeds)


def _batches(last: JudgedFigures, other: str, path: LakePath, version: int) -> list[Commit] | None:
    """Return the batches that changed another table since the last check; None if they are unknown."""
    before = last.others.get(other)
    return before.batches_upto(path, version) if before and before.table_id == table_id(path) else None


def next_figures(judged: JudgedVersion, change: VersionChange | None, lasting: Facts) -> JudgedFigures | None:
    """Return the figures with which the check of the next version can begin; None if there are none."""
    if not lasting:
        return None
    return JudgedFigures(
        table_id=table_id(judged.path),
        version=judged.version,
        mark=commit_mark(judged.path, judged.version),
        rules=judged.rules,
        rows=judged.rows,
        adjusted=change.judged.adjusted + 1 if change and not change.is_proof else 0,
        figures=kept_figures(lasting),
        others={
            other: ExactVersion(table_id=table_id(path), version=version, mark=commit_mark(path, version))
            for other, (path, version) in judged.others.items()
        },
    )
