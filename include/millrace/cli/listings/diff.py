"""`lakehouse diff`: show how tables differ from their specs, and the effects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.text import Text

from millrace.cli.catalog import command_catalog
from millrace.cli.listings.as_json import show_listing
from millrace.cli.output import show_problem
from millrace.cli.progress import in_progress
from millrace.contracts.counted import counted
from millrace.control.changes.table_diff import TableDiff, table_diff
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.stream_positions import stream_position
from millrace.errors import ExitCode, MillraceError
from millrace.reading.odd_values import odd_values
from millrace.settings import Settings


def show_diffs(tables: Sequence[str], settings: Settings, *, as_json: bool) -> ExitCode:
    """Show how the named tables, or all tables, differ from their specs, and which of them are being rebuilt.

    A table that cannot be read does not stop the others; its error decides the exit code.

    Raises:
        SpecError: the spec of a table that was named is wrong, or there is no such table.
    """
    catalog, ops = command_catalog(settings.tables), OpsTables(settings.paths)
    specs = [catalog.spec(table) for table in tables] or list(catalog.specs.values())
    rebuilds = [
        f"{', '.join(rebuild.tables)}: a rebuild is in progress; `lakehouse rebuild {rebuild.table}` resumes it"
        for rebuild in ops.rebuilds.active(catalog.specs)
    ]
    diffs, unwritten, problems = list[TableDiff](), list[str](), list[MillraceError]()
    for spec in in_progress(specs, "comparing the tables with their specs"):
        try:
            position = stream_position(spec, ops.paths, ops.ledger)
            diff = table_diff(spec, position.last if position else None, ops)
            if diff.may_have_other_values and (odd := odd_values(ops.paths.table(spec.table), spec.converted_columns)):
                diff = diff.with_remark(", ".join(odd))
            diffs.append(diff)
            if position is None or position.last is None:
                unwritten.append(spec.table)
        except MillraceError as error:
            problems.append(error)
    for problem in problems:
        show_problem(str(problem))
    show_listing(diffs, lambda: Group(*_lines(diffs, unwritten)), *rebuilds, as_json=as_json)
    return problems[-1].exit_code if problems else ExitCode.OK


def _lines(diffs: Sequence[TableDiff], unwritten: Sequence[str]) -> Iterator[Text]:
    for diff in diffs:
        yield from map(Text, diff.lines())
    unchanged = [diff.table for diff in diffs if not diff.lines() and diff.table not in unwritten]
    for tables, state in ((unchanged, "as the spec says"), (unwritten, "not written yet")):
        if tables:
            yield Text(f"{tables[0] if len(tables) == 1 else counted(len(tables), 'table')}: {state}")
