"""The landing files of a bronze table that could not be loaded: a part of its state (ADR 25)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from millrace.contracts.interval import Instant
from millrace.control.ledger.events import Failure
from millrace.control.ledger.states.table_state import StatePart

MOST_FILES = 20


class FailedFile(BaseModel):
    """A landing file that the last attempt could not load.

    Attributes:
        path: its path, relative to the landing root.
        attempts: the number of failed attempts.
        reason: why it could not be loaded.
        at: when it failed last.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    attempts: int
    reason: str
    at: Instant | None = None


class FailedFiles(StatePart):
    """The files that could not be loaded, without those that a person gave up.

    Attributes:
        attempts: number of failed attempts -> number of files.
        files: at most `MOST_FILES` of them, those with the most attempts first.
    """

    attempts: dict[int, int] = Field(default_factory=dict)
    files: tuple[FailedFile, ...] = ()

    def given_up(self, max_attempts: int) -> int:
        """Return the number of files that no run tries again, since they have failed in this number of runs."""
        return sum(number for attempts, number in self.attempts.items() if attempts >= max_attempts)


def failed_files(table_id: str, failures: Mapping[str, Failure]) -> FailedFiles:
    """Return the part of the state for all failures of a table (path -> failure)."""
    open_failures = [failure for failure in failures.values() if not failure.given_up]
    open_failures.sort(key=lambda failure: (-failure.attempts, failure.file.path))
    files = (FailedFile(path=each.file.path, attempts=each.attempts, reason=each.file.defect, at=each.at)
             for each in open_failures[:MOST_FILES])  # fmt: skip
    return FailedFiles(table_id=table_id, attempts=Counter(each.attempts for each in open_failures), files=tuple(files))
