"""The context of a job with a clock that the test sets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from spark_jobs.runtime.context import JobContext


@dataclass(frozen=True, kw_only=True)
class ContextAt(JobContext):
    """The context of a job whose current time is `at`."""

    at: datetime

    def now(self) -> datetime:
        """Return `at`."""
        return self.at
