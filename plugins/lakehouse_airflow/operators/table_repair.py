"""Restore an earlier version of a table as a form says: the question is the plan, and only that is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.assets import REPAIRED_TABLE, is_announced, table_asset
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.question import Question, quoted
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator, approved_by, who_asked
from lakehouse_airflow.operators.waiting_task import places
from millrace.contracts.asset_event import event_extra
from millrace.errors import RepairError, SpecError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from millrace.catalog import Catalog
    from millrace.control.ops_tables import OpsTables
    from millrace.repair.restore_plan import RestorePlan
    from millrace.repair.restoring import RestoreRequest


class RepairApprovalOperator(SecondPersonApprovalOperator):
    """Ask whether the table is restored, and show what that would change."""

    ui_color = "#d5d8e8"

    def question(self, context: Context) -> Question:
        """Return what a person must know to decide.

        Raises:
            AirflowFailException: the table cannot be restored so; the message says what would help.
        """
        try:
            asked, catalog, ops = _asked(context)
            return _question(context, asked.plan(catalog, ops))
        except (SpecError, RepairError) as error:
            raise AirflowFailException(str(error)) from None


class TableRepairOperator(BaseOperator):
    """Restore the table as approved, and announce the version that readers use from then on."""

    ui_color = "#d5d8e8"

    def execute(self, context: Context) -> dict[str, Any]:
        """Restore it; a try that was interrupted goes on.

        Raises:
            AirflowFailException: nobody approved this, or the restore would do something else by now.
        """
        with leave_failure(self, context):
            return self._restore(context)

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
        if not is_announced(context, table_asset(table), winner.version):
            context["outlet_events"][REPAIRED_TABLE].add(table_asset(table), extra=extra)
        return extra


def _asked(context: Context) -> tuple[RestoreRequest, Catalog, OpsTables]:
    from millrace.catalog import load_catalog
    from millrace.control.ops_tables import OpsTables
    from millrace.repair.restoring import asked_restore

    settings, form = prepare_process(), context["params"]
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


def _asked_by(context: Context) -> str:
    return who_asked(context) or "the trigger of this run"
