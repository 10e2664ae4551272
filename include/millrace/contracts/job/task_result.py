"""The result that a task hands to the tasks after it, and to the pages about its run."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from millrace.contracts.job.findings import RefusedRows, RescuedValues, merge_by_reason, without_value
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.spans import WAITED
from millrace.errors import MisfitError, Outcome

MOST_REASONS = 20
"""The most frequent reasons of refused rows, and the most fields with rescued values, that a result names."""


class TaskResult(BaseModel):
    """The small XCom of a task: references and counts, never data.

    Attributes:
        outcome: how the task ended.
        message: the same in one line.
        table: the table that the task wrote, by which the gate's task finds this result; empty for other tasks.
        batch_seq: the batch that was committed, or the last batch if there was nothing new.
        version: the table version of that batch.
        certified_version: the version that readers may use.
        rows: the row counts that are not 0.
        refused: the refused rows by reason, the most frequent first, without values and samples.
        rescued: the values that fit no column by field, without the values themselves.
        seconds: the spans of the task and its job, as `TaskSpans` has them.
        is_misfit: whether it failed because only a rebuild makes the table fit its spec.
    """

    model_config = ConfigDict(frozen=True)

    outcome: Outcome
    message: str
    table: str = ""
    batch_seq: int | None = None
    version: int | None = None
    certified_version: int | None = None
    rows: dict[str, int] = Field(default_factory=dict)
    refused: tuple[RefusedRows, ...] = ()
    rescued: tuple[RescuedValues, ...] = ()
    seconds: dict[str, float] = Field(default_factory=dict)
    is_misfit: bool = False

    @classmethod
    def of_report(cls, report: JobReport) -> Self:
        """Return the result of a job that ran."""
        counts = {action: count for action, count in report.rows.model_dump().items() if count}
        fields = report.model_dump(include={"outcome", "message", "batch_seq", "version", "certified_version"})
        plain = (
            rows.model_copy(update={"reason": without_value(rows.reason).replace("\0", "\u2400"), "samples": ()})
            for rows in report.findings.refused
        )
        rescued = tuple(
            values.model_copy(update={"field": values.field.replace("\0", "\u2400"), "samples": ()})
            for values in report.findings.rescued[:MOST_REASONS]
        )
        waited = {WAITED: report.waited_s} if report.waited_s else {}
        refused = merge_by_reason(plain)[:MOST_REASONS]
        return cls(
            **fields,
            rows=counts,
            refused=refused,
            rescued=rescued,
            seconds={**report.timings_s, **waited},
            is_misfit=report.error_class == MisfitError.__name__,
        )

    @classmethod
    def of_nothing(cls, reason: str) -> Self:
        """Return the result of a task whose interval can have no data."""
        return cls(outcome=Outcome.NO_OP, message=reason)

    def of_table(self, table: str) -> Self:
        """Return the same result of a task that wrote `table`."""
        return self.model_copy(update={"table": table})

    def to_xcom(self) -> dict[str, Any]:
        """Return the result as plain JSON; NUL, which PostgreSQL's JSON cannot store, is replaced by its symbol."""
        return self.model_dump(mode="json") | {"message": self.message.replace("\0", "\u2400")}
