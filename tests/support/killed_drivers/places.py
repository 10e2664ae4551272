"""Where a process can be made to die: right after each step of the protocol, between its records, during a write.

The production code knows nothing of this: a driver that is to die wraps the step's own function before it begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from include.cli import replay as cli_replay
from include.contracts.job.report import JobReport
from include.control.gates import restore
from include.control.gates.gates import Gates
from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.ledger.new_columns import NewColumns
from include.control.ledger.ops_table import OpsTable
from include.control.ledger.rebuilds import RebuildEvent, Rebuilds
from include.control.log.batch import Intent, Winner
from include.control.quarantine.events import QuarantineEvents, RowEvent
from spark_jobs.delta_io import tables
from spark_jobs.layers.bronze import bronze
from spark_jobs.layers.gold import gold
from spark_jobs.layers.rebuild import switching, undoing
from spark_jobs.layers.rebuild.staged_builds import StagedBuild
from spark_jobs.layers.silver import silver
from spark_jobs.protocol import quarantine
from tests.support.killed_drivers.steps import Step, steps_of

NOWHERE = "nowhere"
BEFORE_INTENT = "before the intent"
FILES_PLANNED = "between the planned files and the intent"
IN_THE_WRITE = "while the server writes"
FILES_LOADED = "between the rows of the files and the closing"
BEFORE_REPORT = "before the report"
COLUMNS_RECORDED = "after the record of new columns"
COLUMNS_ADDED = "after the statement that adds them"
BEFORE_REPLAY = "before the record of a replay"
REPLAY_OF_ONE = "after the record of the first replay"
REPLAYS_RECORDED = "after the record of all replays"
SLOW_WRITE_S = 4
"""How long the server works on a write during which the driver dies, beyond what it takes anyway."""
SLOW = {"order_id": "o1", "day": "2013-01-01"}
"""The row that takes so long: an order, or a day of gold."""

BEFORE_PINNING = "before the rows of a replay are pinned"
PINNED = "after the rows of a replay are pinned"
FIXED = "after the record of what was mended"
HALF_TOLD = "between what was refused again and what was replayed"
TOLD = "between the outcome of each row and the closing"
RESTORE_INTENT = "after the intent of a restore"
RESTORED = "after the commit of a restore"
RESTORE_RECORDED = "after the record of this commit"
QUARANTINE_PUT_BACK = "after the quarantine was put back"
TOMBSTONES_PUT_BACK = "after the tombstones were put back"
RESTORE_CLOSED = "after the closing of a restore"
OF_RESTORES = (
    RESTORE_INTENT,
    RESTORED,
    RESTORE_RECORDED,
    QUARANTINE_PUT_BACK,
    TOMBSTONES_PUT_BACK,
    RESTORE_CLOSED,
)
"""All places of taking back a refused version, in their order."""

REBUILD_ASKED = "after the record of a rebuild"
BUILT = "after the build beside the table in use"
BROUGHT = "after what goes beside the table was brought"
WRITTEN_DOWN = "after all is written down of the rows to come"
IN_THE_SWITCH = "while the server writes the switch"
SWITCHED = "after the commit of the switch"
SWITCH_CLOSED = "after the closing of the switch"
REBUILD_DONE = "after the record that a rebuild is done"
OF_REBUILDS = (
    REBUILD_ASKED,
    BUILT,
    BROUGHT,
    WRITTEN_DOWN,
    SWITCHED,
    SWITCH_CLOSED,
    REBUILD_DONE,
)
"""All places of a rebuild, in their order; but for IN_THE_SWITCH, after which the server may commit or not."""

CANCELLED = "after the record that a rebuild is given up"
UNDO_INTENT = "after the intent of an undoing"
UNDO_WRITTEN_DOWN = "after the record of the commit to come"
OF_UNDOING = (UNDO_INTENT, UNDO_WRITTEN_DOWN, SWITCHED, SWITCH_CLOSED)
"""Likewise of undoing a rebuild."""

OF_QUARANTINE = (
    FIXED,
    BEFORE_PINNING,
    PINNED,
    Step.INTENT,
    IN_THE_WRITE,
    Step.COMMIT,
    Step.RECORDED,
    HALF_TOLD,
    TOLD,
    Step.CLOSED,
    Step.CERTIFICATE,
    BEFORE_REPORT,
)
"""All places of a replay of quarantined rows that are mended first, in their order."""

OF_FILES = (
    BEFORE_INTENT,
    FILES_PLANNED,
    Step.INTENT,
    IN_THE_WRITE,
    Step.COMMIT,
    Step.RECORDED,
    Step.QUARANTINE,
    FILES_LOADED,
    Step.CLOSED,
    BEFORE_REPORT,
)
"""All places of a bronze batch that loads landing files, in their order."""

Die = Callable[[], object]
Condition = Callable[..., bool]


def set_up(place: str, die: Die) -> None:
    """See to it that `die` is called when the process comes to `place`."""
    if place != NOWHERE:
        (_AFTER[Step(place)] if place in set(Step) else _AT[place])(die)


def steps_behind(place: str, table: str) -> list[Step]:
    """The steps that a batch of `table` has done when its driver dies at `place`, which comes during a batch."""
    last = _LAST_STEP.get(place, place)
    steps = steps_of(table)
    return steps[: steps.index(Step(last)) + 1] if last else []


def _after(owner: Any, name: str, die: Die, when: Condition = lambda *_, **__: True) -> None:
    inner = getattr(owner, name)

    def and_die(*args: Any, **named: Any) -> Any:
        result = inner(*args, **named)
        if when(*args, **named):
            die()
        return result

    setattr(owner, name, and_die)


def _before(owner: Any, name: str, die: Die) -> None:
    setattr(owner, name, lambda *_, **__: die())


def _after_the_write(die: Die) -> None:
    _after(bronze.BronzeIngest, "write", die)
    _after(silver.SilverMerge, "write", die)
    _after(gold.GoldAggregate, "write", die)


def _after_secondary(kind: str) -> Callable[[Die], None]:
    def patch(die: Die) -> None:
        for module in (quarantine, silver):
            _after(module, "write_once", die, lambda _, table, *more: kind in table.name)

    return patch


def _slow_down_the_write(die: Die) -> None:
    """The frame that is written or merged takes its time on the server; meanwhile the driver dies."""
    append, replace, merge = bronze.append, bronze.replace_where, silver.merge_changes

    bronze.append = lambda rows, path: append(_slowed(rows, die), path)
    for layer in (bronze, gold):
        layer.replace_where = lambda rows, path, predicate: replace(_slowed(rows, die), path, predicate)
    silver.merge_changes = lambda session, path, changes, *more: merge(session, path, _slowed(changes, die), *more)


def _slowed(frame: DataFrame, die: Die, which: str = "") -> DataFrame:
    threading.Timer(SLOW_WRITE_S / 2, die).start()
    wait = f"reflect('java.lang.Thread', 'sleep', {SLOW_WRITE_S * 1000}L) = 'null'"
    key = next(name for name in SLOW if name in frame.columns)
    return frame.where(f"CASE WHEN {which or f'{key} = {SLOW[key]!r}'} THEN {wait} ELSE true END")


def _of_files(event: FileEvent | RowEvent) -> Condition:
    return lambda _, events: bool(events) and events[0]["event"] == event


def _of_a_restore(_: object, given: Intent | Winner | Sequence[Winner], *more: object) -> bool:
    """Whether the ledger is told of a restore."""
    said = [given] if isinstance(given, Intent | Winner) else given
    intents = [one.intent if isinstance(one, Winner) else one for one in said]
    return any(intent.sources.restores is not None for intent in intents)


def _of_a_switch(_: object, given: Intent | Winner | Sequence[Winner], *more: object) -> bool:
    """Whether the ledger is told of a rebuild's commit, or of its undoing."""
    said = [given] if isinstance(given, Intent | Winner) else given
    intents = [one.intent if isinstance(one, Winner) else one for one in said]
    return any(intent.sources.rebuild for intent in intents)


