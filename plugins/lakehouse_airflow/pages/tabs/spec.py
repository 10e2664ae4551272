"""The tab Spec: what did its owner write, is it right, and does the table fit it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import HTTPException
from starlette import status

from lakehouse_airflow.pages.tab import ShownTable, Tab
from millrace.control.changes.table_diff import changes_since
from millrace.control.log.batch import Winner
from millrace.control.ops_tables import OpsTables
from millrace.overview.tables.table_overview import TableOverview
from millrace.specs.files import spec_bytes
from millrace.specs.invalid_spec import InvalidSpec


def _values(shown: ShownTable) -> Mapping[str, Any]:
    table, catalog = shown.overview.table, shown.reader.catalog()
    problems = catalog.invalid[table].problems if table in catalog.invalid else ()
    file = problems[0].file if problems else catalog.files.get(table)
    try:
        text = spec_bytes(file).decode(errors="replace") if file else None
    except FileNotFoundError:
        text = None
    except OSError as error:
        text = f"# {error.strerror}"
    if file is None or text is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"the spec of {table} was removed just now")
    with shown.reader.ledger() as ops:
        changes = changes_of(shown.overview, ops)
    return {"problems": problems, "file": file.name, "text": text, "changes": changes}


def changes_of(table: TableOverview, ops: OpsTables) -> tuple[str, ...]:
    """Return how the table differs from its spec since its last batch."""
    end = table.streams.newest if table.streams else None
    if end is None or isinstance(table.spec, InvalidSpec):
        return ()
    return changes_since(table.spec, Winner(end.intent, end.version), ops).lines()


TAB = Tab("spec", "Spec", _values)
