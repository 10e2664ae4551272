"""Read the form of a quarantine replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException
from pydantic import TypeAdapter, ValidationError

from include.contracts.job.column_fix import ColumnFix
from include.contracts.job.requests import QuarantineRequest, RowFilter
from lakehouse_airflow.operators.second_person import who_asked

if TYPE_CHECKING:
    from airflow.sdk import Context

_TITLES = {"value": "Value", "by": "Replaced by", "values": "Map of values"}
"""Argument of a fix -> the title of its field in the form."""


def read_request(context: Context) -> QuarantineRequest:
    """Return the request of the form.

    Raises:
        AirflowFailException: it does not say which rows, or gives only a part of a fix.
    """
    form = context["params"]
    ids, reason = tuple(str(form["ids"] or "").replace(",", " ").split()), str(form["reason"] or "")
    if not (ids or reason or form["all_rows"]):
        raise AirflowFailException("Which rows? Fill in Ids or Reason, or tick All rows; then trigger this again.")
    run = context["dag_run"]
    return QuarantineRequest(
        rows=RowFilter(ids=ids, reason=reason),
        fixes=_fixes_of(form),
        said_by=str(who_asked(context) or f"DAG {run.dag_id}"),
        why=str(form["why"] or ""),
    )


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
            message = f"How: {how} needs the field {field}. Fill it in"
        else:
            message = f"How: {how} does not accept the value of {field} ({first['msg']}). Correct it"
        raise AirflowFailException(f"{message}; then trigger this again.") from None
