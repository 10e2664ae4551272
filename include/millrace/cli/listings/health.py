"""`lakehouse health` and `lakehouse maintain --plan`: the state of tables' storage, and what maintenance would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from millrace.catalog import Catalog
from millrace.cli.catalog import command_catalog
from millrace.cli.listings.as_json import show_listing
from millrace.cli.output import show_problem
from millrace.cli.progress import in_progress
from millrace.cli.selection import Selection
from millrace.cli.views import MISSING, count, new_table, size
from millrace.contracts.counted import counted
from millrace.contracts.time_format import MINUTE
from millrace.control.maintenance.health import StorageState, TableHealth
from millrace.control.maintenance.log_files import LogHealth
from millrace.control.maintenance.old_files import OldFiles
from millrace.control.maintenance.plan import PlannedTable, planned_table
from millrace.control.maintenance.retention import length_of
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.dropped import dropped_tables
from millrace.control.repair.interrupted import interrupted_repairs
from millrace.errors import ExitCode, MillraceError
from millrace.settings import Settings
from millrace.specs.invalid_spec import InvalidSpec, MaybeInvalidSpec

_COLOURS = {StorageState.HELD_BACK: "yellow", StorageState.NEEDS_PERSON: "red"}


@dataclass(frozen=True)
class Measured:
    """The tables that a command has measured.

    Attributes:
        at: when.
        tables: those that exist.
        unbuilt: the names of those that were never written.
        code: OK, or the exit code of an error of a table, which was shown.
    """

    at: datetime
    tables: Sequence[PlannedTable]
    unbuilt: Sequence[str]
    code: ExitCode

    @property
    def remarks(self) -> list[str]:
        """A line for each table that does not exist."""
        return [f"{table}: not built yet" for table in self.unbuilt]


def show_health(tables: Sequence[str], settings: Settings, *, as_json: bool) -> ExitCode:
    """Show the health of the named tables, or of all; of a single one with all that was measured.

    Raises:
        SpecError: the spec of a table that was named is wrong, or there is no such table.
    """
    catalog = command_catalog(settings.tables)
    specs = [catalog.spec(table) for table in tables] or list(catalog.specs.values())
    measured = measure_tables(catalog, specs, settings)
    view = _details if len(tables) == 1 else _overview
    interrupted = interrupted_repairs([spec.table for spec in specs], OpsTables(settings.paths))
    dropped = (each.words for each in dropped_tables(settings.paths) if not tables or each.record.table in tables)
    remarks = (*measured.remarks, *interrupted, *dropped)
    show_listing(map(_as_json, measured.tables), lambda: view(measured.tables), *remarks, as_json=as_json)
    return measured.code


def show_plan(selection: Selection, settings: Settings, *, as_json: bool) -> ExitCode:
    """Show what maintenance would do with the selected tables; nothing is written, no Spark is started."""
    measured = measure_tables(selection.catalog, selection.specs, settings)
    actions = [action for table in measured.tables for action in table.actions]
    held = [f"{each.table}: {each.storage}: {each.reason}" for each in measured.tables if each.storage in _COLOURS]
    show_listing(actions, lambda: _plan(measured.tables), *held, *measured.remarks, as_json=as_json)
    return measured.code


def measure_tables(catalog: Catalog, specs: Sequence[MaybeInvalidSpec], settings: Settings) -> Measured:
    """Measure tables, and show the errors of those that cannot be measured, which do not stop the others."""
    ops, now, by_name = OpsTables(settings.paths), datetime.now(UTC), {spec.table: spec for spec in specs}
    measured, problems = dict[str, PlannedTable | None](), dict[str, tuple[str, ExitCode]]()
    # The tables of its readers are opened as well, and `newest_table` keeps only the last ones open.
    for name in in_progress(catalog.graph.with_readers_next(by_name), "measuring the tables"):
        spec = by_name[name]
        if isinstance(spec, InvalidSpec):
            problems[name] = f"{name}: its spec is wrong\n{spec.cause}", ExitCode.BAD_SPEC
            continue
        try:
            measured[name] = planned_table(spec, catalog, ops, now)
        except MillraceError as error:
            problems[name] = str(error), error.exit_code
        except OSError as error:
            problems[name] = f"{name}: {error}", ExitCode.FAILED
    in_order = [problems[name] for name in by_name if name in problems]
    for problem, _ in in_order:
        show_problem(problem)
    tables = [table for name in by_name if (table := measured.get(name))]
    unbuilt = [name for name in by_name if name in measured and measured[name] is None]
    return Measured(now, tables, unbuilt, in_order[-1][1] if in_order else ExitCode.OK)


def _as_json(table: PlannedTable) -> dict[str, Any]:
    """Return a table for JSON: with sums in place of each old file and each file of the log."""
    health = table.health
    beside = [{**vars(each), "old": _sums(each.old), "log": _log(each.log)} for each in health.beside]
    own = {"old": _sums(health.old), "log": _log(health.log), "beside": beside}
    return {**vars(table), "health": {**vars(health), **own}}


def _log(log: LogHealth) -> dict[str, Any]:
    return {**vars(log), "expired": log.expired_commits}


def _sums(old: OldFiles) -> dict[str, Any]:
    counts = {"due_files": len(old.due), "due_bytes": old.due_bytes, "kept_files": len(old.kept)}
    return {**counts, "kept_bytes": old.kept_bytes, "next_due": old.next_due}


def _overview(measured: Sequence[PlannedTable]) -> RenderableType:
    heads = ("files", "small", "size", "old files", "log")
    table = new_table("table", "storage", *heads, "why", numbers=heads)
    for each in measured:
        health = each.health
        table.add_row(
            each.table,
            _storage(each.storage),
            count(health.layout.files),
            count(health.layout.small_files),
            size(health.layout.size),
            size(health.old.kept_bytes + health.old.due_bytes),
            count(health.log.commits),
            Text(each.reason),
        )
    return table


def _details(measured: Sequence[PlannedTable]) -> RenderableType:
    parts = list[RenderableType]()
    for each in measured:
        facts = new_table("", "")
        facts.show_header = False
        for name, value in _facts(each.health):
            facts.add_row(name, Text(value))
        title = Text.assemble(f"{each.table}: ", _storage(each.storage), f" ({each.reason})")
        parts += [title, facts, *(Text(f"note: {advice}") for advice in each.health.advice), _plan([each])]
    return Group(*parts)


def _facts(health: TableHealth) -> Iterator[tuple[str, str]]:
    layout, old, log, slowest = health.layout, health.old, health.log, health.slowest
    yield "version", f"{health.version}, {count(health.rows)} rows"
    files = f"{counted(layout.files, 'file')}, {size(layout.size)}, in {counted(health.partitions, 'partition')}"
    yield "files", files
    small, target = counted(layout.small_files, "file"), size(layout.target_file_bytes)
    yield "small files", f"{small}, {size(layout.small_bytes)}: not alone in a partition, and below half of {target}"
    sizes = ", ".join(f"{each.files:,} of {each.name}" for each in health.classes if each.files)
    yield "sizes", sizes or MISSING
    if health.zorder_by:
        ordered = f"{health.ordered_at:{MINUTE}}" if health.ordered_at else "never"
        yield f"Z-order by {', '.join(health.zorder_by)}", f"{ordered}; {layout.written_share:.0%} in no order"
    if health.unskippable:
        yield "no statistics of", ", ".join(health.unskippable)
    yield "last OPTIMIZE", f"{health.maintained.optimized_at:{MINUTE}}" if health.maintained.optimized_at else MISSING
    yield "last VACUUM", f"{health.maintained.vacuumed_at:{MINUTE}}" if health.maintained.vacuumed_at else MISSING
    yield "old files stay", length_of(health.retention)
    yield "old files, due", f"{counted(len(old.due), 'file')}, {size(old.due_bytes)}"
    first = f", the first until {old.next_due:{MINUTE}}" if old.next_due else ""
    yield "old files, kept", f"{counted(len(old.kept), 'file')}, {size(old.kept_bytes)}{first}"
    if slowest:
        yield "slowest reader", f"{slowest.name}: version {slowest.version}, old since {slowest.since:{MINUTE}}"
    for hold in health.holds:
        yield f"held for {hold.name}", f"since {hold.since:{MINUTE}} by {hold.said_by}: {hold.why}"
    if health.outside:
        yield "readers outside", ", ".join(f"{name} (up to {time} a version)" for name, time in health.outside.items())
    since = f"{log.after_checkpoint} since the checkpoint of {log.checkpoint_at:{MINUTE}}" if log.checkpoint_at else ""
    expired = f", {count(log.expired_commits)} past its retention" if log.expired else ""
    yield "log", f"{counted(log.commits, 'commit')}{expired}, {since or 'no checkpoint yet'}, {size(log.size)}"


def _plan(measured: Sequence[PlannedTable]) -> RenderableType:
    actions = [action for table in measured for action in table.actions]
    if not actions:
        return Text("Nothing to do.")
    table = new_table("table", "would", "bytes", "seconds", "why", "if left", numbers=("bytes", "seconds"))
    for action in actions:
        seconds = None if action.seconds is None else round(action.seconds)
        why, left = Text(action.reason), Text(action.if_left)
        step = f"{action.step}, if a person allows it" if action.needs_approval else action.step.value
        table.add_row(action.table, step, size(action.size), count(seconds), why, left)
    return table


def _storage(storage: StorageState) -> Text:
    return Text(storage.value, style=_COLOURS.get(storage, ""))
