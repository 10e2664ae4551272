"""A merge counts every row once, and deletes what a person has allowed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.contracts.job.findings import AbsentKeys
from millrace.contracts.job.report import RowCounts
from millrace.control.log.batch import BatchSources, Stream, Winner
from millrace.control.log.delta_log import Commit
from millrace.control.ops_tables import OpsTables
from millrace.errors import DeletesRefusedError
from millrace.paths import LakehousePaths
from millrace_spark.layers.silver.merge_counts import MergeCounts, committed_changes
from millrace_spark.layers.silver.silver import require_allowed
from millrace_spark.transforms.silver import changes as C
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import day, intent_of

COUNT = st.integers(0, 10**6)
OF_EVENTS = (C.INSERT, C.UPDATE, C.DELETE, C.UNCHANGED, C.SUPERSEDED)
ACTIONS = st.dictionaries(st.sampled_from((*OF_EVENTS, C.ABSENT)), COUNT).map(Counter)


def counts(actions: Counter[str], quarantined: int = 0, dropped: int = 0, not_the_latest: int = 0) -> MergeCounts:
    accepted = sum(actions[action] for action in OF_EVENTS) + not_the_latest
    events = Counter({action: actions[action] for action in OF_EVENTS})
    read = accepted + quarantined + dropped
    return MergeCounts(read, quarantined, dropped, accepted, actions, events, actions[C.DELETE])


@given(actions=ACTIONS, quarantined=COUNT, dropped=COUNT, not_the_latest=COUNT)
def test_every_row_is_counted_once_and_the_target_grows_by_what_is_counted(
    actions: Counter[str], quarantined: int, dropped: int, not_the_latest: int
) -> None:
    rows = counts(actions, quarantined, dropped, not_the_latest).to_row_counts()
    assert rows.are_conserved
    assert rows.superseded == not_the_latest + actions[C.SUPERSEDED]
    assert rows.inserted - rows.deleted == actions[C.INSERT] - actions[C.DELETE] - actions[C.ABSENT]


def test_each_action_is_counted_where_it_belongs() -> None:
    actions = Counter(dict(zip((*OF_EVENTS, C.ABSENT), (1, 2, 4, 8, 16, 32), strict=True)))
    assert counts(actions, quarantined=64, dropped=128, not_the_latest=256).to_row_counts() == RowCounts(
        read=479, applied=7, unchanged=8, superseded=272, quarantined=64, dropped=128, inserted=1, updated=2, deleted=36
    )


def test_events_that_make_a_period_together_count_one_by_one() -> None:
    by_action, events = Counter({C.INSERT: 2, C.UPDATE: 1, C.ABSENT: 1}), Counter({C.INSERT: 5})
    counts = MergeCounts(6, quarantined=0, dropped=0, accepted=6, by_action=by_action, events=events, deletes=0)
    rows = counts.to_row_counts()
    short = MergeCounts(7, quarantined=0, dropped=0, accepted=6, by_action=by_action, events=events, deletes=0)
    assert not short.to_row_counts().are_conserved, "counts that do not agree are not made to agree"
    assert (rows.applied, rows.superseded, rows.inserted, rows.updated, rows.deleted) == (5, 1, 2, 1, 1)
    assert rows.are_conserved


def test_the_commits_own_metrics_say_what_changed() -> None:
    merged = {"numTargetRowsInserted": "5", "numTargetRowsUpdated": "2", "numTargetRowsDeleted": "1"}
    for operation, metrics, changed in (
        ("MERGE", merged, (5, 2, 1)),
        ("MERGE", {}, (0, 0, 0)),
        ("WRITE", {"numOutputRows": "7", "numFiles": "1"}, (7, 0, 0)),
        ("WRITE", {}, (0, 0, 0)),
    ):
        assert committed_changes(Commit(3, operation=operation, metrics=metrics)) == changed


SPEC = silver_spec(snapshot="full", sequence_by=[], max_deleted_percent=20)


def nobody_allows(root: Path) -> Any:
    """The context of a job without `--allow-deletes`."""
    return SimpleNamespace(ops=OpsTables(LakehousePaths(root)), allows_deletes=lambda _: False)


def test_an_approval_covers_a_number_of_keys_of_one_interval_and_source_version(tmp_path: Path) -> None:
    context = nobody_allows(tmp_path)

    def deletes(keys: int, version: int = 7, number: int = 1) -> None:
        sources = BatchSources(ranges={SPEC.source: (None, version)}, source_ids={SPEC.source: "id"})
        intent = intent_of("id", stream=Stream(SPEC.table), sources=sources)
        absent = AbsentKeys(keys=keys, of_keys=100, why="the snapshot lacks them", interval_start=day(number).start)
        require_allowed(context, SPEC, SPEC.source, intent, [absent])

    deletes(20)
    with pytest.raises(DeletesRefusedError):
        deletes(25)
    (asked,) = context.ops.deletes.pending_deletes(SPEC.table)
    context.ops.deletes.record_allowed(asked, said_by="ann", reason="they left", run_id="r")
    deletes(25)
    for other in ({"keys": 95}, {"keys": 25, "version": 6}, {"keys": 25, "number": 2}):
        with pytest.raises(DeletesRefusedError):
            deletes(**other)
    ledger = context.ops.ledger
    ledger.record_committed([Winner(intent_of("id", 1, stream=Stream(SPEC.source)), 7)])
    ledger.record_committed([Winner(intent_of("id", 2, stream=Stream(SPEC.source)), 8)])
    deletes(25, version=8)
    ledger.record_committed([Winner(intent_of("id", 1, stream=Stream(SPEC.source), token="more"), 9)])
    with pytest.raises(DeletesRefusedError):
        deletes(25, version=9)


def test_an_approval_covers_one_version_of_a_source_of_events(tmp_path: Path) -> None:
    context = nobody_allows(tmp_path)
    spec = silver_spec(max_deleted_percent=20)

    def deletes(version: int, number: int = 1) -> None:
        sources = BatchSources(ranges={spec.source: (None, version)}, source_ids={spec.source: "id"})
        intent = intent_of("id", number, stream=Stream(spec.table), sources=sources)
        require_allowed(
            context, spec, spec.source, intent, [AbsentKeys(keys=25, of_keys=100, why="a truncate deletes them")]
        )

    with pytest.raises(DeletesRefusedError):
        deletes(7)
    (asked,) = context.ops.deletes.pending_deletes(spec.table)
    context.ops.deletes.record_allowed(asked, said_by="ann", reason="they left", run_id="r")
    deletes(7, number=2)
    for version in (6, 8):
        with pytest.raises(DeletesRefusedError):
            deletes(version)
