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
        """Load and merge everything."""
        for day in self.late_days():
            self._load(day)
        for table in self.tables:
            if table.table not in self.merged:
                self._merge(table, 1)

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

    def _deliver(self, day: int, name: str, lines: list[Line]) -> None:
        self.shop.deliver(day, name, [line.as_record() if isinstance(line, OrderRow) else line for line in lines])
        self.landing[day, name] = lines

    def _run(self, table: str, day: int, **more: Any) -> JobReport:
        report = self.shop.run(table, day, **more)
        assert report.exit_code is ExitCode.OK, report.message
        assert report.rows.are_conserved, report.rows
        return report

    def _load(self, day: int) -> None:
        self._run(BRONZE, day)
        self.bronze |= {file: lines for file, lines in self.landing.items() if file[0] == day}
        self.merged.clear()
        self._check_bronze()

    def _merge(self, table: SilverModel, day: int, **more: Any) -> None:
        self._run(table.table, day, **more)
        table.merge(self.bronze)
        self.merged.add(table.table)
        table.check(self.shop)

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
