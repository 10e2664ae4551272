"""The commit protocol, step by step, on real tables: what each ending of a write leads to."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from millrace.contracts.job.contention import LostRace
from millrace.contracts.job.report import RowCounts
from millrace.contracts.spec.common_settings import ConflictSpec
from millrace.control.leases.leases import Leases
from millrace.control.log.batch import Intent
from millrace.control.log.delta_log import latest_version
from millrace.control.storage.objects import LocalObjectStore
from millrace.errors import ConflictError, ConservationError, ExitCode, LeaseLostError, MillraceError, TornLogError
from millrace_spark.protocol.batches import commit_conf
from tests.support.ledger.delta_tables import append, commit_file, day
from tests.support.ledger.ledger_reading import loaded_by_path
from tests.support.ledger.three_rows import FILE, ThreeRowLake


class ConcurrentAppendException(Exception):
    """As Delta raises it, by its name."""


class MetadataChangedException(Exception):
    """As Delta raises it, by its name."""


THE_OTHER: dict[str, Any] = {"operation": "WRITE", "run_id": "run-1", "version": 1}
"""What `someone_else_commits` does."""


@pytest.fixture
def lake(tmp_path: Path) -> ThreeRowLake:
    return ThreeRowLake(tmp_path)


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_the_time_of_a_batch_is_that_of_its_plan_however_long_it_waits_for_the_lease(lake: ThreeRowLake) -> None:
    writer = lake.writer()
    lake.now += timedelta(hours=2)
    writer.run_unleased()
    assert [intent.planned_at for intent in lake.work.intents] == [day().end + timedelta(hours=2)]


def test_a_batch_is_planned_recorded_committed_settled_and_closed(lake: ThreeRowLake) -> None:
    result = lake.run()
    winner = result.winner
    assert (result.committed, result.previous, result.attempts, result.lost) == (True, None, 1, [])
    assert (winner.batch_seq, winner.version, winner.intent.table_id) == (1, 1, lake.table_id)
    assert (winner.intent.run_id, winner.intent.interval_start) == ("manual__1", day().start)
    assert result.rows == lake.work.rows == lake.ledger.closed_rows(winner)
    assert lake.ledger.last_committed("bronze.orders", lake.table_id, "main") == winner
    assert loaded_by_path(lake.ledger, "bronze.orders", lake.table_id) == {"a.json": FILE}
    (intent,) = lake.work.intents
    (conf,) = lake.sessions
    assert conf == commit_conf(intent)
    assert conf["spark.databricks.delta.write.txnAppId"] == "millrace/bronze.orders/main"
    assert conf["spark.databricks.delta.write.txnVersion"] == "1"
    told = json.loads(conf["spark.databricks.delta.commitInfo.userMetadata"])
    assert Intent.model_validate(told["millrace"]) == intent


def test_nothing_to_do_names_the_last_batch_and_its_rows_if_there_was_one(lake: ThreeRowLake) -> None:
    lake.work.left = 0
    nothing = lake.run()
    assert (nothing.winner, nothing.committed, nothing.attempts, latest_version(lake.table)) == (None, False, 0, 0)
    lake.work.left = 1
    first = lake.run()
    again = lake.run()
    assert (again.winner, again.committed, again.rows) == (first.winner, False, first.rows)
    assert not again.finished
    assert len(lake.work.closed) == 1, "a closed batch was closed again"


@pytest.mark.parametrize(
    "error",
    [
        OSError("the connection broke while the answer was under way"),
        RuntimeError("[DELTA_CONCURRENT_TRANSACTION] somebody wrote my number"),
    ],
)
def test_an_error_after_the_commit_landed_is_a_success(lake: ThreeRowLake, error: Exception) -> None:
    lake.work.after = [failing(error)]
    result = lake.run()
    assert (result.committed, result.lost) == (True, [])
    assert (result.attempts, latest_version(lake.table)) == (1, 1)


def test_a_conflict_with_other_rows_is_tried_again_under_the_same_token(lake: ThreeRowLake) -> None:
    lake.work.before = [failing(ConcurrentAppendException("files were added"))]
    result = lake.run()
    assert (result.committed, result.attempts) == (True, 1)
    assert result.lost == [LostRace(conflict="ConcurrentAppendException")], "the winner is not known"
    assert len(lake.work.intents) == 2
    assert len({intent.token for intent in lake.work.intents}) == 1
    assert len(lake.sessions) == 2, "each try has a session of its own"


def test_a_changed_table_is_planned_for_again_under_a_new_token(lake: ThreeRowLake) -> None:
    lake.work.before = [failing(MetadataChangedException("a column was added"))]
    result = lake.run()
    assert (result.committed, result.attempts) == (True, 2)
    assert [race.conflict for race in result.lost] == ["MetadataChangedException"]
    assert len({intent.token for intent in lake.work.intents}) == 2
    assert {intent.batch_seq for intent in lake.work.intents} == {1}


def test_a_number_that_went_to_someone_else_is_planned_for_again(lake: ThreeRowLake) -> None:
    lake.work.before = [lambda: lake.commit_by_other_writer(1) and None]
    result = lake.run()
    assert (result.winner.batch_seq, result.attempts) == (2, 2)
    assert result.lost == [LostRace(conflict="ConcurrentTransactionException", **THE_OTHER)]
    assert [position.next_seq for position in lake.work.positions] == [1, 2]
    assert [winner.batch_seq for winner in lake.work.closed] == [1, 2], "the other's batch is finished first"


def test_an_error_without_a_commit_is_raised_as_it_came(lake: ThreeRowLake) -> None:
    lake.work.before = [failing(ZeroDivisionError("in the middle of a write"))]
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        lake.run()
    assert (latest_version(lake.table), len(lake.work.intents)) == (0, 1)
    assert loaded_by_path(lake.ledger, "bronze.orders", lake.table_id) == {}
    assert lake.run().committed, "the next run goes on as if nothing had been"


def test_a_write_without_error_and_without_commit_is_an_error(lake: ThreeRowLake) -> None:
    def forget_the_txn() -> None:
        for key in ("txnAppId", "txnVersion"):
            lake.sessions[-1][f"spark.databricks.delta.write.{key}"] = "0"

    lake.work.before = [forget_the_txn]
    append(lake.table, txn=("0", 1))
    with pytest.raises(MillraceError, match="without an error and without a commit") as raised:
        lake.run()
    assert "another session" in str(raised.value)


@pytest.mark.parametrize("left", [0, 1])
def test_what_a_writer_that_died_left_undone_is_finished_before_anything_new(lake: ThreeRowLake, left: int) -> None:
    died, lake.work.left = lake.commit_by_other_writer(1), left
    result = lake.run()
    assert lake.work.closed[0] == died
    assert result.rows == lake.work.rows == lake.ledger.closed_rows(died)
    if left:
        assert (result.previous, result.winner.batch_seq) == (died, 2)
    else:
        assert (result.winner, result.committed, result.finished) == (died, False, True)


def test_a_batch_whose_close_failed_is_closed_by_the_next(lake: ThreeRowLake, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(lake.work, "close", lambda _: failing(OSError("disk full"))())
        with pytest.raises(OSError, match="disk full"):
            lake.run()
    assert latest_version(lake.table) == 1
    result = lake.run()
    assert (result.committed, result.rows, latest_version(lake.table)) == (False, lake.work.rows, 1)
    assert lake.ledger.closed_rows(result.winner) == lake.work.rows


def test_rows_that_are_not_conserved_leave_the_batch_unclosed(lake: ThreeRowLake) -> None:
    lake.work.rows = RowCounts(read=4, applied=3, inserted=3)
    with pytest.raises(ConservationError, match="do not add up"):
        lake.run()
    last = lake.ledger.last_committed("bronze.orders", lake.table_id, "main")
    assert lake.ledger.closed_rows(last) is None


def test_tries_within_plans_share_one_budget_of_tries_and_time(lake: ThreeRowLake) -> None:
    lake.work.before = [
        failing(ConcurrentAppendException("files were added")),
        failing(MetadataChangedException("a column was added")),
        failing(ConcurrentAppendException("files were added")),
    ]
    with pytest.raises(ConflictError) as raised:
        lake.run(ConflictSpec(max_commit_retries=2))
    assert raised.value.exit_code is ExitCode.CONFLICT
    said = str(raised.value)
    assert said.startswith("bronze.orders: lost to other writers 3 times in ")
    assert "ConcurrentAppendException, MetadataChangedException, ConcurrentAppendException" in said
    assert (len(lake.work.intents), latest_version(lake.table)) == (3, 0)
    lake.work.before = [failing(ConcurrentAppendException("files were added")) for _ in range(3)]
    with pytest.raises(ConflictError, match="lost to other writers 1 times"):
        lake.run(ConflictSpec(retry_for=timedelta(0)))
    assert len(lake.work.intents) == 4, "no further try begins when the time is over"


def test_a_torn_log_stops_the_run_before_anything_is_planned(lake: ThreeRowLake) -> None:
    lake.commit_by_other_writer(1)
    lake.commit_by_other_writer(2)
    commit_file(lake.table, 1).unlink()
    with pytest.raises(TornLogError):
        lake.run()
    assert lake.work.positions == []


def test_the_stream_is_leased_while_it_is_written(lake: ThreeRowLake) -> None:
    store = LocalObjectStore(lake.root / "leases")
    held: list[list[str]] = []
    lake.work.before = [lambda: held.append(store.keys(""))]
    result = lake.writer().run(Leases(store, "run one"))
    assert held == [["bronze.orders.stream-main"]]
    assert result.committed
    assert 0 <= result.waited.seconds < 60
    assert store.keys("") == []


def test_without_the_lease_nothing_is_planned(lake: ThreeRowLake) -> None:
    store = LocalObjectStore(lake.root / "leases")
    with (
        Leases(store, "maintenance").table("bronze.orders"),
        pytest.raises(LeaseLostError, match="held by maintenance"),
    ):
        lake.writer().run(Leases(store, "run one", patience_s=0.2))
    assert (lake.work.positions, lake.sessions) == ([], [])


LOST_ROWS = RuntimeError("Job aborted: [CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_7_0 not found!")


def test_a_batch_whose_rows_were_lost_with_an_executor_is_planned_again_but_not_for_ever(lake: ThreeRowLake) -> None:
    lake.work.before = [failing(LOST_ROWS)]
    result = lake.run()
    assert (result.committed, result.attempts, result.lost) == (True, 2, [])
    assert len({intent.token for intent in lake.work.intents}) == 2
    lake.work.left = 1
    lake.work.before = [failing(LOST_ROWS)] * 9
    with pytest.raises(RuntimeError, match="CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"):
        lake.run(ConflictSpec(max_commit_retries=1))
    assert latest_version(lake.table) == 1
