"""Retry a commit that lost against other writers, within the limits of the table's spec."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential_jitter

from millrace.contracts.job.contention import LostRace
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.common_settings import DEFAULT_CONFLICTS, ConflictSpec
from millrace.control.log.delta_log import find_lost_race, latest_version
from millrace.errors import ConflictError
from millrace_spark.delta_io.conflict_policy import Remedy, WriteKind, conflict_of, remedy_of

log = logging.getLogger(__name__)

T = TypeVar("T")


class _AgainError(Exception):
    """Raised when another commit was first and the write may try again."""


@dataclass
class Contest:
    """The races that one write of one table lost, and the limits of its retries.

    Attributes:
        table: the table, as messages name it.
        limits: how often, and how long, to retry.
        lost: the lost races.
        started: when the write began, in seconds of the monotonic clock.
    """

    table: str
    limits: ConflictSpec = DEFAULT_CONFLICTS
    lost: list[LostRace] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def lose(self, race: LostRace) -> None:
        """Record a lost race for the report, and log it."""
        self.lost.append(race)
        log.warning("%s: lost a race: %s", self.table, race)

    def retrying(self, error: type[Exception]) -> Retrying:
        """Return a retry policy: it tries again after `error`, with growing waits, up to the limits.

        Raises:
            ConflictError: the policy reached a limit.
        """
        return Retrying(
            retry=retry_if_exception_type(error),
            stop=self._is_over,
            wait=wait_exponential_jitter(initial=0.1, max=5.0, jitter=0.1),
            retry_error_callback=self._give_up,
        )

    def _is_over(self, state: RetryCallState) -> bool:
        # Nested retries share one budget: so the lost races count, not only the attempts of this loop.
        tries = max(len(self.lost), state.attempt_number)
        return tries > self.limits.max_commit_retries or self._took_s() >= self.limits.retry_for.total_seconds()

    def _give_up(self, state: RetryCallState) -> Any:
        last = state.outcome.exception() if state.outcome else None
        if last and last.__cause__ and not self.lost:
            raise last.__cause__  # no other writer was faster: the same error came each time
        raise ConflictError(
            f"{self.table}: lost to other writers {max(len(self.lost), state.attempt_number)} times in "
            f"{self._took_s():.0f} s ({', '.join(map(str, self.lost))})\nNo partial write remains; a retry plans "
            "again. If this happens often, `lakehouse conflicts` shows which writers meet."
        )

    def _took_s(self) -> float:
        return time.monotonic() - self.started


def retry_until_committed(
    contest: Contest, kind: WriteKind, path: LakePath, write: Callable[[], T], known: int | None = None
) -> T | None:
    """Run `write`, a commit to the table at `path` that is no batch, and apply the policy after each conflict.

    Args:
        contest: collects the lost races.
        kind: the kind of write.
        path: the folder of the table.
        write: makes one commit.
        known: a version that the table had before; only later commits can win. By default its log is listed.

    Returns:
        The result of `write`; None if the other writer wrote the same.

    Raises:
        ConflictError: it lost too often, or met a conflict that this kind of write gives up on.
    """
    return contest.retrying(_AgainError)(_commit_once, contest, kind, path, write, known)


def _commit_once(
    contest: Contest, kind: WriteKind, path: LakePath, write: Callable[[], T], known: int | None
) -> T | None:
    version = latest_version(path) if known is None else known
    try:
        return write()
    except Exception as error:
        conflict = conflict_of(error)
        if conflict is None:
            raise
        remedy = remedy_of(kind, conflict)
        if remedy is Remedy.DONE:
            return None
        contest.lose(find_lost_race(conflict.value, str(error), path, version))
        if remedy is Remedy.COMMIT_AGAIN:
            raise _AgainError from error
        raise ConflictError(
            f"{contest.table}: {contest.lost[-1]}; {kind} does not retry after that\nNothing was written; run it again."
        ) from error
