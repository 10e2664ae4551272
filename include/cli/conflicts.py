"""What `lakehouse conflicts` shows: which runs were in each other's way, and what can be done about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rich.table import Table

from include.cli.catalog import command_catalog
from include.cli.views import new_table
from include.contracts.job.contention import LostRace
from include.contracts.time_format import SECOND
from include.control.ledger.commit_history import BATCH, CommitHistory, Written, contended
from include.errors import MillraceError
from include.paths import LakehousePaths
from include.settings import Settings

UNKNOWN = "a commit that Delta did not name"
WORTH_A_CHANGE_S = 60.0
"""So many seconds of waiting in all are worth another schedule."""


@dataclass
class Contention:
    """How often one kind of run met another one at one table.

    Attributes:
        table: the table.
        run: which kind of run lost or waited: Airflow's `scheduled`, `manual`, `backfill`, or the CLI's; and what it
            did, where that was maintenance.
        rival: the operation and the kind of run that won, or that held the lease.
        lost: Delta's class of the conflict -> how often.
        waits: how often the lease was waited for.
        waited_s: seconds, all of them together.
        last: when it happened last.
    """

    table: str
    run: str
    rival: str
    lost: Counter[str] = field(default_factory=Counter)
    waits: int = 0
    waited_s: float = 0.0
    last: datetime | None = None


def contentions(tables: Sequence[str], settings: Settings) -> tuple[list[Contention], list[str]]:
    """Who was in whose way, of these tables (all for none); those that waited longest first.

    A line for each table of which that cannot be read comes with it.

    Raises:
        SpecError: there is no such table.
    """
    catalog, history = command_catalog(settings.tables), CommitHistory(LakehousePaths(settings.root))
    for table in tables:
        catalog.require_known(table)
    met, damage = list[Contention](), list[str]()
    for table in tables or catalog.tables:
        try:
            met += counted(contended(history.of(table)))
        except MillraceError as error:
            damage.append(f"{table}: {error}")
    return sorted(met, key=lambda one: (one.waited_s, sum(one.lost.values())), reverse=True), damage


def counted(history: Iterable[Written]) -> list[Contention]:
    """The same, of the contended runs of one table or several."""
    met: dict[tuple[str, str, str], Contention] = {}

    def of(written: Written, rival: str) -> Contention:
        key = (written.table, _who(written), rival)
        found = met.setdefault(key, Contention(*key))
        found.last = written.at
        return found

    for written in history:
        for race in written.lost:
            of(written, _winner(race)).lost[race.conflict] += 1
        if written.waited.holders:
            held = of(written, f"the lease of {kind_of(written.waited.holders)}")
            held.waits += 1
            held.waited_s += written.waited.seconds
    return list(met.values())


def contention_table(found: Iterable[Contention]) -> Table:
    """A row a table and a pair of writers."""
    table = new_table("table", "run", "met", "conflicts", "waits", "waited", "last", numbers=("waits", "waited"))
    for one in found:
        lost = ", ".join(f"{count} {conflict}" for conflict, count in sorted(one.lost.items()))
        last = f"{one.last:{SECOND}}" if one.last else ""
        table.add_row(one.table, one.run, one.rival, lost or "-", str(one.waits), f"{one.waited_s:.0f} s", last)
    return table


def advice(found: Iterable[Contention]) -> list[str]:
    """What to change, a line a table."""
    lines: dict[str, list[str]] = defaultdict(list)
    for one in found:
        if one.lost and one.rival.endswith(kind_of("")):
            lines[one.table].append("another system writes it too: only one should (ADR 3)")
        if one.waited_s >= WORTH_A_CHANGE_S and one.rival == f"the lease of {one.run}":
            lines[one.table].append(f"{one.run} runs wait for each other: let fewer of them run at once")
        elif one.waited_s >= WORTH_A_CHANGE_S:
            other = one.rival.removeprefix("the lease of ")
            lines[one.table].append(f"{one.run} runs wait for {other} ones: schedule them at different hours")
    return [f"{table}: {'; '.join(dict.fromkeys(said))}" for table, said in lines.items()]


def _who(written: Written) -> str:
    kind = kind_of(written.run_id)
    return kind if written.operation == BATCH else f"{written.operation} of {kind}"


def _winner(race: LostRace) -> str:
    return UNKNOWN if race.version is None else f"{race.operation} of {kind_of(race.run_id)}"


def kind_of(run_id: str) -> str:
    """Which kind of run an id is of: the part before its two underscores, as Airflow and the CLI make them.

    >>> kind_of("scheduled__2013-01-02T00:00:00+00:00"), kind_of("backfill__2013-01-01 (process 7 on a)"), kind_of("")
    ('scheduled', 'backfill', 'another system')
    """
    return run_id.split("__")[0].split(" ")[0] if run_id else "another system"
