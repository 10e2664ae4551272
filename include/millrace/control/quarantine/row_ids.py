"""The ids of quarantined rows, of which a person may write the beginning."""

from __future__ import annotations

from millrace.control.log.table_queries import text_literals
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.errors import UnknownNameError
from millrace.paths import LakehousePaths
from millrace.specs.problem import closest_word


def whole_id(table: str, prefix: str, paths: LakehousePaths) -> str:
    """Return the id of the only row of the table in quarantine whose id begins with `prefix`, or is equal to it.

    Raises:
        UnknownNameError: there is no such row, or there are several.
    """
    ids = _ids_with_prefix(table, prefix, paths)
    if len(ids) == 1 or prefix in ids:
        return ids[0] if len(ids) == 1 else prefix
    if ids:
        raise UnknownNameError(f"{prefix!r} is the beginning of {len(ids)} ids of {table}", "Write more of it.")
    hint = closest_word(prefix, _ids_with_prefix(table, "", paths))
    raise UnknownNameError(
        f"{table} has no row {prefix!r} in quarantine",
        f"`lakehouse quarantine show {table}` lists them. {hint}".rstrip(),
    )


def _ids_with_prefix(table: str, prefix: str, paths: LakehousePaths) -> list[str]:
    rows = StoredRows(table, paths).select("row_id", f"starts_with(row_id, {text_literals([prefix])})")
    return sorted({row["row_id"] for row in rows})
