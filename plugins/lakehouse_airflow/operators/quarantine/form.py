"""Read the form of a quarantine replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException
from pydantic import TypeAdapter, ValidationError

from lakehouse_airflow.operators.second_person import who_asked
from millrace.contracts.job.column_fix import ColumnFix
from millrace.contracts.job.requests import FormAction, QuarantineRequest, RowFilter
from millrace.contracts.row_status import PENDING, RowStatus

if TYPE_CHECKING:
    from airflow.sdk import Context

_TITLES = {"value": "Value", "by": "Replaced by", "values": "Map of values"}
"""Argument of a fix -> the title of its field in the form."""


def read_request(context: Context) -> QuarantineRequest:
    """Return the request of the form.

    Raises:
        AirflowFailException: it does not say which rows, or gives only a part of a fix.
    """
    form, action = context["params"], action_of(context)
    ids, reason = tuple(str(form["ids"] or "").replace(",", " ").split()), str(form["reason"] or "")
    if not (ids or reason or form["all_rows"]):
        raise AirflowFailException("Which rows? Fill in Ids or Reason, or tick All rows; then trigger this again.")
    fixes, why = _fixes_of(form), str(form["why"] or "")
    if fixes and action is not FormAction.REPLAY:
        raise AirflowFailException(f"To {action} no column is fixed. Empty these fields; then trigger this again.")
    if action is FormAction.DISCARD:
        require_why(why)
    statuses = (RowStatus.DISCARDED,) if action is FormAction.REOPEN else PENDING
    rows = RowFilter(ids=ids, reason=reason, statuses=statuses)
    return QuarantineRequest(rows=rows, fixes=fixes, said_by=asked_by(context), why=why)


def action_of(context: Context) -> FormAction:
    """Return what the form asks for."""
    return FormAction(context["params"]["action"])


def asked_by(context: Context) -> str:
    """Return the person who triggered the run, for the history; the DAG if no person did."""
    return str(who_asked(context) or f"DAG {context['dag_run'].dag_id}")


def require_why(why: str) -> None:
    """Check that the form gives a reason.

    Raises:
        AirflowFailException: it gives none.
    """
    if not why.strip():
        raise AirflowFailException("Why? Fill in the reason, which is kept for others; then trigger this again.")


def _fixes_of(form: Mapping[str, Any]) -> dict[str, ColumnFix]:
    """Return the column that the form fixes, if any, with its fix."""
    column, how = str(form["set_column"] or "").strip(), form["set_how"]
    arguments = {
        key: form[f"set_{key}"] for key in ("value", "by", "values") if form[f"set_{key}"] not in (None, {}, "")
    }
    if not column and not how and not arguments:
        return {}
    if not column or not how:
        raise AirflowFailException("To fix a column, fill in both fields: Fix column, and How.")
    try:
        return {column: TypeAdapter(ColumnFix).validate_python({"how": how, **arguments})}
    except ValidationError as error:
        first = error.errors()[0]
        field = _TITLES.get(str(first["loc"][-1]), "How") if first["loc"] else "How"
        if first["type"] == "missing":
            or_null = ", or choose set to null" if how == "set" else ""
            message = f"How: {how} needs the field {field}. Fill it in{or_null}"
        else:
            message = f"How: {how} does not accept the value of {field} ({first['msg']}). Correct it"
        raise AirflowFailException(f"{message}; then trigger this again.") from None
