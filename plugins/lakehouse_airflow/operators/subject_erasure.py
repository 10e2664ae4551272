"""Erase people as a form says: the question is the plan, and only that is done."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.assets import REPAIRED_TABLE, table_asset
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.intervals import label_interval, run_dates
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.question import Question, quoted
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator, approved_by, who_asked
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.ui.links import RunLink
from millrace.contracts.asset_event import event_extra
from millrace.contracts.job.args import Job
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import BadInputError, SpecError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from millrace.contracts.job.requests import ErasureRequest
    from millrace.erase.erasing import Erasure
    from millrace.erase.plan import ErasurePlan


class ErasureApprovalOperator(SecondPersonApprovalOperator):
    """Ask whether the subjects of a file are erased, and show what that would do, without a key."""

    ui_color = "#e8d5d5"

    def question(self, context: Context) -> Question:
        """Return what a person must know to decide.

        Raises:
            AirflowFailException: they cannot be erased so; the message says what would help.
        """
        from millrace.erase.plan import require_erasable

        try:
            asked = _asked(context)
            plan = asked.plan()
            require_erasable(plan, asked.catalog, asked.ops)
        except (SpecError, BadInputError) as error:
            raise AirflowFailException(str(error)) from None
        return _question(context, plan)


class SubjectErasureOperator(SparkJobOperator):
    """Erase the subjects as approved; a try that was interrupted goes on.

    The form's fields are Params of the run: `kind`, `request`, `subjects` (a path), `now`, `why`. The parameters are
    those of `SparkJobOperator`, without table.
    """

    ui_color = "#e8d5d5"
    job = Job.SUBJECT_ERASURE
    operator_extra_links = (RunLink(),)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(table="", **kwargs)

    def execute(self, context: Context) -> Any:
        """Erase them, and announce the versions that readers use from then on.

        Raises:
            AirflowFailException: nobody approved this, or it would do something else by now; or something is left that
                only a person can judge.
            AirflowFailException, MillraceError, AirflowException: as `run_job_or_raise`.
        """
        with leave_failure(self, context):
            return self._erase(context)

    def _erase(self, context: Context) -> Any:
        # Imported here: parsing a DAG file must not load the Delta reader.
        from millrace.erase.certificates import Erased

        try:
            asked = _asked(context)
            self.table, run_id = next(iter(asked.tables), ""), context["run_id"]
            begun = asked.ops.erasures.of_run(run_id)
            if begun:
                plan_id, who = begun.id, begun.said_by
            else:
                plan = asked.plan()
                plan_id = plan.id
                who = f"{_asked_by(context)}, approved by {approved_by(context, _question(context, plan))}"

            def erase_rows(request: ErasureRequest) -> None:
                interval = label_interval(run_dates(context), datetime.now(UTC))
                self._announce(context, self.run_job_or_raise(context, interval, request=request).details["tables"])

            left = asked.execute(plan_id, who, str(context["params"]["why"]), run_id, erase_rows)
        except (SpecError, BadInputError) as error:
            self.log.error("%s", error)
            raise AirflowFailException(str(error)) from None
        for place in left.findings.places:
            self.log.info("left: %s, %s: %s rows, %s mentions", place.name, place.part, place.rows, place.mentions)
        for line in left.kept:
            self.log.warning("%s", line)
        if left.state is Erased.STORED:
            raise AirflowFailException(
                f"{asked.request}: the rows are erased, and the log of this task names what is left for a person.\n"
                "See to it, then certify it: lakehouse erase prove."
            )
        return TaskResult.of_report(self.report).to_xcom() if self.report else None

    def _announce(self, context: Context, versions: dict[str, int]) -> None:
        for table, version in versions.items():
            extra = event_extra(table, version, "subjects erased", None, run_id=context["run_id"])
            context["outlet_events"][REPAIRED_TABLE].add(table_asset(table), extra=extra)


def _asked(context: Context) -> Erasure:
    from millrace.catalog import load_catalog
    from millrace.erase.erasing import asked_erasure

    settings, form = prepare_process(), context["params"]
    try:
        content = Path(form["subjects"]).read_bytes()
    except OSError as error:
        raise BadInputError(
            f"the file of subjects cannot be read by this worker: {error.strerror}: {form['subjects']}",
            "Put it where the worker can read it, and nobody else.",
        ) from None
    catalog, now = load_catalog(settings.tables), bool(form["now"])
    return asked_erasure(form["kind"], content, form["request"], catalog, settings, now=now)


def _question(context: Context, plan: ErasurePlan) -> Question:
    from millrace.erase.plan import decision_lines

    form = context["params"]
    body = (
        quoted("\n".join(decision_lines(plan))),
        f"The plan is {quoted(plan.id)}",
        f"Why, says {_asked_by(context)}: {quoted(form['why'])}",
        "**Approve**: they are erased and stay out, and no restore brings them back. **Reject**: nothing changes.",
    )
    return Question(f"Erase the subjects of {plan.request}?", "\n\n".join(body))


def _asked_by(context: Context) -> str:
    return who_asked(context) or "the trigger of this run"
