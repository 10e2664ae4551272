"""Restores after refusals on small Delta tables: what readers and the next batch see, and what prevents a restore."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.gates.verdicts import restoring_version
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import resolve
from millrace.control.log.batch import BatchSources, Stream, Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.restoring import restore_obstacle, undo_refused
from millrace.errors import RestoreError
from millrace.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
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

SPEC = silver_spec(on_refusal="restore")
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
