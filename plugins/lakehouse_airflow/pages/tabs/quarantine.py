"""The tab Quarantine: why do rows wait, for how long, and what can be done about each?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from lakehouse_airflow.pages.tab import ShownTable, Tab
from lakehouse_airflow.ui.links import quarantine_form_path as form
from millrace.contracts.job.column_fix import SetNull
from millrace.contracts.job.findings import MALFORMED
from millrace.contracts.job.requests import FormAction, RowFilter
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.contracts.spec.table_spec import BronzeSpec, SilverSpec
from millrace.control.quarantine.events import RowEvent
from millrace.control.quarantine.fixable_columns import UNPARSED, FixableColumns, fixable_columns, with_nulls
from millrace.control.quarantine.rescued import rescued_of
from millrace.control.quarantine.rows import count_rows, newest_rows, refusals
from millrace.control.quarantine.stored_rows import QuarantinedRow, StoredRows
from millrace.control.quarantine.waits import Wait, wait_of
from millrace.overview.lineage.restricted import Restrictions
from millrace.overview.quarantine import RowHistory, ShownRows, row_history, waiting_rows
from millrace.overview.tables.table_overview import TableOverview

_ROWS = 25
_WAITING = "waiting"
_STATUSES = {_WAITING: PENDING} | {status.value: (status,) for status in RowStatus}
"""The choices of the filter -> the statuses that they mean."""


def _values(shown: ShownTable) -> Mapping[str, Any]:
    table, spec = shown.overview.table, shown.overview.spec
    if not isinstance(spec, BronzeSpec | SilverSpec):
        return {}
    with shown.reader.ledger() as ops:
        rows = StoredRows(table, ops.paths, ops.quarantine)
        waiting = waiting_rows(spec, rows, shown.now)
        values = {
            "answer": waiting.answer,
            "reasons": [
                (
                    refusal,
                    "" if refusal.reason.startswith(MALFORMED) else form(table, reason=refusal.reason),
                    form(table, FormAction.DISCARD, reason=refusal.reason),
                )
                for refusal in waiting.reasons
            ],
        }
        if not shown.may_see_rows:
            return values
        restrictions = Restrictions(shown.reader.catalog().specs)
        masked = ShownRows(restrictions.of(table), restrictions.of_received(spec))
        if row_id := shown.query.get("row", ""):
            found = row_history(rows, row_id)
            history = masked.history(found) if found else None
            columns = fixable_columns(spec, ops.paths)
            of_row = _row_values(table, history, columns) if history else {"row": None}
            listed = [history.row] if history else []
            return {**values, "row_id": row_id, **of_row, "waits": _waits(spec, listed, shown.now)}
        of_list = _list_values(rows, shown.query, masked)
        return {**values, "row_id": "", **of_list, "waits": _waits(spec, of_list["rows"], shown.now)}


def _waits(spec: BronzeSpec | SilverSpec, rows: Iterable[QuarantinedRow], now: datetime) -> dict[str, Wait]:
    """Return id -> what the row waits for, of the rows that need nobody."""
    return {row.id: wait for row in rows if (wait := wait_of(spec, row, now))}


def _list_values(rows: StoredRows, query: Mapping[str, str], masked: ShownRows) -> dict[str, Any]:
    """Return the values for the list of rows, which begins after the row that the address names."""
    reason, status, after = query.get("reason", ""), query.get("status", ""), query.get("after", "")
    wanted = RowFilter(reason=reason, statuses=_STATUSES.get(status, PENDING))
    # Otherwise a search would tell whether a row has a value that is not shown.
    is_empty = masked.hides_values and not any(reason in each.reason for each in refusals(rows, tuple(RowStatus)))
    shown = [] if is_empty else [masked.row(row) for row in newest_rows(rows, wanted, _ROWS + 1, after)]
    return {
        "rows": shown[:_ROWS],
        "rescued": {row.id: fields for row in shown if (fields := rescued_of(row))},
        "count": 0 if is_empty else count_rows(rows, wanted),
        "is_first": not after,
        "next": shown[_ROWS - 1].id if len(shown) > _ROWS else "",
        "query": {"reason": reason, "status": status if status in _STATUSES else _WAITING},
        "statuses": list(_STATUSES),
    }


def _row_values(table: str, history: RowHistory, columns: FixableColumns) -> dict[str, Any]:
    """Return the values for a single row, with a link to the form for each column that can be fixed.

    A record that could not be parsed stays so, whatever is done about one of its columns.
    """
    row = history.row
    waits = row.status in PENDING
    shown = _columns(row.received or row.record, columns if row.received else lambda _: ())
    own = [name for name, _ in shown if not name.startswith("_")]
    is_unparsed = any(name == UNPARSED for name, _ in shown)
    fixable = own if waits and not is_unparsed else ()
    as_read = {"ids": row.id, "set_column": UNPARSED, "set_how": SetNull().how}
    return {
        "row": row,
        "columns": [
            (name, value, form(table, ids=row.id, set_column=name, set_how="set") if name in fixable else "")
            for name, value in shown
        ],
        "is_unparsed": is_unparsed,
        "as_read": form(table, **as_read) if is_unparsed and own else "",
        "events": [
            ("pinned to a replay" if event["event"] == RowEvent.PLANNED else event["event"], event)
            for event in history.events
        ],
        "replay": form(table, ids=row.id) if waits else "",
        "discard": form(table, FormAction.DISCARD, ids=row.id),
        "reopen": form(table, FormAction.REOPEN, ids=row.id),
    }


def _columns(record: str, columns: FixableColumns) -> list[tuple[str, str]]:
    """Return the columns of a row with their values as JSON; none for a text that could not be parsed."""
    try:
        parsed = json.loads(record, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return []
    items = with_nulls(parsed, columns).items() if isinstance(parsed, dict) else ()
    return [(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) for name, value in items]


def _has_quarantine(table: TableOverview) -> bool:
    return isinstance(table.spec, BronzeSpec | SilverSpec)


TAB = Tab("quarantine", "Quarantine", _values, _has_quarantine)
