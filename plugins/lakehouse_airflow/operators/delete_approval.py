"""Lets the deletes of one batch go through where a person approves them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.paths import LakehousePaths
from lakehouse_airflow.hooks.store_access import task_settings
from lakehouse_airflow.operators.second_person import approved_by, who_asked

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.control.ledger.deletes import Deletes


class AskedDeletesOperator(BaseOperator):
    """Find the deletes that the form of the run is about, and what a person must know of them to decide."""

    def execute(self, context: Context) -> dict[str, str]:
        """The `subject` and the `body` of the question.

        Raises:
            AirflowFailException: no run asked for such deletes, or somebody has allowed them.
        """
        asked, form = _asked(context), context["params"]
        by = who_asked(context) or "the trigger of this run"
        return {
            "subject": f"Delete {asked.keys:,} of {asked.of_keys:,} keys of {asked.table}?",
            "body": "\n\n".join(
                (
                    asked.summary,
                    f"They are deleted by the batch that reads {asked.source} up to version {asked.source_version}, "
                    f"for the interval from {asked.interval_start:%Y-%m-%d %H:%M}; more keys would be asked for again.",
                    f"Why they may go, says {by}: **{form['reason']}**",
                    "**Approve**: then clear the task that stopped, with what follows it. **Reject**: everything stays "
                    "as it is; have the source deliver again.",
                )
            ),
        }


class AllowDeletesOperator(BaseOperator):
    """Write down that the deletes of the form are allowed, in the name of the person who approved them.

    :param approval_task_id: the task in which they did.
    """

    ui_color = "#e8d5e0"

    def __init__(self, *, approval_task_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.approval_task_id = approval_task_id

    def execute(self, context: Context) -> None:
        """Record it in `ops.deletes`.

        Raises:
            AirflowFailException: nobody approved it, or nobody asks for such deletes any more.
        """
        from include.control.ledger.deletes import DeleteRecords

        who = approved_by(context, self.approval_task_id)
        asked, reason = _asked(context), context["params"]["reason"]
        records = DeleteRecords(LakehousePaths(task_settings().root))
        records.record_allowed(asked, said_by=who, reason=reason, run_id=context["run_id"])
        self.log.info("%s Allowed by %s. Clear the task that stopped, with what follows it.", asked.summary, who)


def _asked(context: Context) -> Deletes:
    """The deletes that the form is about."""
    # Imported here: parsing a DAG file must not load the Delta reader.
    from include.control.ledger.deletes import DeleteRecords

    form = context["params"]
    waiting = DeleteRecords(LakehousePaths(task_settings().root)).asked(form["table"])
    found = [one for one in waiting if one.source_version == form["version"]]
    if found:
        return found[-1]
    others = ", ".join(str(one.source_version) for one in waiting)
    raise AirflowFailException(
        f"{form['table']}: no run asks to delete anything at source version {form['version']}.\n"
        + (f"Runs ask at version {others}." if others else "The log of the task that stopped names the version.")
    )
