"""`lakehouse conflicts`: show which runs slowed each other down, and what can be done about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rich.table import Table

from millrace.cli.catalog import command_catalog
from millrace.cli.progress import in_progress
from millrace.cli.views import new_table
from millrace.contracts.time_format import SECOND
from millrace.control.ledger.commit_history import BATCH, CommitHistory, TableWrite, contended_writes
from millrace.errors import MillraceError
from millrace.settings import Settings

UNKNOWN = "a commit that Delta did not name"
WORTH_A_CHANGE_S = 60.0
"""The seconds of waiting, in total, above which another schedule is advised."""


@dataclass
class RunContention:
    """How often one kind of run lost against, or waited for, another kind of run at one table.

    Attributes:
        table: the table.
        run: the kind of run that lost or waited: Airflow's `scheduled`, `manual`, `backfill`, or the CLI's; for
            maintenance with its operation.
        winner: the operation and the kind of run that won, or that has the lease.
        lost: Delta's class of the conflict -> number of lost commits.
        waits: the number of waits for the lease.
        waited_s: the seconds of all waits.
        last: the time of the last loss or wait.
    """

    table: str
    run: str
    winner: str
    lost: Counter[str] = field(default_factory=Counter)
    waits: int = 0
    waited_s: float = 0.0
    last: datetime | None = None


def contentions(tables: Sequence[str], settings: Settings) -> tuple[list[RunContention], list[str]]:
    """Return the contentions of these tables (all for none), the longest waits first.

    The second part is a line for each table that cannot be read.

    Raises:
        SpecError: there is no such table.
    """
    catalog, history = command_catalog(settings.tables), CommitHistory(settings.paths)
    for table in tables:
        catalog.require_known(table)
    every, damage = list[RunContention](), list[str]()
    for table in in_progress(list(tables or catalog.tables), "reading the history of commits"):
        try:
            every += count_contentions(contended_writes(history.of(table)))
        except MillraceError as error:
            damage.append(f"{table}: {error}")
    return sorted(every, key=lambda item: (item.waited_s, item.lost.total()), reverse=True), damage


def count_contentions(history: Iterable[TableWrite]) -> list[RunContention]:
    """Count the contentions in the history of one or several tables."""
    contentions: dict[tuple[str, str, str], RunContention] = {}

    def contention_of(write: TableWrite, winner: str) -> RunContention:
        kind = kind_of(write.run_id)
        key = (write.table, kind if write.operation == BATCH else f"{write.operation} of {kind}", winner)
        contention = contentions.setdefault(key, RunContention(*key))
        contention.last = write.at
        return contention

    for write in history:
        for race in write.lost:
            winner = UNKNOWN if race.version is None else f"{race.operation} of {kind_of(race.run_id)}"
            contention_of(write, winner).lost[race.conflict] += 1
        if write.waited.holders:
            lease = contention_of(write, f"the lease of {kind_of(write.waited.holders)}")
            lease.waits += 1
            lease.waited_s += write.waited.seconds
    return list(contentions.values())


def contention_table(contentions: Iterable[RunContention]) -> Table:
    """Return one row per table and pair of writers."""
    table = new_table("table", "run", "met", "conflicts", "waits", "waited", "last", numbers=("waits", "waited"))
    for item in contentions:
        lost = ", ".join(f"{count} {conflict}" for conflict, count in sorted(item.lost.items()))
        last = f"{item.last:{SECOND}}" if item.last else ""
        table.add_row(item.table, item.run, item.winner, lost or "-", str(item.waits), f"{item.waited_s:.0f} s", last)
    return table


def advice(contentions: Iterable[RunContention]) -> list[str]:
    """Return what to change, one line per table."""
    lines: dict[str, list[str]] = defaultdict(list)
    for item in contentions:
        if item.lost and item.winner.endswith(kind_of("")):
            lines[item.table].append("another system writes it too: only one should (ADR 3)")
        if item.waited_s >= WORTH_A_CHANGE_S and item.winner == f"the lease of {item.run}":
            lines[item.table].append(f"{item.run} runs wait for each other: let fewer of them run at once")
        elif item.waited_s >= WORTH_A_CHANGE_S:
            other = item.winner.removeprefix("the lease of ")
            lines[item.table].append(f"{item.run} runs wait for {other} runs: schedule them at different hours")
    return [f"{table}: {'; '.join(dict.fromkeys(advices))}" for table, advices in lines.items()]


def kind_of(run_id: str) -> str:
    """Return the kind of a run: the part of its id before two underscores, as Airflow and the CLI make ids.

    >>> kind_of("scheduled__2013-01-02T00:00:00+00:00"), kind_of("backfill__2013-01-01 (process 7 on a)"), kind_of("")
    ('scheduled', 'backfill', 'another system')
    """
    return run_id.split("__")[0].split(" ")[0] if run_id else "another system"
