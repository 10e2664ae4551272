"""The places where a test kills a process: after each step of the protocol, between its records, during a write.

The production code does not know of this: the driver wraps the function of the step before it begins.
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
RESULT_RECORDED = "between the result of a gate and its figures"
BEFORE_REPORT = "before the report"
COLUMNS_RECORDED = "after the record of new columns"
COLUMNS_ADDED = "after the statement that adds them"
BEFORE_REPLAY = "before the record of a replay"
FIRST_REPLAY_RECORDED = "after the record of the first replay"
REPLAYS_RECORDED = "after the record of all replays"
SLOW_WRITE_S = 4
"""The seconds for which the server delays a write during which the driver dies."""
SLOW_ROW = {"order_id": "o1", "day": "2013-01-01"}
"""The delayed row: an order, or a day of gold."""

BEFORE_PINNING = "before the rows of a replay are pinned"
ROWS_PINNED = "after the rows of a replay are pinned"
FIXES_RECORDED = "after the record of the fixes"
REFUSALS_RECORDED = "between the record of refused rows and of replayed rows"
OUTCOME_RECORDED = "between the outcome of each row and the closing"
RESTORE_INTENT = "after the intent of a restore"
RESTORED = "after the commit of a restore"
RESTORE_RECORDED = "after the record of this commit"
QUARANTINE_PUT_BACK = "after the restore of the quarantine"
TOMBSTONES_PUT_BACK = "after the restore of the tombstones"
RESTORE_CLOSED = "after the closing of a restore"
RESTORE_PLACES = (
    RESTORE_INTENT,
    RESTORED,
    RESTORE_RECORDED,
    QUARANTINE_PUT_BACK,
    TOMBSTONES_PUT_BACK,
    RESTORE_CLOSED,
)
"""All places of the restore after a refused version, in their order."""

REBUILD_RECORDED = "after the record of a rebuild"
BUILT = "after the build in a separate folder"
SECONDARY_ROWS_COPIED = "after the copy of the secondary rows"
SWITCH_RECORDED = "after the record of the rows of the switch"
IN_THE_SWITCH = "while the server writes the switch"
SWITCHED = "after the commit of the switch"
SWITCH_CLOSED = "after the closing of the switch"
REBUILD_DONE = "after the record that a rebuild is done"
REBUILD_PLACES = (
    REBUILD_RECORDED,
    BUILT,
    SECONDARY_ROWS_COPIED,
    SWITCH_RECORDED,
    SWITCHED,
    SWITCH_CLOSED,
    REBUILD_DONE,
)
"""All places of a rebuild, in their order, without IN_THE_SWITCH: after that the server may commit or not."""

CANCELLED = "after the record that a rebuild is cancelled"
UNDO_INTENT = "after the intent of an undo"
UNDO_RECORDED = "after the record of the coming commit"
UNDO_PLACES = (UNDO_INTENT, UNDO_RECORDED, SWITCHED, SWITCH_CLOSED)
"""All places of the undo of a rebuild, in their order."""

QUARANTINE_PLACES = (
    FIXES_RECORDED,
    BEFORE_PINNING,
    ROWS_PINNED,
    Step.INTENT,
    IN_THE_WRITE,
    Step.COMMIT,
    Step.RECORDED,
    REFUSALS_RECORDED,
    OUTCOME_RECORDED,
    Step.CLOSED,
    Step.CERTIFICATE,
    BEFORE_REPORT,
)
"""All places of a replay of quarantined rows that are fixed first, in their order."""

FILE_PLACES = (
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
Recorded = Intent | Winner | Sequence[Winner]


def kill_at(place: str, die: Die) -> None:
    """Arrange a call of `die` for the moment at which the process comes to `place`."""
    if place != NOWHERE:
        (_AFTER[Step(place)] if place in set(Step) else _AT[place])(die)


def steps_before(place: str, table: str) -> list[Step]:
    """Return the steps that a batch of `table` has done before its driver dies at `place`."""
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


def _after_secondary(kind: str) -> Callable[[Die], None]:
    def patch(die: Die) -> None:
        for module in (quarantine, silver):
            _after(module, "write_once", die, lambda _, table, *more: kind in table.name)

    return patch


def _slow_down_the_write(die: Die) -> None:
    """Delay the write or merge on the server; meanwhile the driver dies."""
    append, replace, merge = bronze.append, bronze.replace_where, silver.merge_changes

    bronze.append = lambda rows, path: append(_slowed(rows, die), path)
    for layer in (bronze, gold):
        layer.replace_where = lambda rows, *more: replace(_slowed(rows, die), *more)
    silver.merge_changes = lambda session, path, changes, *more: merge(session, path, _slowed(changes, die), *more)


def _slowed(frame: DataFrame, die: Die, which: str = "") -> DataFrame:
    threading.Timer(SLOW_WRITE_S / 2, die).start()
    wait = f"reflect('java.lang.Thread', 'sleep', {SLOW_WRITE_S * 1000}L) = 'null'"
    key = next(name for name in SLOW_ROW if name in frame.columns)
    return frame.where(f"CASE WHEN {which or f'{key} = {SLOW_ROW[key]!r}'} THEN {wait} ELSE true END")


def _has_event(event: FileEvent | RowEvent) -> Condition:
    return lambda _, events: bool(events) and events[0]["event"] == event


def _has_result(_: object, events: Sequence[dict[str, object]]) -> bool:
    """Whether the ledger records the result of a gate."""
    return bool(events) and "result" in events[0]


def _of_a_restore(_: object, recorded: Recorded, *more: object) -> bool:
    """Whether the ledger records a restore."""
    return any(intent.sources.restores is not None for intent in _intents(recorded))


def _of_a_switch(_: object, recorded: Recorded, *more: object, **named: object) -> bool:
    """Whether the ledger records the commit of a rebuild, or of its undo."""
    return any(intent.sources.rebuild for intent in _intents(recorded))


def _intents(recorded: Recorded) -> list[Intent]:
    winners = [recorded] if isinstance(recorded, Intent | Winner) else recorded
    return [winner.intent if isinstance(winner, Winner) else winner for winner in winners]


def _slow_down_the_switch(die: Die) -> None:
    """Delay the switch on the server; meanwhile the driver dies."""
    stamped, replace = switching.with_stamp, switching.replace_rows

    def slow(*args: Any) -> Winner:
        switching.with_stamp = lambda rows, intent: _slowed(stamped(rows, intent), die, "true")
        return replace(*args)

    for module in (switching, undoing):
        module.replace_rows = slow


def _restores_folder(folder: str) -> Condition:
    return lambda path, *more: folder in path.parts


_WRITERS = (bronze.BronzeIngest, silver.SilverMerge, gold.GoldAggregate)
_AFTER: dict[Step, Callable[[Die], object]] = {
    Step.INTENT: lambda die: _after(Ledger, "record_intent", die),
    Step.COMMIT: lambda die: [_after(work, "write", die) for work in _WRITERS],
    Step.RECORDED: lambda die: _after(Ledger, "record_committed", die, lambda _, winners: bool(winners)),
    Step.QUARANTINE: _after_secondary("_quarantine."),
    Step.TOMBSTONES: _after_secondary("_tombstones."),
    Step.CLOSED: lambda die: _after(Ledger, "record_closed", die),
    Step.CERTIFICATE: lambda die: _after(Gates, "record", die),
}

_AT: dict[str, Callable[[Die], object]] = {
    BEFORE_INTENT: lambda die: _before(Ledger, "record_intent", die),
    FILES_PLANNED: lambda die: _after(OpsTable, "append", die, _has_event(FileEvent.PLANNED)),
    IN_THE_WRITE: _slow_down_the_write,
    FILES_LOADED: lambda die: _after(OpsTable, "append", die, _has_event(FileEvent.LOADED)),
    RESULT_RECORDED: lambda die: _after(OpsTable, "append", die, _has_result),
    BEFORE_REPORT: lambda die: _before(JobReport, "save", die),
    COLUMNS_RECORDED: lambda die: _after(NewColumns, "record", die, lambda *args, **_: bool(args[3])),
    COLUMNS_ADDED: lambda die: _after(tables, "_add_columns", die),
    BEFORE_REPLAY: lambda die: _before(Ledger, "record_files", die),
    REPLAYS_RECORDED: lambda die: _after(cli_replay, "record_replays", die),
    FIRST_REPLAY_RECORDED: lambda die: _after(Ledger, "record_files", die),
    FIXES_RECORDED: lambda die: _after(QuarantineEvents, "record_fixes", die),
    BEFORE_PINNING: lambda die: _before(QuarantineEvents, "pin", die),
    ROWS_PINNED: lambda die: _after(QuarantineEvents, "pin", die),
    REFUSALS_RECORDED: lambda die: _after(OpsTable, "append", die, _has_event(RowEvent.REFUSED)),
    RESTORE_INTENT: lambda die: _after(Ledger, "record_intent", die, _of_a_restore),
    RESTORED: lambda die: _after(restore, "_restore", die),
    RESTORE_RECORDED: lambda die: _after(Ledger, "record_committed", die, _of_a_restore),
    QUARANTINE_PUT_BACK: lambda die: _after(restore, "_restore_secondary", die, _restores_folder("silver_quarantine")),
    TOMBSTONES_PUT_BACK: lambda die: _after(restore, "_restore_secondary", die, _restores_folder("silver_tombstones")),
    RESTORE_CLOSED: lambda die: _after(Ledger, "record_closed", die, _of_a_restore),
    REBUILD_RECORDED: lambda die: _after(Rebuilds, "start", die),
    BUILT: lambda die: _after(StagedBuild, "build", die),
    SECONDARY_ROWS_COPIED: lambda die: _after(switching.Switch, "_copy_secondary_rows", die),
    SWITCH_RECORDED: lambda die: _after(switching.Switch, "_record", die),
    IN_THE_SWITCH: _slow_down_the_switch,
    SWITCHED: lambda die: [_after(module, "replace_rows", die) for module in (switching, undoing)],
    SWITCH_CLOSED: lambda die: _after(Ledger, "record_closed", die, _of_a_switch),
    REBUILD_DONE: lambda die: _after(Rebuilds, "record", die, lambda _, event, *more: event == RebuildEvent.DONE),
    CANCELLED: lambda die: _after(Rebuilds, "record", die, lambda _, event, *more: event == RebuildEvent.CANCELLED),
    UNDO_INTENT: lambda die: _after(Ledger, "record_intent", die, _of_a_switch),
    UNDO_RECORDED: lambda die: _after(Ledger, "record_committed", die, _of_a_switch),
    OUTCOME_RECORDED: lambda die: _after(QuarantineEvents, "record_outcome", die),
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
"""Place that is no step -> the last step before it."""
