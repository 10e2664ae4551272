"""A real job with a clock that the test sets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from spark_jobs.runtime.context import JobContext


@dataclass(frozen=True, kw_only=True)
class ContextAt(JobContext):
    """Return the context of a job that runs at `at`."""

    at: datetime

    def now(self) -> datetime:
        """That instant."""
        return self.at
