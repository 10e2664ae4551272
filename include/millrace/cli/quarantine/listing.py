"""`lakehouse quarantine`: list the rows that tables refused, why, and their status; discard and reopen them."""

from __future__ import annotations

import getpass
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from millrace.cli.catalog import command_catalog
from millrace.cli.progress import in_progress
from millrace.cli.selection import parse_intervals
from millrace.cli.views import MISSING, count, new_table
from millrace.contracts.counted import counted
from millrace.contracts.job.requests import RowFilter
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.contracts.time_format import MINUTE
from millrace.contracts.visible_text import visible
from millrace.control.ledger.resolution import table_id
from millrace.control.quarantine.ageing import ageing_note
from millrace.control.quarantine.decisions import BEFORE, record_decision
from millrace.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from millrace.control.quarantine.fixable_columns import FixableColumns, is_fixable, with_nulls
from millrace.control.quarantine.rescued import RESCUED, rescued_of
from millrace.control.quarantine.row_ids import whole_id
from millrace.control.quarantine.rows import Refusal, count_by_status, quarantined_rows, refusals
from millrace.control.quarantine.stored_rows import SUMMARY, QuarantinedRow, StoredRows
from millrace.control.quarantine.waits import Wait, wait_note, wait_of
from millrace.errors import MillraceError
from millrace.settings import Settings
from millrace.specs.invalid_spec import InvalidSpec

BY_HAND = "lakehouse quarantine"
Days = tuple[str | None, str | None]
"""The values of `--interval` and `--to`."""

_COLOURS = {
    RowStatus.OPEN: "yellow", RowStatus.FIXED: "cyan", RowStatus.REPLAYED: "green", RowStatus.DISCARDED: "dim"
}  # fmt: skip


@dataclass
class Overview:
    """The quarantine of several tables.

    Attributes:
        refusals: table -> why rows of it are in quarantine.
        settled: status -> number of rows that need no more work, and are not listed.
        warnings: a line for each table whose rows wait for another table or have waited too long, and for each table
            that cannot be read.
        is_whole: whether every table could be read.
    """

    refusals: dict[str, list[Refusal]] = field(default_factory=dict)
    settled: Counter[RowStatus] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    is_whole: bool = True

    def settled_line(self) -> list[str]:
        """Return a line on the settled rows, if there are any."""
        statuses = [status for status in RowStatus if status not in PENDING and self.settled[status]]
        counts = [f"{count(self.settled[status])} {status}" for status in statuses]
        return [f"Besides these, {' and '.join(counts)}: --status shows them."] if counts else []


def overview(settings: Settings, domain: str | None, statuses: Iterable[RowStatus]) -> Overview:
    """Read the quarantine of each table of a domain, or of all; a table that cannot be read does not stop the others.

    Raises:
        SpecError: a spec is wrong, or there is no such domain.
    """
    paths, selected, result = settings.paths, tuple(statuses), Overview()
    catalog = command_catalog(settings.tables)
    specs = catalog.of_domain(domain) if domain else tuple(catalog.specs.values())
    for spec in in_progress(specs, "reading the quarantine"):
        if isinstance(spec, InvalidSpec):
            continue
        try:
            rows = StoredRows(spec.table, paths)
            if refused := refusals(rows, selected):
                result.refusals[spec.table] = refused
            result.settled += Counter({each: n for each, n in count_by_status(rows).items() if each not in selected})
            now = datetime.now(UTC)
            result.warnings += [*wait_note(spec, paths, now), *(f"warning: {n}" for n in ageing_note(spec, paths, now))]
        except MillraceError as error:
            result.warnings.append(f"{spec.table}: {error}")
            result.is_whole = False
    return result


def row_filter(
    table: str, settings: Settings, ids: Sequence[str], days: Days, reason: str, statuses: Iterable[RowStatus]
) -> RowFilter:
    """Return the filter that the options of a command state.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        UnknownNameError: an id does not name exactly one row.
        typer.BadParameter: the interval is not valid.
    """
    command_catalog(settings.tables).require_known(table)
    starts = tuple(interval.start for interval in parse_intervals(days[0], days[1])) if days[0] else ()
    whole_ids = tuple(whole_id(table, prefix, settings.paths) for prefix in ids)
    return RowFilter(ids=whole_ids, reason=reason, starts=starts, statuses=tuple(statuses))


def decide(
    table: str,
    settings: Settings,
    ids: Sequence[str],
    days: Days,
    reason: str,
    event: RowEvent,
    why: str,
    *,
    everything: bool,
) -> str:
    """Record that a person discarded or reopened rows; return a line with their number.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        typer.BadParameter: no option selects rows, or a named row has the wrong status.
    """
    require_selection(ids, days, reason, everything=everything)
    paths, before = settings.paths, BEFORE[event]
    selected = row_filter(table, settings, ids, days, reason, RowStatus if ids else before)
    rows = quarantined_rows(StoredRows(table, paths), selected, SUMMARY)
    require_status(rows, before, event.value)
    record_decision(event, table, rows, Decision(getpass.getuser(), why, BY_HAND), paths)
    return f"{counted(len(rows), 'row')} of {table} {event.value}"


