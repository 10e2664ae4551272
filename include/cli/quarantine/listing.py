"""What `lakehouse quarantine` shows and decides: which rows the tables refused, why, and where each of them stands."""

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

from include.catalog import Catalog
from include.cli.catalog import command_catalog
from include.cli.selection import parse_intervals
from include.cli.views import MISSING, count, new_table
from include.contracts.job.quarantine_request import RowFilter
from include.contracts.row_status import PENDING, RowStatus
from include.contracts.spec.table_spec import AnySpec
from include.contracts.time_format import MINUTE
from include.control.ledger.resolution import table_id
from include.control.quarantine.ageing import ageing_note
from include.control.quarantine.events import QuarantineEvents, RowEvent, Said
from include.control.quarantine.rows import (
    SUMMARY,
    QuarantinedRow,
    Refusal,
    count_by_status,
    ids_beginning,
    quarantined_rows,
    refusals,
)
from include.errors import MillraceError
from include.paths import LakehousePaths
from include.settings import Settings
from include.specs.problem import did_you_mean

BY_HAND = "lakehouse quarantine"
Days = tuple[str | None, str | None]
"""What `--interval` and `--to` say."""

_SAID = ("_rescued", "_corrupt_record")
"""What a source said and no column is declared for: a value that fits none, a record that could not be parsed."""

_COLOURS = {
    RowStatus.OPEN: "yellow", RowStatus.FIXED: "cyan", RowStatus.REPLAYED: "green", RowStatus.DISCARDED: "dim"
}  # fmt: skip
_EVENT = {
    RowStatus.DISCARDED: (RowEvent.DISCARDED, PENDING),
    RowStatus.OPEN: (RowEvent.REOPENED, (RowStatus.DISCARDED,)),
}
"""What a person may decide: status -> (the event that says so, how the rows must stand before)."""


@dataclass
class Overview:
    """What waits in the quarantine of several tables.

    Attributes:
        refusals: table -> why rows of it are in quarantine.
        settled: how many rows wait for nobody any more, by how they stand.
        warnings: a line for each table whose rows have waited too long, and for each that cannot be read.
        is_whole: whether every table could be read.
    """

    refusals: dict[str, list[Refusal]] = field(default_factory=dict)
    settled: Counter[RowStatus] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    is_whole: bool = True

    def settled_line(self) -> list[str]:
        """The settled rows in one line; none where there are none."""
        known = [one for one in RowStatus if one not in PENDING and self.settled[one]]
        counted = [f"{count(self.settled[status])} {status}" for status in known]
        return [f"Beside these, {' and '.join(counted)}: --status shows them."] if counted else []


def overview(settings: Settings, domain: str | None, statuses: Iterable[RowStatus]) -> Overview:
    """Look at the quarantine of each table of a domain, or of all; one that cannot be read stops no other.

    Raises:
        SpecError: a spec is wrong, or there is no such domain.
    """
    paths, wanted, found = LakehousePaths(settings.root), tuple(statuses), Overview()
    for spec in _specs(command_catalog(settings.tables), domain):
        try:
            if refused := refusals(spec.table, paths, wanted):
                found.refusals[spec.table] = refused
            found.settled += count_by_status(spec.table, paths)
            found.warnings += [f"warning: {note}" for note in ageing_note(spec, paths, datetime.now(UTC))]
        except MillraceError as error:
            found.warnings.append(f"{spec.table}: {error}")
            found.is_whole = False
    return found


def chosen(
    table: str, settings: Settings, ids: Sequence[str], days: Days, reason: str, statuses: Iterable[RowStatus]
) -> RowFilter:
    """Which of the table's quarantined rows are meant.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        typer.BadParameter: the interval is none, or an id does not name one row.
    """
    command_catalog(settings.tables).require_known(table)
    starts = tuple(interval.start for interval in parse_intervals(days[0], days[1])) if days[0] else ()
    whole = tuple(_whole_id(table, beginning, LakehousePaths(settings.root)) for beginning in ids)
    return RowFilter(ids=whole, reason=reason, starts=starts, statuses=tuple(statuses))


def decide(
    table: str,
    settings: Settings,
    ids: Sequence[str],
    days: Days,
    reason: str,
    status: RowStatus,
    why: str,
    *,
    everything: bool,
) -> str:
    """Write down that a person gave rows up, or took that back; says of how many.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        typer.BadParameter: nothing says which rows, or one that was named does not stand as it must.
    """
    require_selection(ids, days, reason, everything=everything)
    event, before = _EVENT[status]
    paths = LakehousePaths(settings.root)
    wanted = chosen(table, settings, ids, days, reason, RowStatus if ids else before)
    rows = quarantined_rows(table, paths, wanted, SUMMARY)
    require_standing(rows, before, event.value)
    if rows:
        said = Said(getpass.getuser(), why, BY_HAND)
        target = table_id(paths.table(table))
        QuarantineEvents(paths).record(event, table, target, [row.id for row in rows], said)
    return f"{count(len(rows))} rows of {table} {event.value}"


