"""The tab Versions: what happened to the table? Its versions, each with its run, rows and certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse_airflow.pages.charts import stacked_bars
from lakehouse_airflow.pages.tab import ShownTable, Tab
from millrace.overview.timeline import timeline

_BATCHES = 30
_FATES = ("applied", "unchanged", "superseded", "quarantined", "dropped")


def _values(shown: ShownTable) -> Mapping[str, Any]:
    table, upto = shown.overview, shown.query.get("upto", "")
    with shown.reader.ledger() as ops:
        newest = int(upto) if upto.isdecimal() and len(upto) < 19 else None
        entries = timeline(table.table, table.table_id, ops, newest, _BATCHES) if table.table_id else []
    batches = [entry.batch for entry in reversed(entries) if entry.batch]
    fates = {name: [getattr(batch.rows, name) for batch in batches] for name in _FATES}
    labels = [f"{batch.version}" for batch in batches]
    return {
        "entries": entries,
        "chart": stacked_bars("What became of the rows that each version read", labels, fates) if batches else "",
        "fates": _FATES,
        "earlier": entries[-1].version - 1 if len(batches) == _BATCHES and entries[-1].version > 0 else None,
        "is_newest": newest is None,
        "runs": shown.existing_runs(batches),
    }


TAB = Tab("versions", "Versions", _values)
