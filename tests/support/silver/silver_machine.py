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
from tests.support.silver.orders import COLUMNS, Told, orders_document
from tests.support.silver.silver_models import SilverModel

BRONZE = "bronze.orders"
DAYS = range(1, 6)
SEEDS = st.integers(0, 2**32)

RULES = {"deliver", "replace", "load", "merge", "reprocess", "run_again", "optimize"}

Line = Told | str
Content = Callable[[Random], list[Line]]
"""The lines of a new landing file."""


class SilverMachine(RuleBasedStateMachine):
    """One bronze table, and silver tables that read it, each when it is told to.

    After every run of silver its tables must be as their models say, and every row accounted for.

    Attributes:
        landing: (day, name) of each landing file -> its lines.
        bronze: the same, of what bronze has loaded.
        torn: the landing files whose content cannot be loaded.
        failed: those that bronze has met so, and not loaded since.
        merged: the tables that hold all that bronze has.
        done: how often each rule was run.
    """

    def __init__(self, shop: Lakehouse, tables: Sequence[SilverModel], content: Content) -> None:
        super().__init__()
        self.shop = shop
        self.tables = list(tables)
        self.content = content
        self.landing: dict[tuple[int, str], list[Line]] = {}
        self.bronze: dict[tuple[int, str], list[Line]] = {}
        self.torn: set[tuple[int, str]] = set()
        self.failed: set[tuple[int, str]] = set()
        self.merged: set[str] = set()
        self.done: Counter[str] = Counter()
        shop.specs(orders_document(), *(table.document() for table in tables))

    @precondition(lambda self: len(self.files_to_load()) < 2)
    @rule(seed=SEEDS)
    def deliver(self, seed: int) -> None:
        """A new file comes, for whichever day."""
        chance = self._chance(seed)
        self._deliver(chance.choice(DAYS), f"{len(self.landing)}.json", self.content(chance))
        self.done["deliver"] += 1

    @precondition(lambda self: self.bronze)
    @rule(seed=SEEDS)
    def replace(self, seed: int) -> None:
        """A file is delivered again with some of its lines and some others; now and then with none."""
        chance = self._chance(seed)
        day, name = chance.choice(sorted(self.landing))
        kept = [line for line in self.landing[day, name] if chance.random() < 0.6]
        self._deliver(day, name, [*kept, *self.content(chance)[:20]] if chance.random() < 0.9 else [])
        self.done["replace"] += (day, name) in self.bronze

    @precondition(lambda self: self.landing and len(self.torn) < 2 and self.tables[0].is_snapshot)
    @rule(seed=SEEDS)
    def tear(self, seed: int) -> None:
        """A file of a full snapshot, new or known, comes in a form that nothing can be read of."""
        chance = self._chance(seed)
        day, name = chance.choice([*sorted(self.landing), (chance.choice(DAYS), f"{len(self.landing)}.json")])
        lines = self.landing.get((day, name)) or self.content(chance)
        self._deliver(day, name, lines, torn=True)
        if (day, name) in self.bronze:
            self.landing[day, name] = [*lines, *self.content(chance)[:5]]
        self.done["tear"] += 1

    @precondition(lambda self: self.torn)
    @rule(seed=SEEDS)
    def mend(self, seed: int) -> None:
        """A torn file is delivered again."""
        day, name = self._chance(seed).choice(sorted(self.torn))
        self._deliver(day, name, self.landing[day, name])
        self.done["mend"] += 1

    @precondition(lambda self: self.late_days())
    @rule(seed=SEEDS)
    def load(self, seed: int) -> None:
        """Bronze loads a day of which something has not been loaded; some tables are merged at once."""
        chance = self._chance(seed)
        self._load(chance.choice(self.late_days()))
        for table in self.tables:
            if chance.random() < 0.4:
                self._merge(table, chance.choice(DAYS))
        self.done["load"] += 1

    @precondition(lambda self: len(self.merged) < len(self.tables) and self.bronze)
    @rule(seed=SEEDS)
    def merge(self, seed: int) -> None:
        """Some of the tables that lack something of bronze are merged, for any day."""
        behind = [table for table in self.tables if table.table not in self.merged]
        chance = self._chance(seed)
        for table in chance.sample(behind, chance.randint(1, len(behind))):
            self._merge(table, chance.choice(DAYS))
        self.done["merge"] += 1

    @precondition(lambda self: self.bronze)
    @rule(seed=SEEDS)
    def reprocess(self, seed: int) -> None:
        """A table reads a day again, whatever it has read."""
        chance = self._chance(seed)
        self._merge(chance.choice(self.tables), chance.choice(DAYS), reprocess=True)
        self.done["reprocess"] += 1

    @precondition(lambda self: self.settled())
    @rule(seed=SEEDS)
    def run_again(self, seed: int) -> None:
        """What has nothing new to read writes nothing."""
        table, day = self._chance(seed).choice(self.settled())
        before = latest_version(self.shop.paths.table(table))
        assert self._run(table, day).outcome is Outcome.NO_OP
        assert latest_version(self.shop.paths.table(table)) == before
        self.done["run_again"] += 1

    @precondition(lambda self: self.bronze and len(DeltaTable(str(self.shop.paths.table(BRONZE))).file_uris()) > 1)
    @rule()
    def optimize(self) -> None:
        """The files of bronze are put together, and of each silver table that has several."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(health, "LEAST_SMALL_FILES", 2)
            for table in (BRONZE, *sorted(self.merged)):
                report = self._run(table, 1, job=Job.TABLE_OPTIMIZE)
                self.done["optimize"] += report.outcome is Outcome.COMMITTED

    def finish(self) -> None:
        """Have torn files mended, load and merge all that was delivered, and let empty snapshots delete."""
        for day, name in sorted(self.torn):
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
        """The days of which bronze holds no line."""
        lines = {day: 0 for day, _ in self.bronze}
        for (day, _), of_file in self.bronze.items():
            lines[day] += len(of_file)
        return sorted(day for day, number in lines.items() if not number)

    def files_to_load(self) -> list[tuple[int, str]]:
        """The files whose content bronze has not loaded."""
        return sorted(file for file, lines in self.landing.items() if self.bronze.get(file) != lines)

    def late_days(self) -> list[int]:
        """The days of these files."""
        return sorted({day for day, _ in self.files_to_load()})

    def settled(self) -> list[tuple[str, int]]:
        """(table, day) of runs that have nothing to read."""
        loaded = {day for day, _ in self.bronze} - set(self.late_days())
        return [
            *((BRONZE, day) for day in sorted(loaded)),
            *((table, day) for table in sorted(self.merged) for day in DAYS),
        ]

    def histories(self) -> int:
        """How many keys the tables have been told of."""
        return sum(len(table.seen) for table in self.tables)

    def _chance(self, seed: int) -> Random:
        # The number of files, so that a favourite seed of hypothesis does not bring the same file again and again.
        return Random(f"{seed} {len(self.landing)} {sum(self.done.values())}")

    def _deliver(self, day: int, name: str, lines: list[Line], *, torn: bool = False) -> None:
        records = [line.as_record() if isinstance(line, Told) else line for line in lines]
        self.shop.deliver(day, name, f"no record {sum(self.done.values())}\n" if torn else records)
        self.landing[day, name] = lines
        (self.torn.add if torn else self.torn.discard)((day, name))

    def _run(self, table: str, day: int, *, endings: Sequence[int] = (0,), **more: Any) -> JobReport:
        report = self.shop.run(table, day, **more)
        assert report.exit_code in endings, report.message
        assert report.rows.are_conserved, report.rows
        return report

    def _load(self, day: int) -> None:
        torn = {file for file in self.torn if file[0] == day}
        # After some tries bronze goes on without a torn file, though nobody has decided so.
        self._run(BRONZE, day, endings=(ExitCode.OK, ExitCode.BAD_INPUT) if torn else (ExitCode.OK,))
        sound = {file: lines for file, lines in self.landing.items() if file[0] == day and file not in torn}
        self.bronze |= sound
        self.failed = (self.failed - sound.keys()) | torn
        self.merged.clear()
        self._check_bronze()

    def _merge(self, table: SilverModel, day: int, **more: Any) -> None:
        if table.is_snapshot and (self.failed or self.empty_days()):
            self._merge_what_counts(table, day, **more)
            return
        self._run(table.table, day, **more)
        table.merge(self.bronze)
        self.merged.add(table.table)
        table.check(self.shop)

    def _merge_what_counts(self, table: SilverModel, day: int, **more: Any) -> None:
        """Merge while some snapshots do not count: no key goes that the last one which counts has delivered."""
        waits = (ExitCode.OK, ExitCode.NOT_READY, ExitCode.DELETES_REFUSED)
        before = set(table.found(self.shop)) if is_table(self.shop.paths.table(table.table)) else set()
        self._run(table.table, day, endings=waits, **more)
        table.adopt(self.shop)
        waiting = {day for day, _ in self.failed} | set(self.empty_days())
        whole = {other for other, _ in self.bronze} - waiting
        if not more and whole:
            lines = [line for (other, _), of_file in self.bronze.items() for line in of_file if other == max(whole)]
            delivered = {line.key for line in lines if isinstance(line, Told)}
            assert not (before - set(table.rows)) & delivered
        elif not more:
            assert before <= set(table.rows), "nothing that counts says that a key is gone"

    def _check_bronze(self) -> None:
        """Every line of every file is in bronze once, or in its quarantine once."""
        rows = self.shop.rows(BRONZE, "_source_file", *COLUMNS)
        found = Counter((file.rpartition("/")[2], *values) for file, *values in map(_in_words, rows))
        lines = [(name, line) for (_, name), of_file in self.bronze.items() for line in of_file]
        assert found == Counter((name, *line.as_record().values()) for name, line in lines if isinstance(line, Told))
        refused = Counter(row["record"] for row in self.shop.quarantine(BRONZE))
        assert refused == Counter(line for _, line in lines if isinstance(line, str))


def _in_words(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of bronze, with its instant as the source writes it."""
    return tuple(value.strftime("%Y-%m-%dT%H:%M:%SZ") if hasattr(value, "hour") else value for value in row)
