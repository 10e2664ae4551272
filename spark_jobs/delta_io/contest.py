"""A write and those that were faster: which races it has lost, and whether it may try again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential_jitter

from include.contracts.job.contention import LostRace
from include.contracts.lake_path import LakePath
from include.contracts.spec.conflict_spec import DEFAULT_CONFLICTS, ConflictSpec
from include.control.log.conflicting_commits import race_lost
from include.control.log.delta_log import latest_version
from include.errors import ConflictError
from spark_jobs.delta_io.conflict_policy import Remedy, WriteKind, remedy_of
from spark_jobs.delta_io.conflicts import conflict_of

log = logging.getLogger(__name__)

T = TypeVar("T")


class _AgainError(Exception):
    """Another commit was first; a further try may be the one."""


@dataclass
class Contest:
    """What one write of one table has lost so far, against what its spec allows.

    Attributes:
        table: the table, as a person knows it.
        limits: how often, and how long, to try.
        lost: the races that were lost.
        started: when the write began, by the monotonic clock.
    """

    table: str
    limits: ConflictSpec = DEFAULT_CONFLICTS
    lost: list[LostRace] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def lose(self, race: LostRace) -> None:
        """Note a race that was lost, for the report, and for whoever reads the log right now."""
        self.lost.append(race)
        log.warning("%s: lost a race: %s", self.table, race)

    def retrying(self, error: type[Exception]) -> Retrying:
        """Tries again after `error`, later each time, until the limits are reached.

        Raises:
            ConflictError: they are.
        """
        return Retrying(
            retry=retry_if_exception_type(error),
            stop=self._is_over,
            wait=wait_exponential_jitter(initial=0.1, max=5.0, jitter=0.1),
            retry_error_callback=self._give_up,
        )

    def _is_over(self, state: RetryCallState) -> bool:
        # Tries within tries share one budget, which is why the races count and not this loop's tries alone.
        tries = max(len(self.lost), state.attempt_number)
        return tries > self.limits.max_commit_retries or self._took_s() >= self.limits.retry_for.total_seconds()

    def _give_up(self, state: RetryCallState) -> Any:
        last = state.outcome.exception() if state.outcome else None
        if last and last.__cause__ and not self.lost:
            raise last.__cause__  # nobody was faster: what went wrong went wrong each time
        msg = (
            f"{self.table}: lost to other writers {max(len(self.lost), state.attempt_number)} times in "
            f"{self._took_s():.0f} s ({', '.join(map(str, self.lost))})\nNothing was written half; the retry plans "
            "again. If this comes again and again, `lakehouse conflicts` says who is in whose way."
        )
        raise ConflictError(msg)

    def _took_s(self) -> float:
        return time.monotonic() - self.started


def commit_anyway(contest: Contest, kind: WriteKind, path: LakePath, write: Callable[[], T]) -> T | None:
    """Run `write`, which commits to the table at `path` without being a batch, and do what the policy says if it loses.

    Returns:
        What `write` returns; None where the winner wrote the same.

    Raises:
        ConflictError: it lost too often, or has met a conflict that it cannot have.
    """
    return contest.retrying(_AgainError)(_commit_once, contest, kind, path, write)


def _commit_once(contest: Contest, kind: WriteKind, path: LakePath, write: Callable[[], T]) -> T | None:
    known = latest_version(path)
    try:
        return write()
    except Exception as error:
        conflict = conflict_of(error)
        if conflict is None:
            raise
        remedy = remedy_of(kind, conflict)
        if remedy is Remedy.DONE:
            return None
        contest.lose(race_lost(conflict.value, str(error), path, known))
        if remedy is Remedy.COMMIT_AGAIN:
            raise _AgainError from error
        msg = f"{contest.table}: {contest.lost[-1]}, which {kind} cannot have\nNothing was written; run it again."
        raise ConflictError(msg) from error
