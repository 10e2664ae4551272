"""`lakehouse diff`: show how tables differ from their specs, and what follows."""

from __future__ import annotations

from collections.abc import Sequence

from include.cli.catalog import command_catalog
from include.cli.output import console, show
from include.contracts.spec.table_spec import AnySpec
from include.control.changes.table_diff import TableDiff, table_diff
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
            lines = _diff(spec, ops).lines()
        except MillraceError as error:
            console(stderr=True).print(str(error), markup=False, soft_wrap=True)
            code = error.exit_code
            continue
        show(*lines)
        unchanged += [] if lines else [spec.table]
    if unchanged:
        show(f"{unchanged[0] if len(unchanged) == 1 else f'{len(unchanged)} tables'}: as the spec says")
    for rebuild in ops.rebuilds.active(catalog.specs):
        show(
            f"{', '.join(rebuild.tables)}: a rebuild is under way; `lakehouse rebuild {rebuild.table}` goes on with it"
        )
    return code


def _diff(spec: AnySpec, ops: OpsTables) -> TableDiff:
    position = stream_position(spec, ops.paths, ops.ledger)
    return table_diff(spec, position.last if position else None, ops)
