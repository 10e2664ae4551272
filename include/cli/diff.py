"""`lakehouse diff`: show how tables differ from their specs, and the effects."""

from __future__ import annotations

from collections.abc import Sequence

from include.cli.catalog import command_catalog
from include.cli.output import show, show_problem
from include.contracts.counted import counted
from include.control.changes.table_diff import table_diff
from include.control.ops_tables import OpsTables
from include.control.planning.planner import stream_position
from include.errors import ExitCode, MillraceError
from include.settings import Settings


def show_diffs(tables: Sequence[str], settings: Settings) -> ExitCode:
    """Show how the named tables, or all tables, differ from their specs, and which of them are being rebuilt.

    A table that cannot be read does not stop the others; its error decides the exit code.

    Raises:
        SpecError: the spec of a table that was named is wrong, or there is no such table.
    """
    catalog, ops = command_catalog(settings.tables), OpsTables(settings.paths)
    specs = [catalog.spec(table) for table in tables] or list(catalog.specs.values())
    unchanged, code = [], ExitCode.OK
    for spec in specs:
        try:
            position = stream_position(spec, ops.paths, ops.ledger)
            lines = table_diff(spec, position.last if position else None, ops).lines()
        except MillraceError as error:
            show_problem(str(error))
            code = error.exit_code
            continue
        show(*lines)
        unchanged += [] if lines else [spec.table]
    if unchanged:
        show(f"{unchanged[0] if len(unchanged) == 1 else counted(len(unchanged), 'table')}: as the spec says")
    for rebuild in ops.rebuilds.active(catalog.specs):
        names = ", ".join(rebuild.tables)
        show(f"{names}: a rebuild is in progress; `lakehouse rebuild {rebuild.table}` resumes it")
    return code