def _after_the_switch(die: Die) -> None:
    for module in (switching, undoing):
        _after(module, "replace_rows", die)


def _slow_down_the_switch(die: Die) -> None:
    """The rows that take the place of others take their time on the server; meanwhile the driver dies."""
    stamped, replace = switching.with_stamp, switching.replace_rows

    def slow(*args: Any) -> Winner:
        switching.with_stamp = lambda rows, intent: _slowed(stamped(rows, intent), die, "true")
        return replace(*args)

    for module in (switching, undoing):
        module.replace_rows = slow


def _put_back_in(folder: str) -> Condition:
    return lambda path, *more: folder in path.parts


_AFTER: dict[Step, Callable[[Die], None]] = {
    Step.INTENT: lambda die: _after(Ledger, "record_intent", die),
    Step.COMMIT: _after_the_write,
    Step.RECORDED: lambda die: _after(Ledger, "record_committed", die, lambda _, winners: bool(winners)),
    Step.QUARANTINE: _after_secondary("_quarantine."),
    Step.TOMBSTONES: _after_secondary("_tombstones."),
    Step.CLOSED: lambda die: _after(Ledger, "record_closed", die),
    Step.CERTIFICATE: lambda die: _after(Gates, "record", die),
}

_AT: dict[str, Callable[[Die], None]] = {
    BEFORE_INTENT: lambda die: _before(Ledger, "record_intent", die),
    FILES_PLANNED: lambda die: _after(OpsTable, "append", die, _of_files(FileEvent.PLANNED)),
    IN_THE_WRITE: _slow_down_the_write,
    FILES_LOADED: lambda die: _after(OpsTable, "append", die, _of_files(FileEvent.LOADED)),
    BEFORE_REPORT: lambda die: _before(JobReport, "save", die),
    COLUMNS_RECORDED: lambda die: _after(NewColumns, "record", die, lambda *args, **_: bool(args[3])),
    COLUMNS_ADDED: lambda die: _after(tables, "_add_columns", die),
    BEFORE_REPLAY: lambda die: _before(Ledger, "record_replayed", die),
    REPLAYS_RECORDED: lambda die: _after(cli_replay, "record_replays", die),
    REPLAY_OF_ONE: lambda die: _after(Ledger, "record_replayed", die),
    FIXED: lambda die: _after(QuarantineEvents, "record_fixes", die),
    BEFORE_PINNING: lambda die: _before(QuarantineEvents, "pin", die),
    PINNED: lambda die: _after(QuarantineEvents, "pin", die),
    HALF_TOLD: lambda die: _after(OpsTable, "append", die, _of_files(RowEvent.REFUSED)),
    RESTORE_INTENT: lambda die: _after(Ledger, "record_intent", die, _of_a_restore),
    RESTORED: lambda die: _after(restore, "_restore", die),
    RESTORE_RECORDED: lambda die: _after(Ledger, "record_committed", die, _of_a_restore),
    QUARANTINE_PUT_BACK: lambda die: _after(restore, "_restore_secondary", die, _put_back_in("silver_quarantine")),
    TOMBSTONES_PUT_BACK: lambda die: _after(restore, "_restore_secondary", die, _put_back_in("silver_tombstones")),
    RESTORE_CLOSED: lambda die: _after(Ledger, "record_closed", die, _of_a_restore),
    REBUILD_ASKED: lambda die: _after(Rebuilds, "start", die),
    BUILT: lambda die: _after(StagedBuild, "build", die),
    BROUGHT: lambda die: _after(switching.Switch, "_copy_secondary_rows", die),
    WRITTEN_DOWN: lambda die: _after(switching.Switch, "_record", die),
    IN_THE_SWITCH: _slow_down_the_switch,
    SWITCHED: _after_the_switch,
    SWITCH_CLOSED: lambda die: _after(Ledger, "record_closed", die, _of_a_switch),
    REBUILD_DONE: lambda die: _after(Rebuilds, "record", die, lambda _, event, *more: event == RebuildEvent.DONE),
    CANCELLED: lambda die: _after(Rebuilds, "record", die, lambda _, event, *more: event == RebuildEvent.CANCELLED),
    UNDO_INTENT: lambda die: _after(Ledger, "record_intent", die, _of_a_switch),
    UNDO_WRITTEN_DOWN: lambda die: _after(Ledger, "record_committed", die, _of_a_switch),
    TOLD: lambda die: _after(QuarantineEvents, "record_outcome", die),
}

_LAST_STEP = {
    BEFORE_INTENT: "",
    FILES_PLANNED: "",
    IN_THE_WRITE: Step.INTENT,
    COLUMNS_RECORDED: Step.INTENT,
    COLUMNS_ADDED: Step.INTENT,
    FILES_LOADED: Step.QUARANTINE,
    BEFORE_REPORT: Step.CERTIFICATE,
}
"""Place -> the last step that is done when it is come to, where it is none itself."""
