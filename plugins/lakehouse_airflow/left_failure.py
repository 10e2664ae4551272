"""What a failed task leaves for the pages: why it failed. Airflow keeps that in the log of the task alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from lakehouse_airflow.intervals import WrongRunError
from lakehouse_airflow.retries import GOOD
from lakehouse_airflow.ui.links import FAILED_KEY
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import MillraceError, MisfitError, Outcome

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from lakehouse_airflow.operators.gate_decision import GateDecision


@contextmanager
def leave_failure(task: BaseOperator, context: Context) -> Iterator[None]:
    """Leave the error of the block, unless the report of the task's job has left more about it.

    Args:
        task: a task about a table, with the attribute `table`, or the table is in the form of the run; also `report` if
            it runs a job, `decision` if it is a gate.
        context: its context.
    """
    try:
        yield
    except AirflowSkipException:
        raise
    except Exception as error:
        report: JobReport | None = getattr(task, "report", None)
        if report is None or report.outcome in GOOD:
            is_ours = isinstance(error, MillraceError | AirflowException)
            # An error of Airflow that forbids a retry stands for one of ours.
            origin = error if isinstance(error, MillraceError | WrongRunError) else error.__context__
            outcome = origin.outcome if isinstance(origin, MillraceError | WrongRunError) else Outcome.FAILED
            decision: GateDecision | None = getattr(task, "decision", None)
            refused = decision.version if decision and not decision.passed else None
            result = TaskResult(
                outcome=outcome if refused is None else Outcome.GATE_FAILED,
                version=refused,
                message=str(error) if is_ours else f"{type(error).__name__}: {error}",
                table=getattr(task, "table", "") or context["params"].get("table", ""),
                is_misfit=isinstance(origin, MisfitError),
            )
            context["ti"].xcom_push(FAILED_KEY, result.to_xcom())
        raise
