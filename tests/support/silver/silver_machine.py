"""A state machine that carries orders from landing files through bronze into silver tables, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from include.contracts.job.args import Job
from include.contracts.job.report import JobReport
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import is_table
from include.control.maintenance import health
from include.errors import ExitCode, Outcome
from tests.support.lakehouse import Lakehouse
from tests.support.silver.orders import COLUMNS, OrderRow, orders_document
from tests.support.silver.silver_models import SilverModel

BRONZE = "bronze.orders"
DAYS = range(1, 6)
SEEDS = st.integers(0, 2**32)

RULES = {"deliver", "replace", "load", "merge", "reprocess", "run_again", "optimize"}

Line = OrderRow | str
Content = Callable[[Random], list[Line]]
"""The lines of a new landing file."""


class SilverMachine(RuleBasedStateMachine):
    """One bronze table, and silver tables that read it, each at its own pace.

    After every run of silver the table must equal its model, and no row may be lost.

    Attributes:
        landing: (day, name) of each landing file -> its lines.
        bronze: the same for the files that bronze has loaded.
        broken: the landing files whose content cannot be loaded.
        failed: the files that bronze could not load, and has not loaded since.
        merged: the tables that have read all of bronze.
        done: rule -> number of its runs.
    """

    def __init__(self, shop: Lakehouse, tables: Sequence[SilverModel], content: Content) -> None:
        super().__init__()
        self.shop = shop
        self.tables = list(tables)
        self.content = content
        self.landing: dict[tuple[int, str], list[Line]] = {}
        self.bronze: dict[tuple[int, str], list[Line]] = {}
        self.broken: set[tuple[int, str]] = set()
        self.failed: set[tuple[int, str]] = set()
        self.merged: set[str] = set()
        self.done: Counter[str] = Counter()
        shop.specs(orders_document(), *(table.document() for table in tables))

    @precondition(lambda self: len(self.files_to_load()) < 2)
    @rule(seed=SEEDS)
    def deliver(self, seed: int) -> None:
        """Deliver a new file for any day."""
        chance = self._chance(seed)
        self._deliver(chance.choice(DAYS), f"{len(self.landing)}.json", self.content(chance))
        self.done["deliver"] += 1

    @precondition(lambda self: self.bronze)
    @rule(seed=SEEDS)
    def replace(self, seed: int) -> None:
        """Deliver a file again with some of its lines and some new ones; sometimes without any."""
        chance = self._chance(seed)
        day, name = chance.choice(sorted(self.landing))
        kept = [line for line in self.landing[day, name] if chance.random() < 0.6]
        self._deliver(day, name, [*kept, *self.content(chance)[:20]] if chance.random() < 0.9 else [])
        self.done["replace"] += (day, name) in self.bronze

    @precondition(lambda self: self.landing and len(self.broken) < 2 and self.tables[0].is_snapshot)
    @rule(seed=SEEDS)
    def break_file(self, seed: int) -> None:
        """Deliver a file of a full snapshot, a new one or an earlier one, that cannot be read."""
        chance = self._chance(seed)
        day, name = chance.choice([*sorted(self.landing), (chance.choice(DAYS), f"{len(self.landing)}.json")])
        lines = self.landing.get((day, name)) or self.content(chance)
        self._deliver(day, name, lines, is_broken=True)
        if (day, name) in self.bronze:
            self.landing[day, name] = [*lines, *self.content(chance)[:5]]
        self.done["break_file"] += 1

    @precondition(lambda self: self.broken)
    @rule(seed=SEEDS)
    def fix_file(self, seed: int) -> None:
        """Deliver a broken file again, so that it can be read."""
        day, name = self._chance(seed).choice(sorted(self.broken))
        self._deliver(day, name, self.landing[day, name])
        self.done["fix_file"] += 1

    @precondition(lambda self: self.late_days())
    @rule(seed=SEEDS)
    def load(self, seed: int) -> None:
        """Load a day with files that bronze has not loaded, and merge some tables at once."""
        chance = self._chance(seed)
        self._load(chance.choice(self.late_days()))
        for table in self.tables:
            if chance.random() < 0.4:
                self._merge(table, chance.choice(DAYS))
        self.done["load"] += 1

    @precondition(lambda self: len(self.merged) < len(self.tables) and self.bronze)
    @rule(seed=SEEDS)
    def merge(self, seed: int) -> None:
        """Merge some of the tables that have not read all of bronze, for any day."""
        behind = [table for table in self.tables if table.table not in self.merged]
        chance = self._chance(seed)
        for table in chance.sample(behind, chance.randint(1, len(behind))):
            self._merge(table, chance.choice(DAYS))
        self.done["merge"] += 1

    @precondition(lambda self: self.bronze)
    @rule(seed=SEEDS)
    def reprocess(self, seed: int) -> None:
        """Let a table read a day again."""
        chance = self._chance(seed)
        self._merge(chance.choice(self.tables), chance.choice(DAYS), reprocess=True)
        self.done["reprocess"] += 1

    @precondition(lambda self: self.settled())
    @rule(seed=SEEDS)
    def run_again(self, seed: int) -> None:
        """Run a table without new data, and check that it writes nothing."""
        table, day = self._chance(seed).choice(self.settled())
        before = latest_version(self.shop.paths.table(table))
        assert self._run(table, day).outcome is Outcome.NO_OP
        assert latest_version(self.shop.paths.table(table)) == before
        self.done["run_again"] += 1

    @precondition(lambda self: self.bronze and len(DeltaTable(str(self.shop.paths.table(BRONZE))).file_uris()) > 1)
    @rule()
    def optimize(self) -> None:
        """Optimize bronze, and each silver table that has read all of it."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(health, "LEAST_SMALL_FILES", 2)
            for table in (BRONZE, *sorted(self.merged)):
                report = self._run(table, 1, job=Job.TABLE_OPTIMIZE)
                self.done["optimize"] += report.outcome is Outcome.COMMITTED

    def finish(self) -> None:
        """Deliver broken files again, load and merge everything, and allow the deletes of empty snapshots."""
        for day, name in sorted(self.broken):
            self._deliver(day, name, self.landing[day, name])
        for day in self.late_days():
            self._load(day)
        for table in self.tables:
            for day in self.empty_days() if table.is_snapshot else ():
                self._merge(table, day, allow_deletes="ann")
            if table.table not in self.merged:
                self._merge(table, 1)
            table.merge(self.bronze)
            table.check(self.shop)

    def empty_days(self) -> list[int]:
        """Return the days without a line in bronze."""
        lines = {day: 0 for day, _ in self.bronze}
        for (day, _), of_file in self.bronze.items():
            lines[day] += len(of_file)
        return sorted(day for day, number in lines.items() if not number)

    def files_to_load(self) -> list[tuple[int, str]]:
        """Return the files whose present content bronze has not loaded."""
        return sorted(file for file, lines in self.landing.items() if self.bronze.get(file) != lines)

    def late_days(self) -> list[int]:
        """Return the days of these files."""
        return sorted({day for day, _ in self.files_to_load()})

    def settled(self) -> list[tuple[str, int]]:
        """Return table and day of the runs that have nothing to read."""
        loaded = {day for day, _ in self.bronze} - set(self.late_days())
        return [
            *((BRONZE, day) for day in sorted(loaded)),
            *((table, day) for table in sorted(self.merged) for day in DAYS),
        ]

    def histories(self) -> int:
        """Return the number of keys in the sources of all tables."""
        return sum(len(table.known_keys) for table in self.tables)

    def _chance(self, seed: int) -> Random:
        # With the number of files, because hypothesis repeats some seeds, which would deliver the same file each time.
        return Random(f"{seed} {len(self.landing)} {sum(self.done.values())}")

    def _deliver(self, day: int, name: str, lines: list[Line], *, is_broken: bool = False) -> None:
        records = [line.as_record() if isinstance(line, OrderRow) else line for line in lines]
        self.shop.deliver(day, name, f"no record {sum(self.done.values())}\n" if is_broken else records)
        self.landing[day, name] = lines
        (self.broken.add if is_broken else self.broken.discard)((day, name))

    def _run(self, table: str, day: int, *, endings: Sequence[int] = (0,), **more: Any) -> JobReport:
        report = self.shop.run(table, day, **more)
        assert report.exit_code in endings, report.message
        assert report.rows.are_conserved, report.rows
        return report

    def _load(self, day: int) -> None:
        broken = {file for file in self.broken if file[0] == day}
        # After some tries bronze continues without a broken file.
        self._run(BRONZE, day, endings=(ExitCode.OK, ExitCode.BAD_INPUT) if broken else (ExitCode.OK,))
        sound = {file: lines for file, lines in self.landing.items() if file[0] == day and file not in broken}
        self.bronze |= sound
        self.failed = (self.failed - sound.keys()) | broken
        self.merged.clear()
        self._check_bronze()

    def _merge(self, table: SilverModel, day: int, **more: Any) -> None:
        if table.is_snapshot and (self.failed or self.empty_days()):
            self._merge_beside_incomplete_snapshots(table, day, **more)
            return
        self._run(table.table, day, **more)
        table.merge(self.bronze)
        self.merged.add(table.table)
        table.check(self.shop)

    def _merge_beside_incomplete_snapshots(self, table: SilverModel, day: int, **more: Any) -> None:
        """Merge while some snapshots do not count, and check that no key of the last complete snapshot is deleted."""
        waits = (ExitCode.OK, ExitCode.NOT_READY, ExitCode.DELETES_REFUSED)
        before = set(table.stored_rows(self.shop)) if is_table(self.shop.paths.table(table.table)) else set()
        self._run(table.table, day, endings=waits, **more)
        table.adopt(self.shop)
        waiting = {day for day, _ in self.failed} | set(self.empty_days())
        whole = {other for other, _ in self.bronze} - waiting
        if not more and whole:
            lines = [line for (other, _), of_file in self.bronze.items() for line in of_file if other == max(whole)]
            delivered = {line.key for line in lines if isinstance(line, OrderRow)}
            assert not (before - set(table.rows)) & delivered
        elif not more:
            assert before <= set(table.rows), "no complete snapshot lacks a key"

    def _check_bronze(self) -> None:
        """Check that every line of every file is in bronze once, or in its quarantine once."""
        rows = self.shop.rows(BRONZE, "_source_file", *COLUMNS)
        loaded = Counter((file.rpartition("/")[2], *values) for file, *values in map(_in_words, rows))
        lines = [(name, line) for (_, name), of_file in self.bronze.items() for line in of_file]
        assert loaded == Counter(
            (name, *line.as_record().values()) for name, line in lines if isinstance(line, OrderRow)
        )
        refused = Counter(row["record"] for row in self.shop.quarantine(BRONZE))
        assert refused == Counter(line for _, line in lines if isinstance(line, str))


def _in_words(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row of bronze with its time as the source writes it."""
    return tuple(value.strftime("%Y-%m-%dT%H:%M:%SZ") if hasattr(value, "hour") else value for value in row)
