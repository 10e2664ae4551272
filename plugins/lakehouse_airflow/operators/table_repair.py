"""Repair a table as a form says: restore a version, delete rows or replace them, as the plan in the question says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.assets import REPAIRED_TABLE, is_announced, table_asset
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.intervals import label_interval, run_dates
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.question import Question, quoted
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator, approved_by, who_asked
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.operators.waiting_task import places
from millrace.contracts.asset_event import event_extra
from millrace.contracts.job.args import Job
from millrace.contracts.job.requests import RepairRequest
from millrace.errors import RepairError, SpecError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from millrace.catalog import Catalog
    from millrace.contracts.job.report import JobReport
    from millrace.control.ops_tables import OpsTables
    from millrace.repair.restore_plan import RestorePlan
    from millrace.repair.restoring import RestoreRequest


RESTORE, DELETE, REPLACE = "restore", "delete", "replace"
"""The actions of the form."""

DRY_RUN = "dry_run"
_DONE = {DELETE: "rows deleted", REPLACE: "rows replaced"}


class RepairApprovalOperator(SecondPersonApprovalOperator):
    """Ask whether the table is repaired, and show what that would change."""

    ui_color = "#d5d8e8"

    def question(self, context: Context) -> Question:
        """Return what a person must know to decide.

        Raises:
            AirflowFailException: the table cannot be restored so; the message says what would help.
        """
        if context["params"]["action"] != RESTORE:
            return _question_of_rows(context)
        try:
            asked, catalog, ops = _asked(context)
            return _question(context, asked.plan(catalog, ops))
        except (SpecError, RepairError) as error:
            raise AirflowFailException(str(error)) from None


class TableRepairOperator(SparkJobOperator):
    """Repair the table as approved, and announce the version that readers use from then on; or report the plan.

    Only deletions and replacements run Spark. The parameters are those of `SparkJobOperator`, without table.

    :param is_dry_run: whether only to report the plan, for which nobody need have approved anything.
    """

    ui_color = "#d5d8e8"
    job = Job.TABLE_REPAIR

    def __init__(self, *, is_dry_run: bool = False, **kwargs: Any) -> None:
        super().__init__(table="{{ params.table }}", **kwargs)
        self.is_dry_run = is_dry_run

    def execute(self, context: Context) -> Any:
        """Repair it; a try that was interrupted goes on. A dry run returns the plan of a deletion or a replacement.

        Raises:
            AirflowFailException: nobody approved this, or the repair would do something else by now.
            AirflowFailException, MillraceError, AirflowException: as `run_job_or_raise`.
        """
        with leave_failure(self, context):
            if context["params"]["action"] != RESTORE:
                return self._plan_rows(context) if self.is_dry_run else self._repair_rows(context)
            return None if self.is_dry_run else self._restore(context)

    def _plan_rows(self, context: Context) -> dict[str, Any]:
        from millrace.repair.row_repair import key_lines

        report = self._run(context, "", _asked_by(context))
        keys = key_lines(report.details["found"]["samples"]) if prepare_process().questions_have_values else ()
        return {"id": report.details["id"], "plan": "\n".join((report.message, *keys))}

    def _repair_rows(self, context: Context) -> dict[str, Any]:
        table, action = context["params"]["table"], context["params"]["action"]
        who = f"{_asked_by(context)}, approved by {approved_by(context, _question_of_rows(context))}"
        report = self._run(context, _plan_of_rows(context)["id"], who)
        self.log.info("%s", report.message)
        facts = {"batch_seq": report.batch_seq, "run_id": context["run_id"]}
        extra = event_extra(table, report.version, _DONE[action], None, **facts)
        self._announce(context, table, report.version, extra)
        return extra

    def _run(self, context: Context, plan: str, said_by: str) -> JobReport:
        form, interval = context["params"], label_interval(run_dates(context), datetime.now(UTC))
        if not form["where"] or (form["action"] == REPLACE) != bool(form["source"]):
            raise AirflowFailException(
                f"{form['table']}: the form does not say what to {form['action']}\n"
                "A deletion needs the field Where; a replacement also the field From; a deletion not."
            )
        request = RepairRequest(
            where=form["where"], source=form["source"] or "", plan=plan, said_by=said_by, why=str(form["why"])
        )
        return self.run_job_or_raise(context, interval, dry_run=not plan, request=request)

    @staticmethod
    def _announce(context: Context, table: str, version: int | None, extra: dict[str, Any]) -> None:
        if not is_announced(context, table_asset(table), version):
            context["outlet_events"][REPAIRED_TABLE].add(table_asset(table), extra=extra)

    def _restore(self, context: Context) -> dict[str, Any]:
        # Imported here: parsing a DAG file must not load the Delta reader.
        from millrace.control.leases.store import lakehouse_leases
        from millrace.control.log.batch import Repair

        try:
            asked, catalog, ops = _asked(context)
            table, run_id = asked.spec.table, context["run_id"]
            repair = ops.repairs.of_run(table, run_id)
            if repair is None:
                plan = asked.plan(catalog, ops)
                who = f"{_asked_by(context)}, approved by {approved_by(context, _question(context, plan))}"
                repair = Repair(id=plan.id, said_by=who, why=str(context["params"]["why"]))
            leases = lakehouse_leases(ops.paths, run_id, asked.spec.conflicts.wait_for_lease)
            winner = asked.execute(repair, run_id, catalog, ops, leases)
        except (SpecError, RepairError) as error:
            self.log.error("%s", error)
            raise AirflowFailException(str(error)) from None
        self.log.info("%s: version %s has the rows of version %s", table, winner.version, asked.version)
        facts = {"batch_seq": winner.batch_seq, "run_id": run_id}
        extra = event_extra(table, winner.version, f"restored to version {asked.version}", None, **facts)
        self._announce(context, table, winner.version, extra)
        return extra


def _asked(context: Context) -> tuple[RestoreRequest, Catalog, OpsTables]:
    from millrace.catalog import load_catalog
    from millrace.control.ops_tables import OpsTables
    from millrace.repair.restoring import asked_restore

    settings, form = prepare_process(), context["params"]
    if not form["to"]:
        raise RepairError(f"{form['table']}: the form does not say what to restore", "State the version, or a time.")
    catalog, ops = load_catalog(settings.tables), OpsTables(settings.paths)
    no_reload = bool(form["no_reload"])
    return asked_restore(form["table"], str(form["to"]), catalog, settings.paths, no_reload=no_reload), catalog, ops


def _question(context: Context, plan: RestorePlan) -> Question:
    from millrace.repair.plan_text import plan_lines

    form = context["params"]
    body = (
        quoted("\n".join(plan_lines(plan, has_keys=prepare_process().questions_have_values))),
        f"The plan is {quoted(plan.id)}, the Delta table {quoted(plan.table_id)}",
        f"Why, says {_asked_by(context)}: {quoted(form['why'])}",
        places(plan.table, None),
        "**Approve**: the rows come back, and readers get them. **Reject**: nothing changes.",
    )
    return Question(f"Restore {plan.table} to version {plan.restores}?", "\n\n".join(body))


def _plan_of_rows(context: Context) -> dict[str, Any]:
    """Return what the dry run has reported. It may have been edited since: the job compares the id with its own."""
    return dict(context["ti"].xcom_pull(task_ids=DRY_RUN))


def _question_of_rows(context: Context) -> Question:
    form, plan = context["params"], _plan_of_rows(context)
    body = (
        quoted(plan["plan"]),
        f"The plan is {quoted(plan['id'])}",
        f"Why, says {_asked_by(context)}: {quoted(form['why'])}",
        places(form["table"], None),
        f"**Approve**: {_DONE[form['action']]}, and the gate checks the table. **Reject**: nothing changes.",
    )
    return Question(f"{str(form['action']).capitalize()} rows of {form['table']}?", "\n\n".join(body))


def _asked_by(context: Context) -> str:
    return who_asked(context) or "the trigger of this run"
