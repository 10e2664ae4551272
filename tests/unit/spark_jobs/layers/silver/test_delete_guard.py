"""A batch makes the deletes that a person has allowed, and no others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from include.contracts.job.findings import AbsentKeys
from include.control.log.batch import BatchSources, Stream, Winner
from include.control.ops_tables import OpsTables
from include.errors import DeletesRefusedError
from include.paths import LakehousePaths
from spark_jobs.layers.silver.delete_guard import require_allowed
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import day, intent_of

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