def require_selection(ids: Sequence[str], days: Days, reason: str, *, everything: bool) -> None:
    """Check that an option selects the rows to change.

    Raises:
        typer.BadParameter: no option selects rows.
    """
    if not (ids or days[0] or reason or everything):
        raise typer.BadParameter("state which rows: ids, --reason, --interval, or --all for every waiting row")


def require_status(rows: Iterable[QuarantinedRow], before: Sequence[RowStatus], action: str) -> None:
    """Check that all rows have one of the statuses `before`, as the action requires.

    Raises:
        typer.BadParameter: a row has another status; the message names the first one and the way out.
    """
    for row in rows:
        if row.status not in before:
            way_out = "; reopen it first" if row.status is RowStatus.DISCARDED else ""
            raise typer.BadParameter(f"row {row.id} is {row.status}: it cannot be {action}{way_out}")


def refusal_table(by_table: Mapping[str, Iterable[Refusal]]) -> Table:
    """Return one row for each table, reason and status."""
    heads = ("table", "reason", "status", "rows", "first seen", "first interval", "last interval", "batch")
    table = new_table(*heads, numbers=("rows", "batch"))
    for name, reasons in by_table.items():
        for refusal in reasons:
            times = (_minute(refusal.first_seen), _minute(refusal.first), _minute(refusal.last))
            status, reason = _status(refusal.status), Text(refusal.reason)
            table.add_row(name, reason, status, count(refusal.rows), *times, count(refusal.batch_seq))
        table.add_section()
    return table


def waits_of(table: str, rows: Iterable[QuarantinedRow], settings: Settings) -> dict[str, Wait]:
    """Return id -> what the row waits for, of the rows that need nobody; none if the spec of the table is wrong."""
    spec, now = command_catalog(settings.tables).specs.get(table), datetime.now(UTC)
    return {row.id: wait for row in rows if spec and (wait := wait_of(spec, row, now))}


def row_table(rows: Iterable[QuarantinedRow], waits: Mapping[str, Wait]) -> Table:
    """Return one row per record, with all that a person needs to fix it; `waits` has the rows that need nobody."""
    heads = ("id", "status", "tries", "batch", "from", "position", "first seen", "reasons", "record")
    table = new_table(*heads, numbers=("tries", "batch", "position"))
    for row in rows:
        shown_status = Text(str(waits[row.id])) if row.id in waits else _status(row.status)
        status = (row.id, shown_status, count(row.attempts), count(row.batch_seq))
        origin = (Text(row.source or MISSING), count(row.position), _minute(row.first_seen))
        rescued = f"\n{RESCUED}: {fields}" if (fields := rescued_of(row)) else ""
        table.add_row(*status, *origin, Text(visible("\n".join(row.reasons))), Text(visible(row.record + rescued)))
    return table


def histories(table: str, rows: Sequence[QuarantinedRow], settings: Settings) -> Iterator[RenderableType]:
    """Yield each row in full, with its history."""
    paths = settings.paths
    events = QuarantineEvents(paths).events_of(table, table_id(paths.table(table)))
    waits = waits_of(table, rows, settings)
    for row in rows:
        yield row_table([row], waits)
        state = "as it was fixed" if row.fix else "as it was received"
        yield Text(visible(f"{state}: {row.received or 'not kept by the version that refused it'}"))
        yield _history(row, [event for event in events if event["row_id"] == row.id])


def edit_lines(rows: Iterable[QuarantinedRow], columns: FixableColumns) -> Iterator[str]:
    """Yield the rows as JSON lines for editing, with the columns that may be changed, also those without a value."""
    for row in rows:
        received = with_nulls(json.loads(row.received or "{}", parse_float=_exact), columns)
        record = {name: value for name, value in received.items() if is_fixable(name)}
        line = {"id": row.id, "status": row.status.value, "reasons": row.reasons, "record": record}
        yield json.dumps(line, ensure_ascii=False)


def _history(row: QuarantinedRow, events: Sequence[Mapping[str, Any]]) -> Table:
    table = new_table("time", "event", "by", "batch", "details", numbers=("batch",))
    table.add_row(_minute(row.first_seen), "refused first", MISSING, MISSING, "")
    if row.last_seen != row.first_seen:
        table.add_row(_minute(row.last_seen), "refused last", MISSING, count(row.batch_seq), "")
    for event in events:
        details = [event["fix"] or "", *(event["reasons"] or ()), event["why"] or ""]
        name = "pinned to a replay" if event["event"] == RowEvent.PLANNED else event["event"]
        text = Text("; ".join(part for part in details if part))
        table.add_row(_minute(event["recorded_at"]), name, event["said_by"] or MISSING, count(event["batch_seq"]), text)
    return table


def _status(status: RowStatus) -> Text:
    return Text(status.value, style=_COLOURS[status])


def _minute(at: datetime | None) -> str:
    return f"{at:{MINUTE}}" if at else MISSING


def _exact(text: str) -> float | str:
    """Return a fraction as a number if that keeps every digit, else as text, which `fix --rows` accepts as well."""
    return float(text) if Decimal(repr(float(text))) == Decimal(text) else text
