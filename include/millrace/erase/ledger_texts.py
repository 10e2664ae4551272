"""Take the keys of erased subjects out of the ledger: out of refused rows, samples of rules, and words of people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from millrace.control.gates.gates import GATES
from millrace.control.ledger.deletes import DELETES
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.quarantine.events import QUARANTINE
from millrace.erase.search import FileSearch
from millrace.erase.subjects import Subjects
from millrace.paths import LakehousePaths

_TEXTS = {
    "gates": (GATES, ("result", "override_reason")),
    "deletes": (DELETES, ("samples", "why", "reason")),
    "quarantine": (QUARANTINE, ("fix", "reasons", "why")),
}
"""Table of the ledger -> its columns, and those of them that are only shown to people."""

LEDGER_PLACES = tuple(f"ledger: ops.{name}" for name in _TEXTS)
"""What the places of these tables are called."""

_NO_ROW = "{}"

Change = Callable[[Any], Any]


def forget_in_ledger(subjects: Subjects, searches: Mapping[str, FileSearch], paths: LakehousePaths) -> None:
    """Empty the rows of subjects that the ledger keeps of quarantines, and hide their keys in what is shown to people.

    A row of others that mentions one stays as it was refused: the batches that read it again need it.

    Args:
        subjects: the subjects; those with keys of a few digits are only found in fields of rows.
        searches: table -> what searches the rows that it received, of the tables that receive keys.
        paths: the lakehouse.
    """
    named = replace(subjects, values=tuple(value for value in subjects.values if value not in subjects.short))
    for name, (schema, texts) in _TEXTS.items():
        shown: dict[str, Change] = dict.fromkeys(texts, lambda value: _hidden(value, named))
        of_rows = {table: _of_rows(search) for table, search in searches.items()} if name == "quarantine" else {}
        OpsTable.of(paths, name, schema).rewrite(partial(_changed, shown=shown, of_rows=of_rows))


def _of_rows(search: FileSearch) -> dict[str, Change]:
    return {"received": lambda row: _NO_ROW if row and search.is_of_subject(row) else row}


def _changed(
    table: str, rows: pa.Table, shown: dict[str, Change], of_rows: Mapping[str, dict[str, Change]]
) -> pa.Table:
    for name, change in {**shown, **of_rows.get(table, {})}.items():
        at, values = rows.schema.get_field_index(name), rows[name].to_pylist()
        after = [change(value) for value in values]
        if after != values:
            rows = rows.set_column(at, rows.schema.field(at), pa.array(after, rows.schema.field(at).type))
    return rows


def _hidden(value: Any, subjects: Subjects) -> Any:
    """Return a text, or a list of texts, without keys; a JSON document stays one."""
    if isinstance(value, list):
        return [_hidden(each, subjects) for each in value]
    if not isinstance(value, str) or not subjects.values:
        return value
    hidden = subjects.hide(value)
    return value if _is_json(value) and not _is_json(hidden) else hidden


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
