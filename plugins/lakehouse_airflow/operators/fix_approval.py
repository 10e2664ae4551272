"""Ask a second person whether quarantined rows may be changed as the form says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakehouse_airflow.operators.quarantine_form import read_request
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class FixApprovalOperator(SecondPersonApprovalOperator):
    """Ask whether the form's change of values may be replayed; ask nobody if it changes or writes nothing."""

    ui_color = "#e8d5e0"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(subject="Change quarantined rows?", **kwargs)

    def execute(self, context: Context) -> Any:
        """Ask, or go on at once.

        Raises:
            AirflowFailException: the form does not say which rows, or how to fix them.
        """
        form, request = context["params"], read_request(context)
        if form["dry_run"] or not request.has_fixes:
            self.log.info("No value is changed: nobody is asked.")
            return None
        table, rows = form["table"], ", ".join(request.rows.ids) or request.rows.reason or "all that wait"
        self.subject = f"Change quarantined rows of {table}, and replay them?"
        self.body = (
            f"**{request.said_by}** asks for: `{request.how}`\n\nRows: `{rows}`\n\n"
            f"Why: {request.why or 'no reason given'}\n\n"
            "**Approve**: the rows are changed, and go through the rules of their table; both names stay with them. "
            "**Reject**: they stay as they are. A dry run of the same form says what would become of them."
        )
        return super().execute(context)