def require_selection(ids: Sequence[str], days: Days, reason: str, *, everything: bool) -> None:
    """Refuse to change rows that nobody has named.

    Raises:
        typer.BadParameter: nothing says which.
    """
    if not (ids or days[0] or reason or everything):
        raise typer.BadParameter("say which rows: ids, --reason, --interval, or --all for every one that waits")


def require_standing(rows: Iterable[QuarantinedRow], before: Sequence[RowStatus], what: str) -> None:
    """Refuse to do something to rows that do not stand as they must for it.

    Raises:
        typer.BadParameter: with the first such row, and the way out.
    """
    for row in rows:
        if row.status not in before:
            out = "; reopen it first" if row.status is RowStatus.DISCARDED else ""
            raise typer.BadParameter(f"row {row.id} is {row.status}: it cannot be {what}{out}")


def refusal_table(found: Mapping[str, Iterable[Refusal]]) -> Table:
    """A row for each reason and status, the tables one after the other."""
    numbers = ("rows", "batch")
    heads = ("table", "reason", "status", "rows", "first seen", "first interval", "last interval", "batch")
    table = new_table(*heads, numbers=numbers)
    for name, reasons in found.items():
        for one in reasons:
            days = (f"{one.first:{MINUTE}}", f"{one.last:{MINUTE}}")
            stands = (_status(one.status), count(one.rows), _moment(one.first_seen))
            table.add_row(name, Text(one.reason), *stands, *days, count(one.batch_seq))
        table.add_section()
    return table


def row_table(rows: Iterable[QuarantinedRow]) -> Table:
    """A row a record, whole: what a person needs to mend it."""
    heads = ("id", "status", "tries", "batch", "from", "position", "first seen", "reasons", "record")
    table = new_table(*heads, numbers=("tries", "batch", "position"))
    for row in rows:
        stands = (row.id, _status(row.status), count(row.attempts), count(row.batch_seq))
        place = (Text(row.source or MISSING), count(row.position), _moment(row.first_seen))
        table.add_row(*stands, *place, Text("\n".join(row.reasons)), Text(row.record))
    return table


def histories(table: str, rows: Iterable[QuarantinedRow], settings: Settings) -> Iterator[RenderableType]:
    """Each row whole, with all that was done about it."""
    paths = LakehousePaths(settings.root)
    events = QuarantineEvents(paths).of(table, table_id(paths.table(table)))
    for row in rows:
        yield row_table([row])
        state = "as it was mended" if row.fix else "as it was received"
        yield Text(f"{state}: {row.received or 'not kept by the version that refused it'}")
        yield _history(row, [event for event in events if event["row_id"] == row.id])


def edit_lines(rows: Iterable[QuarantinedRow]) -> Iterator[str]:
    """The rows as JSON lines that can be edited; of each the columns that may be changed."""
    for row in rows:
        received = json.loads(row.received or "{}", parse_float=_exact)
        record = {name: value for name, value in received.items() if not name.startswith("_") or name in _SAID}
        said = {"id": row.id, "status": row.status.value, "reasons": row.reasons, "record": record}
        yield json.dumps(said, ensure_ascii=False)


def _history(row: QuarantinedRow, events: Sequence[Mapping[str, Any]]) -> Table:
    table = new_table("when", "what", "by", "batch", "details", numbers=("batch",))
    table.add_row(_moment(row.first_seen), "refused first", MISSING, MISSING, "")
    if row.last_seen != row.first_seen:
        table.add_row(_moment(row.last_seen), "refused last", MISSING, count(row.batch_seq), "")
    for event in events:
        details = [event["fix"] or "", *(event["reasons"] or ()), event["why"] or ""]
        what = "pinned to a replay" if event["event"] == RowEvent.PLANNED else event["event"]
        told = Text("; ".join(part for part in details if part))
        table.add_row(_moment(event["recorded_at"]), what, event["said_by"] or MISSING, count(event["batch_seq"]), told)
    return table


def _whole_id(table: str, beginning: str, paths: LakehousePaths) -> str:
    """The id of the row that this beginning names.

    Raises:
        typer.BadParameter: it names no row, or several.
    """
    found = ids_beginning(table, paths, beginning)
    if len(found) == 1:
        return found[0]
    if found:
        raise typer.BadParameter(f"{beginning!r} is the beginning of {len(found)} ids: write more of it")
    msg = f"{table} has no row {beginning!r} in quarantine; `lakehouse quarantine show` lists them."
    known = ids_beginning(table, paths, "")
    raise typer.BadParameter(f"{msg} {did_you_mean(beginning, known)}" if known else msg)


def _specs(catalog: Catalog, domain: str | None) -> Sequence[AnySpec]:
    return catalog.of_domain(domain) if domain else list(catalog.specs.values())


def _status(status: RowStatus) -> Text:
    return Text(status.value, style=_COLOURS[status])


def _moment(at: datetime | None) -> str:
    return f"{at:{MINUTE}}" if at else MISSING


def _exact(text: str) -> float | str:
    """A fraction as a number, where that keeps every digit of it, else as text, which is read as well."""
    return float(text) if Decimal(repr(float(text))) == Decimal(text) else text
