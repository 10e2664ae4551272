"""Orders that go from landing files through bronze into silver tables, in any order of steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from millrace.contracts.job.args import Job
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table
from millrace.control.maintenance import file_layout
from millrace.errors import Outcome
from tests.support.lakehouse import Lakehouse
from tests.support.restored import restore_any
from tests.support.silver.orders import COLUMNS, OrderRow, orders_document
from tests.support.silver.silver_models import SilverModel

BRONZE = "bronze.orders"
DAYS = range(1, 6)
Line = OrderRow | str
Files = dict[tuple[int, str], list[Line]]
"""(day, name) of each landing file -> its lines; a text is a broken line."""


class SilverMachine:
    """One bronze table, and silver tables that read it, each at its own pace.

    After every run of silver the table must equal its model, and no row may be lost.

    Attributes:
        landing: the landing files.
        bronze: those that bronze has loaded, as it has loaded them.
        bronze_at: the same at the versions of bronze that a run or a repair has made.
        merged: the tables that have read all of bronze.
        done: step -> number of its runs.
    """

    STEPS = ("deliver", "replace", "load", "merge", "reprocess", "run_again", "optimize", "rebuild", "restore")

    def __init__(
        self, shop: Lakehouse, tables: Sequence[SilverModel], content: Callable[[Random], list[Line]], chance: Random
    ) -> None:
        self.shop, self.tables, self.content, self.chance = shop, list(tables), content, chance
        self.landing: Files = {}
        self.bronze: Files = {}
        self.bronze_at = dict[int, Files]()
        self.merged = set[str]()
        self.done = Counter[str]()
        shop.specs(orders_document(), *(table.document() for table in tables))

    def run(self, steps: int) -> None:
        """Do random steps until each was done and so many were, then load and merge everything."""
        while sum(self.done.values()) < steps or set(+self.done) < set(self.STEPS):
            getattr(self, self.chance.choice(self.STEPS))()
            assert sum(self.done.values()) < 5 * steps, self.done
        while self.late_days():
            self.load()
        for table in self.tables:
            if table.table not in self.merged:
                self._merge(table)

    def deliver(self) -> None:
        """Deliver a new file for any day."""
        if len(self._files_to_load()) < 2:
            self._deliver(self.chance.choice(DAYS), f"{len(self.landing)}.json", self.content(self.chance))
            self.done["deliver"] += 1

    def replace(self) -> None:
        """Deliver a loaded file again with some of its lines and some new ones; sometimes without any."""
        if self.bronze:
            file = self.chance.choice(sorted(self.bronze))
            kept = [line for line in self.landing[file] if self.chance.random() < 0.6]
            is_empty = self.chance.random() < 0.1
            self._deliver(*file, [] if is_empty else [*kept, *self.content(self.chance)[:20]])
            self.done["replace"] += 1

    def load(self) -> None:
        """Load a day with files that bronze has not loaded."""
        if days := self.late_days():
            day = self.chance.choice(days)
            self.shop.run_well(day, BRONZE)
            self.bronze |= {file: lines for file, lines in self.landing.items() if file[0] == day}
            self._bronze_has_changed()
            self.done["load"] += 1

    def merge(self) -> None:
        """Merge a table that has not read all of bronze, for any day."""
        behind = [table for table in self.tables if table.table not in self.merged]
        if behind and self.bronze:
            self._merge(self.chance.choice(behind))
            self.done["merge"] += 1

    def reprocess(self) -> None:
        """Let a table read a day again."""
        if self.bronze:
            self._merge(self.chance.choice(self.tables), reprocess=True)
            self.done["reprocess"] += 1

    def run_again(self) -> None:
        """Run a table without new data, and check that it writes nothing."""
        loaded = sorted({day for day, _ in self.bronze} - set(self.late_days()))
        settled = [*((BRONZE, day) for day in loaded), *((table, day) for table in sorted(self.merged) for day in DAYS)]
        if settled:
            table, day = self.chance.choice(settled)
            before = latest_version(self.shop.paths.table(table))
            assert self.shop.run_well(day, table).outcome is Outcome.NO_OP
            assert latest_version(self.shop.paths.table(table)) == before
            self.done["run_again"] += 1

    def optimize(self) -> None:
        """Optimize bronze, and each silver table that has read all of it."""
        if self.bronze and len(DeltaTable(str(self.shop.paths.table(BRONZE))).file_uris()) > 1:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(file_layout, "LEAST_SMALL_FILES", 2)
                for table in (BRONZE, *sorted(self.merged)):
                    report = self.shop.run_well(1, table, job=Job.TABLE_OPTIMIZE)
                    self.done["optimize"] += report.outcome is Outcome.COMMITTED

    def rebuild(self) -> None:
        """Rebuild bronze alone, from the present content of the files of all days that it has loaded."""
        if self.bronze:
            assert self.shop.rebuild(BRONZE).outcome is Outcome.COMMITTED
            days = {day for day, _ in self.bronze}
            self.bronze = {file: lines for file, lines in self.landing.items() if file[0] in days}
            self._bronze_has_changed()
            self.done["rebuild"] += 1

    def restore(self) -> None:
        """Restore bronze or a silver table to an earlier version; the next runs load and merge again."""
        table = self.chance.choice((BRONZE, *(table.table for table in self.tables)))
        if not is_table(self.shop.paths.table(table)):
            return
        version = restore_any(self.shop, table, self.chance)
        if version is None:
            return
        if table == BRONZE:
            self.bronze = dict(self.bronze_at[max(at for at in self.bronze_at if at <= version)])
            self._bronze_has_changed()
        self.merged.discard(table)
        self.done["restore"] += 1

    def late_days(self) -> list[int]:
        """Return the days with files whose present content bronze has not loaded."""
        return sorted({day for day, _ in self._files_to_load()})

    def _files_to_load(self) -> list[tuple[int, str]]:
        return [file for file, lines in self.landing.items() if self.bronze.get(file) != lines]

    def _deliver(self, day: int, name: str, lines: list[Line]) -> None:
        self.shop.deliver(day, name, [line.as_record() if isinstance(line, OrderRow) else line for line in lines])
        self.landing[day, name] = lines

    def _merge(self, table: SilverModel, **more: Any) -> None:
        self.shop.run_well(self.chance.choice(DAYS), table.table, **more)
        table.merge(self.bronze)
        self.merged.add(table.table)
        table.check(self.shop)

    def _bronze_has_changed(self) -> None:
        self.bronze_at[latest_version(self.shop.paths.table(BRONZE))] = dict(self.bronze)
        self.merged.clear()
        self._check_bronze()

    def _check_bronze(self) -> None:
        """Check that every line of every file is in bronze once, or in its quarantine once."""
        rows = self.shop.rows(BRONZE, "_source_file", *COLUMNS)
        loaded = Counter((file.rpartition("/")[2], *map(_in_words, values)) for file, *values in rows)
        lines = [(name, line) for (_, name), of_file in self.bronze.items() for line in of_file]
        assert loaded == Counter(
            (name, *line.as_record().values()) for name, line in lines if isinstance(line, OrderRow)
        )
        refused = Counter(row.record for row in self.shop.waiting(BRONZE))
        assert refused == Counter(line for _, line in lines if isinstance(line, str))


def _in_words(value: Any) -> Any:
    """Return a value of bronze, a time as the source writes it."""
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if hasattr(value, "hour") else value
