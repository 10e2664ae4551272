"""Why a task has failed, and what helps."""

from __future__ import annotations

from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome

_CAUSES = {
    Outcome.NOT_READY: "what it reads was not there yet",
    Outcome.CONFLICT: "other writers came first until its retries were used up",
    Outcome.GATE_FAILED: "a gate refused the version",
    Outcome.BAD_INPUT: "its input cannot be loaded",
    Outcome.BAD_SPEC: "a spec is wrong",
    Outcome.SPARK_UNAVAILABLE: "Spark did not answer",
    Outcome.DISK_FULL: "a disk was full",
    Outcome.INCONSISTENT: "the ledger and the table contradict each other",
    Outcome.DELETES_REFUSED: "it would have deleted more than the spec allows",
    Outcome.WRONG_RUN: "the dates or the form of its run do not say what to load",
}
"""How a job has ended -> why, without values of rows."""

_WAYS_OUT = {
    Outcome.CONFLICT: "Clear it when they are done.",
    Outcome.NOT_READY: "Clear it when the data has arrived.",
    Outcome.SPARK_UNAVAILABLE: "Clear it when Spark runs again.",
    Outcome.DISK_FULL: "Free space, then clear it.",
    Outcome.WRONG_RUN: "Trigger the DAG again with a Day, and delete this run: cleared, it has the same dates again.",
}
"""How a job has ended -> what helps."""

_ENDED = "it left no report, because its process was ended or died"
_AFTER_FAILURE = "Its log says more. When the cause is gone, clear it with the tasks after it."


def failure_cause(result: TaskResult | None) -> str:
    """Return why a task has failed, by how its job ended; empty if only its message says that.

    >>> failure_cause(None)
    'it left no report, because its process was ended or died'
    """
    if result is not None and result.is_misfit:
        return "its table does not fit the spec"
    return _ENDED if result is None else _CAUSES.get(result.outcome, "")


def failure_way_out(result: TaskResult | None) -> str:
    """Return what helps after a task has failed."""
    return _AFTER_FAILURE if result is None else _WAYS_OUT.get(result.outcome, _AFTER_FAILURE)


def failure_message(result: TaskResult | None) -> list[str]:
    """Return what the failed task has said, the cause first and then the ways out; it may have values of rows.

    >>> failure_message(TaskResult(outcome="conflict", message="lost 7 to run-9\\n\\nWait."))
    ['lost 7 to run-9', 'Wait.']
    """
    return [line for line in result.message.split("\n") if line.strip()] if result else []
