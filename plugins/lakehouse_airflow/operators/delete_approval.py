"""Allow the deletes of one batch if a person approves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.contracts.counted import counted
from include.contracts.time_format import MINUTE
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.operators.second_person import approved_by, who_asked
from lakehouse_airflow.operators.waiting_task import places, waiting_task, what_follows

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.control.ledger.deletes import Deletes


class AskedDeletesOperator(BaseOperator):
    """Find the deletes that the form names, and return what a person must know to decide about them."""

    def execute(self, context: Context) -> dict[str, str]:
        """Return the `subject` and the `body` of the question.

        Raises:
            AirflowFailException: no run asked for such deletes, or a person has already allowed them.
        """
        deletes, form = _requested_deletes(context), context["params"]
        by, waiting = who_asked(context) or "the trigger of this run", waiting_task(context)
        return {
            "subject": f"Delete {deletes.keys:,} of {counted(deletes.of_keys, 'key')} of {deletes.table}?",
            "body": "\n\n".join(
                (
                    deletes.summary,
                    f"The batch that reads {deletes.source} up to version {deletes.source_version}, for the interval "
                    f"from {deletes.interval_start:{MINUTE}}, deletes them; more keys need another approval.",
                    f"Why they may be deleted, says {by}: **{form['reason']}**",
                    places(deletes.table, waiting),
                    f"**Approve**: the keys may be deleted. {what_follows(waiting)} **Reject**: nothing changes; have "
                    "the source deliver again.",
                )
            ),
        }


class AllowDeletesOperator(BaseOperator):
    """Record that the deletes of the form are allowed, in the name of the person who approved them."""

    ui_color = "#e8d5e0"

    def execute(self, context: Context) -> None:
        """Record the approval in `ops.deletes`.

        Raises:
            AirflowFailException: nobody approved them, or no run asks for such deletes any more.
        """
        from include.control.ledger.deletes import DeleteRecords

        who = approved_by(context)
        deletes, reason = _requested_deletes(context), context["params"]["reason"]
        records = DeleteRecords(prepare_process().paths)
        records.record_allowed(deletes, said_by=who, reason=reason, run_id=context["run_id"])
        self.log.info("%s Allowed by %s. %s", deletes.summary, who, what_follows(waiting_task(context)))


def _requested_deletes(context: Context) -> Deletes:
    """Return the deletes that the form names."""
    # Imported here: parsing a DAG file must not load the Delta reader.
    from include.control.ledger.deletes import DeleteRecords

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
