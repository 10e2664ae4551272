"""Where the time of a task goes, in seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from time import monotonic

START, PLAN, VERDICT, DRIVER = "start", "plan", "verdict", "driver"
"""The spans of a task outside its job."""

BATCH, GATE, TOTAL, WAITED = "batch", "gate", "total", "waited"
"""The spans of a job: its batches, with the time for which they waited for the lease, and its gate."""


class TaskSpans:
    """The phases of a task outside its job: span -> seconds.

    `start` is the time until the operator works: Airflow starts a process and parses the DAG file. `plan` is the plan
    in the worker, `verdict` the time to read a gate's result. `driver` is what the driver's process takes to start and
    to end, without its job.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def started(self, at: datetime | None) -> None:
        """Note the start: `at` is when Airflow started the task; None if it does not say."""
        if at is not None:
            self.seconds[START] = round((datetime.now(UTC) - at).total_seconds(), 3)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Time the block as the span `name`."""
        began = monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(monotonic() - began, 3)

    def around(self, job: Mapping[str, float]) -> dict[str, float]:
        """Return the spans of the task and those of its job; the job's own time is taken out of the driver's.

        >>> spans = TaskSpans()
        >>> spans.seconds = {"start": 0.4, "driver": 5.5}
        >>> spans.around({"batch": 4.0, "gate": 0.8, "total": 5.0})
        {'start': 0.4, 'driver': 0.5, 'batch': 4.0, 'gate': 0.8, 'total': 5.0}
        """
        own = dict(self.seconds)
        if DRIVER in own:
            own[DRIVER] = round(max(own[DRIVER] - job.get("total", 0.0), 0.0), 3)
        return {**own, **job}


def spans_line(spans: Mapping[str, float]) -> str:
    """Return the spans for a log.

    >>> spans_line({"start": 0.41, "driver": 0.5, "batch": 4.0, "gate": 0.8, "total": 5.0})
    'start 0.4 s, driver 0.5 s, job 5.0 s (batch 4.0 s, gate 0.8 s)'
    """
    own = [f"{name} {spans[name]:.1f} s" for name in (START, PLAN, VERDICT, DRIVER) if name in spans]
    parts = [f"{name} {spans[name]:.1f} s" for name in ("batch", "gate") if name in spans]
    job = f"job {spans['total']:.1f} s" + (f" ({', '.join(parts)})" if parts else "") if "total" in spans else ""
    return ", ".join([*own, *([job] if job else [])])
