"""A lakehouse to which anything happens: deliveries, runs that die, other specs, replays, rebuilds, undos, refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

from millrace.contracts.job.args import Job
from millrace.contracts.job.requests import QuarantineRequest, RowFilter
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.control.gates.gates import Gates
from millrace.control.log.delta_log import commits_after, latest_version
from millrace.errors import ExitCode
from tests.support.any_change import changing_tables, model
from tests.support.any_change.changing_tables import BRONZE, GOLD, HISTORY, LAST, NOTES, SILVER, SOURCE, TABLES
from tests.support.any_change.landing import Landing
from tests.support.killed_drivers import places as at
from tests.support.killed_drivers.drivers import AnyDrivers, DriverEnd
from tests.support.killed_drivers.scenarios import AFTER_COMMIT_OF_REPLAY, BEFORE_COMMIT_OF_REPLAY
from tests.support.killed_drivers.steps import Step, steps_of
from tests.support.lakehouse import Lakehouse
from tests.support.silver.silver_models import differences

DAYS = range(1, 4)
STEPS = {
    **{"deliver": 6, "replace": 2, "run": 12, "run_all": 3, "reprocess": 2, "change_spec": 5, "move_rows": 1},
    **{"fix": 2, "replay": 1, "rebuild": 2, "undo": 2, "refuse": 2},
}
"""Step -> its share."""
REPLAY_PLACES = (*BEFORE_COMMIT_OF_REPLAY, Step.COMMIT, Step.RECORDED, *AFTER_COMMIT_OF_REPLAY)


class ChangingShop:
    """One bronze, two silver and two gold tables of an empty lakehouse, and what the model says of each version.

    Jobs are run by one of `drivers`, nearly always by the first; `chance` chooses.

    Attributes:
        states: table -> version -> what the model says of this version and of the next ones without an entry.
        statuses: (table, its id, refused row, its stamp) -> its status, and whether a person has fixed it.
        rebuilt: table -> its version before its last rebuild, unless that was undone.
        done: step -> how often it was done; also kills, and those by a signal.
        trace: all that was done.
    """

    def __init__(self, shop: Lakehouse, drivers: Sequence[AnyDrivers], chance: Random) -> None:
        self.shop, self.drivers, self.chance, self.specs = shop, drivers, chance, changing_tables.Specs()
        self.landing, self._number = Landing(chance), count(1).__next__
        first: dict[str, Any] = dict.fromkeys(GOLD, ())
        first |= {BRONZE: model.Bronze(), LAST: model.Silver(False), HISTORY: model.Silver(True)}
        self.states: dict[str, dict[int, Any]] = {table: {-1: state} for table, state in first.items()}
        self.statuses: dict[tuple[Any, ...], tuple[RowStatus, bool]] = {}
        self.rebuilt, self.done, self.trace = dict[str, int](), Counter[str](), list[str]()

    def do(self, steps: int) -> None:
        """Do so many steps, then all that is left to do; compare each table after each of its runs."""
        try:
            for day in DAYS:
                self._deliver(*self.landing.new_file(day))
            self._write_specs()
            self.run_all(kill=False)
            for step in self.chance.choices(list(STEPS), weights=STEPS.values(), k=steps):
                self.trace.append(step)
                getattr(self, step)()
                self.done[step] += 1
            self.run_all(kill=False)
            for table in GOLD:
                assert self.shop.run_well(1, table, job=Job.TABLE_VERIFY).details.get("differing", 0) == 0
        except AssertionError as error:
            error.add_note("\n".join(self.trace))
            raise

    def deliver(self) -> None:
        """Deliver a new file."""
        self._deliver(*self.landing.new_file(self.chance.choice(DAYS)))

    def replace(self) -> None:
        """Deliver a file again, with half of its lines and with others; an open batch needs it as it was."""
        self._run(BRONZE, 1, kill=False)
        self._deliver(*self.landing.changed_file())

    def run(self) -> None:
        """Run a table for a day."""
        self._run(self.chance.choice(TABLES), self.chance.choice(DAYS))

    def run_all(self, *, kill: bool = True) -> None:
        """Run all days and tables."""
        for table, day in [*((BRONZE, day) for day in DAYS), *((table, 1) for table in TABLES[1:])]:
            self._run(table, day, kill=kill)

    def reprocess(self) -> None:
        """Read a day again."""
        self._run(self.chance.choice(SILVER), self.chance.choice(DAYS), again=True)

    def change_spec(self) -> None:
        """Change a rule, what deletes, a value, or a measure or `where` of gold."""
        self.specs.change(self.chance.choice(TABLES), self.chance)
        self._write_specs()

    def move_rows(self) -> None:
        """Change what a key or a sequence is: no run writes the table until it is rebuilt."""
        table = self.chance.choice(SILVER)
        self.specs.move_rows(table, self.chance)
        self._write_specs()
        self._run(table, 1)
        self._rebuild(table)

    def fix(self) -> None:
        """Fix all amounts that wait in a table, and replay these rows."""
        self._replay({"amount": str(model.FIXED_AMOUNT)}, "amount")

    def replay(self) -> None:
        """Replay all rows that wait in a table as they are."""
        self._replay({}, "")

    def rebuild(self) -> None:
        """Rebuild bronze or silver, perhaps with what reads it."""
        self._rebuild(self.chance.choice((BRONZE, *SILVER)), downstream=self.chance.random() < 0.3)

    def undo(self) -> None:
        """Undo the last rebuild of a table."""
        if not (tables := sorted(self.rebuilt.keys() - GOLD)):
            return
        table, stamp = self.chance.choice(tables), self._number()
        state = self._state(table, self.rebuilt.pop(table))
        if table == BRONZE:
            state = replace(state, rows=frozenset(replace(row, stamp=stamp) for row in state.rows))
        else:
            self.specs.of[table] = state.spec
            self._write_specs()
        end = self._until_it_ends(table, at.UNDO_PLACES, undo=True)
        assert end.code in (ExitCode.OK, ExitCode.NOT_READY), end.output  # it may have died when all was done
        self._compare(table, state)

    def refuse(self) -> None:
        """Let a gate refuse what is new in a silver table, and perhaps restore the table."""
        table = self.chance.choice(SILVER)
        if not self._is_misfit(table) and self._merged(table).states != self._certified(table).states:
            self._write_specs(table, changing_tables.NEVER, on_refusal=self.chance.choice(["restore", "keep"]))
            self._run(table, 1, is_refused=True)
            self._write_specs()

    def _deliver(self, file: model.File, lines: model.Lines) -> None:
        self.trace.append(f"  {file}: {[line if isinstance(line, str) else tuple(line) for line in lines]}")
        self.shop.deliver(*file, [line if isinstance(line, str) else line._asdict() for line in lines])

    def _run(self, table: str, day: int, *, again: bool = False, kill: bool = True, is_refused: bool = False) -> None:
        """Run a table; its driver may die, and its next run ends what it has left."""
        before, certified = latest_version(self.shop.paths.table(table)), self._certified(table)
        planned = self._planned(table, day, again=again)
        places = (at.BEFORE_INTENT, *steps_of(table), at.BEFORE_REPORT, *(at.RESTORE_PLACES if is_refused else ()))
        drivers, dies = self._death(places, kill=kill)
        end = drivers.run(self.shop, table, day, dies=dies, reprocess=again)
        self.trace.append(f"  {table}, day {day}, {dies}: {end.code}")
        new = [commit for commit in commits_after(self.shop.paths.table(table), before) if commit.txns]
        batches = iter(planned)
        for commit in new:
            self.states[table][commit.version] = certified if commit.operation == "RESTORE" else next(batches)
        if end.code < 0:
            self._count_kill(drivers)
        elif self._is_misfit(table):
            assert (end.code, new) == (ExitCode.BAD_INPUT, []), end.output
        else:
            assert end.code == ExitCode.OK, end.output
            if not is_refused:
                self._compare(table, [self._state(table), *planned][-1])
            assert self._certified(table) == (certified if is_refused else self._state(table)), table

    def _planned(self, table: str, day: int, *, again: bool) -> list[Any]:
        """Return what the batches of a run leave, one after the other: in bronze, replaced files come first."""
        if table != BRONZE:
            return [self._merged(table, day if again else None) if table in SILVER else self._computed(table)]
        first, states = self._state(table), []
        changed = {file: new for file, new in self.landing.files.items() if first.files.get(file) != new[0]}
        for is_known in (True, False):
            files = {file: new for file, new in changed.items() if file[0] == day and (file in first.files) == is_known}
            if files:
                states.append([first, *states][-1].load(files, self.specs.most, self._number()))
        return states

    def _merged(self, table: str, again: int | None = None) -> Any:
        before, bronze = self._state(table), self._certified(BRONZE)
        after = before.merge(bronze, self.specs.of[table], again)
        if before.read[0] != bronze.id:
            self._decided_before(table, before, after)
        return after

    def _decided_before(self, table: str, before: Any, after: Any) -> None:
        """Take over what was decided about the refused rows of a table; of a rebuilt one, only that they are fixed."""
        decided = {row.origin: self._status(table, before, row) for row in before.refused}
        for row, stamp in after.refused.items():
            status, is_fixed = decided.get(row.origin, (RowStatus.OPEN, False))
            if before.id != after.id:
                status = RowStatus.FIXED if is_fixed else RowStatus.OPEN
            self.statuses[table, after.id, row, stamp] = status, is_fixed

    def _computed(self, table: str) -> tuple[Any, ...]:
        source, specs = self._certified(SOURCE[table]), self.specs
        if table == NOTES:
            return tuple(model.rows_by_note(source, specs.least, specs.factor))
        return tuple(model.rows_by_key(source, is_least=specs.is_least))

    def _replay(self, assign: dict[str, str], reason: str) -> None:
        table = self.chance.choice((BRONZE, *SILVER))
        if self._is_misfit(table):
            return
        state = self._state(table)
        waiting = {row: self._status(table, state, row) for row in state.refused}
        tried = {
            row: bool(assign) or is_fixed
            for row, (status, is_fixed) in waiting.items()
            if status in PENDING and not (reason and (isinstance(row.line, str) or row.line.order_id is None))
        }
        asked = QuarantineRequest(assign=assign, said_by="ann", rows=RowFilter(reason=reason))
        end = self._until_it_ends(table, REPLAY_PLACES, job=Job.QUARANTINE_REPLAY, request=asked)
        assert end.code == ExitCode.OK, end.output
        now = {row: row.fixed(is_fixed) for row, is_fixed in tried.items()}
        passed = {row: is_fixed for row, is_fixed in tried.items() if not self._is_refused(table, now[row])}
        if table == BRONZE:
            new = state.replay([now[row] for row in passed], self._number()) if passed else state
        else:
            new = state.replay(passed, self.specs.of[table])
        for row, is_fixed in tried.items():
            status = RowStatus.REPLAYED if row in passed else RowStatus.OPEN
            self.statuses[table, state.id, row, state.refused[row]] = status, is_fixed
        self._compare(table, new)

    def _rebuild(self, table: str, *, downstream: bool = False) -> None:
        tables = [table, *({BRONZE: TABLES[1:], LAST: (NOTES,)}.get(table, GOLD[1:]) if downstream else ())]
        before = {each: latest_version(self.shop.paths.table(each)) for each in tables}
        end = self._until_it_ends(table, at.REBUILD_PLACES, downstream=downstream)
        assert end.code == ExitCode.OK, end.output
        for each in tables:
            # If a driver died when all was done, the next one has rebuilt the table once more.
            switches = [new.version for new in commits_after(self.shop.paths.table(each), before[each]) if new.txns]
            old, number, self.rebuilt[each] = self._state(each, before[each]), self._number(), switches[-1] - 1
            if each == BRONZE:
                days = {day for day, _ in old.files}
                files = {file: new for file, new in self.landing.files.items() if file[0] in days}
                new = model.Bronze(id=number).load(files, self.specs.most, number)
                self._decided_before(each, old, new)
            elif each in GOLD:
                new = self._computed(each)
            else:
                new = model.Silver(old.keeps_history, id=number).merge(self._certified(BRONZE), self.specs.of[each])
                self._decided_before(each, old, new)
            self.states[each] |= dict.fromkeys(switches, new)
            self._compare(each, new)

    def _until_it_ends(self, table: str, places: Sequence[str], **asked: Any) -> DriverEnd:
        """Repeat a command until it does not die."""
        while True:
            drivers, dies = self._death((*places, at.BEFORE_REPORT))
            end = (drivers.run if "job" in asked else drivers.rebuild)(self.shop, table, dies=dies, **asked)
            self.trace.append(f"  {table}, {asked}, {dies}: {end.code}")
            if end.code >= 0:
                return end
            self._count_kill(drivers)

    def _death(self, places: Sequence[str], *, kill: bool = True) -> tuple[AnyDrivers, str]:
        """Return what runs a job, and the place at which it dies, perhaps."""
        if not kill or self.chance.random() < 0.5:
            return self.drivers[0], at.NOWHERE
        return self.drivers[self.chance.random() < 0.1], self.chance.choice(places)

    def _count_kill(self, drivers: AnyDrivers) -> None:
        self.done["killed" if drivers is self.drivers[0] else "killed by a signal"] += 1

    def _compare(self, table: str, state: Any) -> None:
        """Take this as the state of the newest version, and compare it with the table."""
        self.states[table][latest_version(self.shop.paths.table(table))] = state
        found = changing_tables.stored(self.shop, table)
        expected = changing_tables.expected_of(table, state, lambda row: self._status(table, state, row)[0])
        wrong = {part: differences(found[part], expected[part]) for part in expected}
        assert not any(wrong.values()), f"{table}: each (stored, expected): {wrong}"

    def _state(self, table: str, version: int | None = None) -> Any:
        """Return what the model says of a version, by default of the newest one."""
        at_most = latest_version(self.shop.paths.table(table)) if version is None else version
        return self.states[table][max(each for each in self.states[table] if each <= at_most)]

    def _certified(self, table: str) -> Any:
        certified = Gates(self.shop.paths).certified(table)
        return self._state(table, -1 if certified is None else certified)

    def _is_misfit(self, table: str) -> bool:
        return table in SILVER and self.specs.of[table][-2:] != self._state(table).spec[-2:]

    def _is_refused(self, table: str, row: model.Row) -> bool:
        return row.is_refused_by_bronze(self.specs.most) if table == BRONZE else self.specs.of[table].refuses(row.line)

    def _status(self, table: str, state: Any, row: model.Row) -> tuple[RowStatus, bool]:
        return self.statuses.get((table, state.id, row, state.refused[row]), (RowStatus.OPEN, False))

    def _write_specs(self, table: str = "", rule: dict[str, Any] | None = None, **keys: Any) -> None:
        """Write all specs; that of `table` with another rule and other keys."""
        self.trace.append(f"  {self.specs}")
        self.shop.specs(*self.specs.documents())
        if rule:
            self.shop.change_spec(table, lambda spec: {**spec, **keys, "expectations": [*spec["expectations"], rule]})
