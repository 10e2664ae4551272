"""Allow the deletes of one batch if a person approves them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.question import Question, quoted
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator, approved_by, who_asked
from lakehouse_airflow.operators.waiting_task import places, waiting_task, what_follows
from millrace.contracts.counted import counted
from millrace.contracts.time_format import MINUTE

if TYPE_CHECKING:
    from airflow.sdk import Context

    from millrace.control.ledger.deletes import Deletes


class DeleteApprovalOperator(SecondPersonApprovalOperator):
    """Ask whether the deletes that the form names are allowed."""

    ui_color = "#e8d5e0"

    def question(self, context: Context) -> Question:
        """Return what a person must know to decide.

        Raises:
            AirflowFailException: no run asked for such deletes, or a person has already allowed them.
        """
        return _question(context, _requested_deletes(context))


class AllowDeletesOperator(BaseOperator):
    """Record that the deletes of the form are allowed, in the name of the person who approved them."""

    ui_color = "#e8d5e0"

    def execute(self, context: Context) -> None:
        """Record the approval in `ops.deletes`.

        Raises:
            AirflowFailException: nobody approved them, or no run asks for such deletes any more.
        """
        with leave_failure(self, context):
            self._allow(context)

    def _allow(self, context: Context) -> None:
        from millrace.control.ledger.deletes import DeleteRecords

        deletes, reason = _requested_deletes(context), context["params"]["reason"]
        who = approved_by(context, _question(context, deletes))
        records = DeleteRecords(prepare_process().paths)
        records.record_allowed(deletes, said_by=who, reason=reason, run_id=context["run_id"])
        self.log.info("%s Allowed by %s. %s", deletes.summary, who, what_follows(waiting_task(context)))


def _question(context: Context, deletes: Deletes) -> Question:
    by, waiting = who_asked(context) or "the trigger of this run", waiting_task(context)
    body = (
        quoted(deletes.summary if prepare_process().questions_have_values else replace(deletes, samples=()).summary),
        f"The batch that reads {deletes.source} up to version {deletes.source_version}, for the interval "
        f"from {deletes.interval_start:{MINUTE}}, deletes them; more keys need another approval.",
        f"Why they may be deleted, says {by}: {quoted(context['params']['reason'])}",
        f"The Delta tables are {quoted(f'{deletes.table_id}, read from {deletes.source_id}')}",
        places(deletes.table, waiting),
        f"**Approve**: the keys may be deleted. {what_follows(waiting)} **Reject**: nothing changes; have the source "
        "deliver again.",
    )
    subject = f"Delete {deletes.keys:,} of {counted(deletes.of_keys, 'key')} of {deletes.table}?"
    return Question(subject, "\n\n".join(body))


def _requested_deletes(context: Context) -> Deletes:
    """Return the deletes that the form names."""
    # Imported here: parsing a DAG file must not load the Delta reader.
    from millrace.control.ledger.deletes import DeleteRecords

    form = context["params"]
    waiting = DeleteRecords(prepare_process().paths).pending_deletes(form["table"])
    matches = [request for request in waiting if request.source_version == form["version"]]
    if matches:
        return matches[-1]
    others = ", ".join(str(request.source_version) for request in waiting)
    raise AirflowFailException(
        f"{form['table']}: no run asks to delete anything at source version {form['version']}.\n"
        + (f"Runs ask at version {others}." if others else "The log of the stopped task names the version.")
    )
