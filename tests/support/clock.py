"""A job whose clock stands at an instant that the test chooses; everything else about it is real."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from spark_jobs.runtime.context import JobContext


@dataclass(frozen=True, kw_only=True)
class ContextAt(JobContext):
    """The context of a job that runs at `at`."""

    at: datetime

    def now(self) -> datetime:
        """That instant."""
        return self.at
