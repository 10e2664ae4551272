"""The tab Spec: what did its owner write, is it right, and does the table fit it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.control.changes.table_diff import changes_since
from include.control.log.batch import Stream, Winner
from include.control.ops_tables import OpsTables
from include.overview.table_overview import TableOverview
from include.specs.invalid_spec import InvalidSpec
from lakehouse_airflow.pages.tab import ShownTable, Tab


def _values(shown: ShownTable) -> Mapping[str, Any]:
    spec, catalog = shown.overview.spec, shown.reader.catalog()
    problems = spec.problems if isinstance(spec, InvalidSpec) else ()
    file = problems[0].file if problems else catalog.files[spec.table]
    with shown.reader.ledger() as ops:
        changes = _changes(shown.overview, ops)
    return {
        "problems": problems,
        "file": file.name,
        "text": file.read_text(encoding="utf-8", errors="replace"),
        "changes": changes,
    }


def _changes(table: TableOverview, ops: OpsTables) -> tuple[str, ...]:
    """Return how the table differs from its spec since its last batch."""
    end = table.streams.ends.get(Stream(table.table).name) if table.streams else None
    if end is None or isinstance(table.spec, InvalidSpec):
        return ()
    return changes_since(table.spec, Winner(end.intent, end.version), ops).lines()


TAB = Tab("spec", "Spec", _values)
