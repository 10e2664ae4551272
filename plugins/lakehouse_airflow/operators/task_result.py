"""The result that a task hands to the tasks after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from include.contracts.job.report import JobReport
from include.errors import Outcome

if TYPE_CHECKING:
    from include.control.planning.advice import Advice


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
    """

    model_config = ConfigDict(frozen=True)

    outcome: Outcome
    message: str
    table: str = ""
    batch_seq: int | None = None
    version: int | None = None
    certified_version: int | None = None
    rows: dict[str, int] = Field(default_factory=dict)

    @classmethod
    def of_report(cls, report: JobReport) -> Self:
        """Return the result of a job that ran."""
        counts = {action: count for action, count in report.rows.model_dump().items() if count}
        fields = report.model_dump(include={"outcome", "message", "batch_seq", "version", "certified_version"})
        return cls(**fields, rows=counts)

    @classmethod
    def of_advice(cls, advice: Advice) -> Self:
        """Return the result of a task that had nothing to do."""
        return cls(
            outcome=Outcome.NO_OP,
            message=advice.message,
            batch_seq=advice.batch_seq,
            version=advice.version,
            certified_version=advice.certified_version,
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
