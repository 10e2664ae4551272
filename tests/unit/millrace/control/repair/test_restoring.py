"""Restores after refusals on small Delta tables: what readers and the next batch see, and what prevents a restore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import RowStatus
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.gates.verdicts import restoring_version
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import resolve
from millrace.control.log.batch import BatchSources, Stream, Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.control.quarantine.events import Decision, ReceivedRow
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.control.repair.following import require_followable
from millrace.control.repair.restoring import Restore, restore_obstacle, undo_refused
from millrace.errors import BadInputError, RestoreError
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, silver_spec
from tests.support.ledger.delta_tables import (
    append,
    clean_log,
    commit_file,
    create_table,
    day,
    judge,
    load_batch,
    optimize,
)
from tests.support.ledger.quarantine_rows import quarantine, refused

SPEC, BRONZE = silver_spec(on_refusal="restore"), bronze_spec()
SOURCE, TABLE = "bronze.orders", SPEC.table


def restore(root: Path) -> Winner:
    """Undo the newest refused version."""
    return undo_refused(refusal(root), SPEC, day(), "run of the restore", OpsTables(LakehousePaths(root)))


def refusal(root: Path) -> GateResult:
    return [recorded.result for recorded in Gates(LakehousePaths(root)).results(TABLE) if not recorded.result.passed][
        -1
    ]


STEPS = (
    "pass, refuse, undo, refuse, refuse, undo, pass, optimize, refuse, undo, refuse, pass, refuse, optimize, "
    "undo too late, pass"
)


def test_refusals_and_restores_in_any_order_lose_and_double_no_row(tmp_path: Path) -> None:
    """Each batch reads a source to its end; a row of the table stands for a version of the source."""
    paths = LakehousePaths(tmp_path)
    path = paths.table(TABLE)
    arrived = read = seen = 0

    def position() -> int | None:
        if latest_version(path) < 0:
            return None
        last = resolve(path, Stream(TABLE), Ledger(paths)).last
        return last.intent.sources.consumed_version(SOURCE, "source") if last else None

    for number, step in enumerate(STEPS.split(", ")):
        newest = latest_version(path)
        match step:
            case "pass" | "refuse":
                arrived, after = arrived + 1 + number % 3, position()
                sources = BatchSources(ranges={SOURCE: (after, arrived)}, source_ids={SOURCE: "source"})
                winner = load_batch(tmp_path, SPEC, rows=arrived - (after or 0), sources=sources)
                judge(tmp_path, SPEC, winner.version, passed=step == "pass")
                read = arrived
                seen = read if step == "pass" else seen
            case "optimize":
                optimize(path)
            case "undo":
                assert restore(tmp_path).version == restoring_version(path, newest) == newest + 1
                read = seen
            case "undo too late":
                with pytest.raises(RestoreError, match="came after it"):
                    restore(tmp_path)
                assert latest_version(path) == newest
        certified = Gates(paths).certified(TABLE)
        assert certified is not None
        assert DeltaTable(str(path), version=certified).to_pyarrow_table().num_rows == seen, step
        assert DeltaTable(str(path)).to_pyarrow_table().num_rows == read, step
        assert position() == read, step


def test_a_refused_version_that_cannot_be_undone_stays_and_the_obstacle_is_named(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)

    def load(*, passes: bool, sources: BatchSources | None = None) -> int:
        version = load_batch(tmp_path, SPEC, sources=sources).version
        judge(tmp_path, SPEC, version, passed=passes)
        return version

    def obstacle() -> str:
        return restore_obstacle(refusal(tmp_path), paths, Gates(paths))

    load(passes=False)
    with pytest.raises(RestoreError, match="no version of the table was ever certified"):
        restore(tmp_path)
    certified = load(passes=True)
    load(passes=False, sources=BatchSources(replay="r1", replayed_rows=1))
    assert obstacle().startswith("batch 3 is a replay of quarantined rows")
    load(passes=False, sources=BatchSources(deletes="n = 1"))
    assert obstacle() == "batch 4 deletes rows, which a person has decided"
    refused = load(passes=False)
    clean_log(paths.table(TABLE), below=refused)
    assert f"lacks commits after version {certified}" in obstacle()
    newer = load_batch(tmp_path, SPEC).version
    assert obstacle() == f"version {newer} came after it"
    judge(tmp_path, SPEC, newer)
    assert obstacle().startswith(f"readers use version {newer}")


def test_a_table_with_features_that_delta_rs_does_not_write_keeps_its_refused_version(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    judge(tmp_path, SPEC, load_batch(tmp_path, SPEC).version)
    refused = load_batch(tmp_path, SPEC).version
    judge(tmp_path, SPEC, refused, passed=False)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["invariants", "rowTracking"]}
    with commit_file(paths.table(TABLE), refused).open("a") as commit:  # type: ignore[arg-type]
        commit.write("\n" + json.dumps({"protocol": protocol}))
    with pytest.raises(RestoreError, match="the table has features with which no restore can write it: rowTracking"):
        restore(tmp_path)


def test_several_refused_batches_and_their_quarantined_rows_are_undone_together(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    judge(tmp_path, SPEC, load_batch(tmp_path, SPEC, rows=2).version)
    undone = [load_batch(tmp_path, SPEC, rows=rows) for rows in (3, 4)]
    judge(tmp_path, SPEC, undone[-1].version, passed=False)
    secondary = paths.quarantine(TABLE)
    kept, gone = (load_secondary(secondary, token) for token in ("kept", undone[0].token))
    winner = restore(tmp_path)
    assert winner.intent.sources.undoes == tuple(batch.token for batch in undone)
    assert DeltaTable(str(paths.table(TABLE))).to_pyarrow_table().num_rows == 2
    assert DeltaTable(str(secondary)).to_pyarrow_table().num_rows == kept
    assert gone == 1
    app_id = f"millrace/silver_quarantine.orders/{winner.intent.table_id}/main"
    assert DeltaTable(str(secondary)).transaction_version(app_id) == winner.batch_seq
    rows = Ledger(paths).closed_rows(winner)
    assert rows is not None
    assert (rows.read, rows.inserted, rows.deleted) == (0, 0, 7)


def load_secondary(path: Path, token: str) -> int:
    """Commit one row to a secondary table for the batch with this token, and return the number of rows."""
    if latest_version(path) < 0:
        create_table(path)
    append(path, 1, user_metadata=f'{{"millrace": {{"token": "{token}"}}}}')
    return 1


def test_the_rows_of_an_undone_replay_wait_again_and_a_late_driver_does_not_change_that(tmp_path: Path) -> None:
    paths, ann = LakehousePaths(tmp_path), Decision("ann", "fixed", "run")
    ops = OpsTables(paths)
    first = load_batch(tmp_path, BRONZE)
    judge(tmp_path, BRONZE, first.version)
    table_id = quarantine(paths, BRONZE.table, refused(1, "too low"), refused(2, "too low"), by=first.intent)
    fixed = [ReceivedRow("r1", '{"order_id":"o1"}', "amount = 1"), ReceivedRow("r2", '{"order_id":"o2"}')]
    ops.quarantine.record_fixes(BRONZE.table, table_id, fixed[:1], ann)
    ops.quarantine.pin(BRONZE.table, table_id, "replay", fixed, ann)
    replayed = load_batch(tmp_path, BRONZE, rows=2, sources=BatchSources(replay="replay", replayed_rows=2))
    ops.quarantine.record_outcome(replayed, [], ann)
    judge(tmp_path, BRONZE, replayed.version)
    assert statuses(paths) == {"r1": RowStatus.REPLAYED, "r2": RowStatus.REPLAYED}
    assert len(ops.quarantine.replayed_rows(BRONZE.table, table_id, "")) == 2

    Restore(BRONZE, first.version, replayed.version, day(), "run").run(ops)
    ops.quarantine.record_outcome(replayed, [], ann)

    assert statuses(paths) == {"r1": RowStatus.FIXED, "r2": RowStatus.OPEN}
    assert ops.quarantine.replayed_rows(BRONZE.table, table_id, "") == []


def statuses(paths: LakehousePaths) -> dict[str, RowStatus]:
    rows = quarantined_rows(StoredRows(BRONZE.table, paths), RowFilter(statuses=tuple(RowStatus)))
    return {row.id: row.status for row in sorted(rows, key=lambda row: row.id)}


@pytest.mark.parametrize(
    ("undone", "silver", "reason"),
    [
        (BatchSources(files=1), {}, ""),
        (BatchSources(files=1), {"snapshot": "full", "sequence_by": None}, "full snapshots"),
        (BatchSources(replay="r", replayed_rows=1), {}, "is a replay"),
        (BatchSources(offsets={"orders": {0: (0, 1)}}), {}, "Kafka messages"),
        (BatchSources(deletes="n = 1"), {}, "is a deletion, whose rows are there again"),
    ],
)
def test_silver_follows_a_restore_of_its_source_or_says_how_to_rebuild_it(
    tmp_path: Path, undone: BatchSources, silver: dict[str, Any], reason: str
) -> None:
    ops = OpsTables(LakehousePaths(tmp_path))
    first = load_batch(tmp_path, BRONZE)
    judge(tmp_path, BRONZE, first.version)
    later = load_batch(tmp_path, BRONZE, sources=undone)
    restored = Restore(BRONZE, first.version, later.version, day(), "run").run(ops)
    reading = silver_spec().model_copy(update=silver)

    def follow(after: int | None) -> None:
        span = after, restored.version
        require_followable(reading, BRONZE.table, restored.intent.table_id, span, ops)

    follow(None)
    follow(first.version)  # it has read none of what was undone
    if reason:
        with pytest.raises(BadInputError, match=reason) as caught:
            follow(later.version)
        assert str(caught.value).endswith("lakehouse rebuild silver.orders --downstream")
    else:
        follow(later.version)


def test_silver_follows_a_deletion_in_its_source_unless_it_reads_full_snapshots(tmp_path: Path) -> None:
    ops, first = OpsTables(LakehousePaths(tmp_path)), load_batch(tmp_path, BRONZE)
    deletion = load_batch(tmp_path, BRONZE, sources=BatchSources(deletes="n = 1"))
    of_source = BRONZE.table, deletion.intent.table_id, (first.version, deletion.version), ops
    require_followable(silver_spec(), *of_source)
    snapshots = silver_spec().model_copy(update={"snapshot": "full", "sequence_by": None})
    with pytest.raises(BadInputError, match=r"has lost rows by a deletion.* full snapshots"):
        require_followable(snapshots, *of_source)
