"""A write that is no batch follows the policy after each conflict, and records who was faster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from include.contracts.job.contention import LostRace
from include.contracts.spec.common_settings import ConflictSpec
from include.errors import ConflictError
from spark_jobs.delta_io.conflict_policy import WriteKind
from spark_jobs.delta_io.contest import Contest, retry_until_committed
from tests.support.ledger.delta_tables import append, create_table

TABLE = "silver.orders"


class Losing:
    """A write that meets these errors in turn, and then commits."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.tries = 0

    def __call__(self) -> str:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def conflict(condition: str, version: int | None = None) -> Exception:
    text = f"files were changed. committed at version {version}." if version is not None else "something changed"
    return RuntimeError(f"[{condition}] Transaction conflict detected. {text}")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    create_table(tmp_path)
    append(tmp_path)
    return tmp_path


@pytest.fixture
def meets(table: Path) -> Callable[..., tuple[Contest, Losing]]:
    def run(kind: WriteKind, *errors: Exception, retries: int = 7) -> tuple[Contest, Losing]:
        contest, write = Contest(TABLE, ConflictSpec(max_commit_retries=retries)), Losing(*errors)
        assert retry_until_committed(contest, kind, table, write) == "done"
        return contest, write

    return run


def test_a_write_that_loses_is_tried_again_and_records_who_won(meets: Callable[..., tuple[Contest, Losing]]) -> None:
    lost, again = conflict("DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT", version=1), conflict("DELTA_METADATA_CHANGED")
    contest, write = meets(WriteKind.MAINTENANCE, lost, again)
    assert write.tries == 3
    assert contest.lost == [
        LostRace(conflict="ConcurrentDeleteReadException", operation="WRITE", version=1),
        LostRace(conflict="MetadataChangedException"),
    ]


def test_a_secondary_write_is_done_when_another_was_first(table: Path) -> None:
    contest, write = Contest("silver_quarantine.orders"), Losing(conflict("DELTA_CONCURRENT_TRANSACTION"))
    assert retry_until_committed(contest, WriteKind.SECONDARY, table, write) is None
    assert (write.tries, contest.lost) == (1, [])


def test_it_gives_up_when_it_has_lost_too_often(meets: Callable[..., tuple[Contest, Losing]]) -> None:
    errors = [conflict("DELTA_CONCURRENT_APPEND") for _ in range(3)]
    with pytest.raises(ConflictError, match=r"^silver.orders: lost to other writers 3 times in \d+ s"):
        meets(WriteKind.MAINTENANCE, *errors, retries=2)


def test_a_conflict_to_give_up_on_is_not_tried_again(meets: Callable[..., tuple[Contest, Losing]]) -> None:
    with pytest.raises(ConflictError, match="maintenance does not retry after that"):
        meets(WriteKind.MAINTENANCE, conflict("DELTA_CONCURRENT_TRANSACTION"))


def test_any_other_error_is_raised_as_it_is(meets: Callable[..., tuple[Contest, Losing]]) -> None:
    with pytest.raises(OSError, match="no space"):
        meets(WriteKind.MAINTENANCE, OSError("no space left"))
