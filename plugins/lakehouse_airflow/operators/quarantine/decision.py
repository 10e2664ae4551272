"""The actions of the quarantine's form that start no Spark: discard rows, reopen them, give up a landing file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.operators.quarantine.form import asked_by, require_why
from millrace.contracts.counted import counted
from millrace.contracts.job.requests import FormAction, QuarantineRequest

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
    from millrace.control.landing.file_states import file_states
    from millrace.control.landing.giving_up import give_up
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
