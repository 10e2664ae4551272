"""The form of the quarantine: read it, and carry out what needs no Spark: discard rows, reopen them, give up a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException
from pydantic import TypeAdapter, ValidationError

from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.operators.second_person import who_asked
from millrace.contracts.counted import counted
from millrace.contracts.job.column_fix import ColumnFix
from millrace.contracts.job.requests import FormAction, QuarantineRequest, RowFilter
from millrace.contracts.row_status import PENDING, RowStatus

if TYPE_CHECKING:
    from airflow.sdk import Context

    from millrace.control.quarantine.stored_rows import QuarantinedRow


def decide_rows(
    action: FormAction, table: str, rows: Sequence[QuarantinedRow], request: QuarantineRequest, context: Context
) -> str:
    """Record that rows are discarded or reopened, unless it is a dry run; return a line with their number.

    Raises:
        AirflowFailException: a row that the form names does not have the status that the action needs.
    """
    # Imported here: parsing a DAG file must not load the Delta reader.
    from millrace.control.quarantine.decisions import record_decision
    from millrace.control.quarantine.events import Decision, RowEvent

    event = RowEvent.DISCARDED if action is FormAction.DISCARD else RowEvent.REOPENED
    if others := sorted(set(request.rows.ids) - {row.id for row in rows}):
        needed = " or ".join(request.rows.statuses)
        raise AirflowFailException(f"{', '.join(others)} cannot be {event}: only a row that is {needed} can.")
    number = counted(len(rows), "row")
    if context["params"]["dry_run"]:
        return f"{number} of {table} would be {event}"
    decision = Decision(request.said_by, request.why, context["dag_run"].run_id)
    record_decision(event, table, rows, decision, prepare_process().paths)
    return f"{number} of {table} {event}"


def give_up_file(table: str, context: Context) -> str:
    """Record that the landing file of the form is given up, unless it is a dry run; return a line about it.

    Raises:
        AirflowFailException: the form names no file that could not be loaded, or gives no reason.
    """
    from millrace.control.landing.file_states import file_states, give_up
    from millrace.control.ledger.ledger import Ledger
    from millrace.control.ledger.resolution import table_id
    from millrace.control.log.stored_tables import is_table
    from millrace.errors import BadInputError

    form, paths = context["params"], prepare_process().paths
    path, why = str(form["file"] or "").strip(), str(form["why"] or "")
    require_why(why)
    target = table_id(paths.table(table)) if is_table(paths.table(table)) else ""
    ledger = Ledger(paths)
    file = next(iter(file_states(ledger, table, target, paths=[path])), None) if path else None
    if file is None:
        raise AirflowFailException(f"{table} has no landing file {path!r}. Its tab Files shows their paths.")
    if form["dry_run"]:
        return f"{path} of {table} would be given up; it is {file.status} now"
    try:
        give_up(table, target, file, asked_by(context), why, ledger)
    except BadInputError as error:
        raise AirflowFailException(str(error)) from None
    return f"{path} of {table} given up"


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
