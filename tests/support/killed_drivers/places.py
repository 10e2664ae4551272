"""The places where a job dies in a test: after each step of the protocol, between its records, during a write.

The production code does not know of this: the function of the step is wrapped before the job begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.job.report import JobReport
from millrace.contracts.lake_path import LakePath
from millrace.control.gates.gates import Gates
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.new_columns import NewColumns
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.ledger.rebuilds import Rebuilds
from millrace.control.log.batch import Intent, Winner
from millrace.control.quarantine.events import QuarantineEvents, RowEvent
from millrace.control.repair import restoring
from millrace_spark.delta_io import tables
from millrace_spark.layers.bronze import bronze
from millrace_spark.layers.gold import gold
from millrace_spark.layers.rebuild import switching, undoing
from millrace_spark.layers.rebuild.staged_builds import StagedBuild
from millrace_spark.layers.silver import silver
from millrace_spark.protocol import quarantine
from millrace_spark.protocol.batches import BatchPlan
from tests.support.killed_drivers.steps import Step

NOWHERE = "nowhere"
SLOW_WRITE_S = 4
"""The seconds for which the server delays a write during which the driver dies."""
SLOW_ROW = {"order_id": "o1", "day": "2013-01-01"}
"""The delayed row: an order, or a day of gold."""

Die = Callable[[], object]
Arrange = Callable[[pytest.MonkeyPatch, Die], object]
"""Wraps a function so that it lets the job die."""

_AT: dict[str, Arrange] = {}
"""Place -> what lets a job die there."""

Condition = Callable[..., bool]
Recorded = Intent | Winner | Sequence[Winner]


def die_at(place: str, patches: pytest.MonkeyPatch, die: Die) -> None:
    """Arrange a call of `die` for the moment at which the job comes to `place`."""
    if place != NOWHERE:
        _AT[place](patches, die)


def _place(name: str, arrange: Arrange) -> str:
    _AT[name] = arrange
    return name


def judge_few_rows_by_change(patches: pytest.MonkeyPatch) -> None:
    """Let gates judge also the small tables of tests by what changed, as they do with large ones."""
    patches.setenv("LAKEHOUSE_GATE_READS", "changes")


def _after(owner: Any, name: str, when: Condition = lambda *_, **__: True) -> Arrange:
    def arrange(patches: pytest.MonkeyPatch, die: Die) -> None:
        inner = getattr(owner, name)

        def and_die(*args: Any, **named: Any) -> Any:
            result = inner(*args, **named)
            if when(*args, **named):
                die()
            return result

        patches.setattr(owner, name, and_die)

    return arrange


def _before(owner: Any, name: str) -> Arrange:
    return lambda patches, die: patches.setattr(owner, name, lambda *_, **__: die())


def _each(*arrangements: Arrange) -> Arrange:
    return lambda patches, die: [arrange(patches, die) for arrange in arrangements]


def _after_secondary(kind: str) -> Arrange:
    modules = (quarantine, silver)
    return _each(*(_after(module, "write_once", lambda _, table, *more: kind in table.name) for module in modules))


def _slow_down_the_write(patches: pytest.MonkeyPatch, die: Die) -> None:
    """Delay the write or merge on the server; meanwhile the driver dies."""
    append, replace, merge = bronze.append, bronze.replace_where, silver.merge_changes

    def slow_merge(session: SparkSession, path: LakePath, changes: DataFrame, *more: Any) -> None:
        merge(session, path, _slowed(changes, die), *more)

    patches.setattr(bronze, "append", lambda rows, path: append(_slowed(rows, die), path))
    for layer in (bronze, gold):
        patches.setattr(layer, "replace_where", lambda rows, *more: replace(_slowed(rows, die), *more))
    patches.setattr(silver, "merge_changes", slow_merge)


def _slowed(frame: DataFrame, die: Die, which: str = "") -> DataFrame:
    threading.Timer(SLOW_WRITE_S / 2, die).start()
    wait = f"reflect('java.lang.Thread', 'sleep', {SLOW_WRITE_S * 1000}L) = 'null'"
    key = next(name for name in SLOW_ROW if name in frame.columns)
    return frame.where(f"CASE WHEN {which or f'{key} = {SLOW_ROW[key]!r}'} THEN {wait} ELSE true END")


def _when_read(name: str, step: str) -> Arrange:
    """Let each job die that loads a landing file of this name, or reads it again, alone or with others."""

    def arrange(patches: pytest.MonkeyPatch, die: Die) -> None:
        inner = getattr(bronze.BronzeIngest, step)

        def step_or_die(*args: Any) -> Any:
            plans = (each for each in args if isinstance(each, BatchPlan))
            if any(file.path.endswith(f"/{name}") for plan in plans for file in plan.files):
                die()
            return inner(*args)

        patches.setattr(bronze.BronzeIngest, step, step_or_die)

    return arrange


def _has_event(event: FileEvent | RowEvent) -> Condition:
    return lambda _, events: bool(events) and events[0].get("event") == event


def _has_result(_: object, events: Sequence[dict[str, object]]) -> bool:
    """Whether the ledger records the result of a gate."""
    return bool(events) and "result" in events[0]


def _of_a_restore(_: object, recorded: Recorded, *more: object, **named: object) -> bool:
    """Whether the ledger records a restore."""
    return any(intent.sources.restores is not None for intent in _intents(recorded))


def _of_a_switch(_: object, recorded: Recorded, *more: object, **named: object) -> bool:
    """Whether the ledger records the commit of a rebuild, or of its undo."""
    return any(intent.sources.rebuild for intent in _intents(recorded))


def _intents(recorded: Recorded) -> list[Intent]:
    winners = [recorded] if isinstance(recorded, Intent | Winner) else recorded
    return [winner.intent if isinstance(winner, Winner) else winner for winner in winners]


def _slow_down_the_switch(patches: pytest.MonkeyPatch, die: Die) -> None:
    """Delay the switch on the server; meanwhile the driver dies."""
    stamped, replace = switching.with_stamp, switching.replace_rows

    def slow(*args: Any) -> Winner:
        patches.setattr(switching, "with_stamp", lambda rows, intent: _slowed(stamped(rows, intent), die, "true"))
        return replace(*args)

    for module in (switching, undoing):
        patches.setattr(module, "replace_rows", slow)


def _records(event: str) -> Condition:
    return lambda _, recorded, *more: recorded == event


def _restores_folder(folder: str) -> Condition:
    return lambda path, *more: folder in path.parts


_WRITERS = (bronze.BronzeIngest, silver.SilverMerge, gold.GoldAggregate)
for _step, _arrange in {
    Step.INTENT: _after(Ledger, "record_intent"),
    Step.COMMIT: _each(*(_after(work, "write") for work in _WRITERS)),
    Step.RECORDED: _after(Ledger, "record_committed", lambda _, winners: bool(winners)),
    Step.QUARANTINE: _after_secondary("_quarantine."),
    Step.TOMBSTONES: _after_secondary("_tombstones."),
    Step.CLOSED: _after(Ledger, "record_closed"),
    Step.CERTIFICATE: _after(Gates, "record"),
}.items():
    _place(_step, _arrange)

BEFORE_INTENT = _place("before the intent", _before(Ledger, "record_intent"))
FILES_PLANNED = _place(
    "between the planned files and the intent", _after(OpsTable, "append", _has_event(FileEvent.PLANNED))
)
IN_THE_WRITE = _place("while the server writes", _slow_down_the_write)
KILLER = "killer.json"
KILLER_LOADED = _place(f"when it loads {KILLER}", _when_read(KILLER, "write"))
KILLER_READ_AGAIN = _place(f"when it reads the refused records of {KILLER}", _when_read(KILLER, "_refused_rows"))
FILES_LOADED = _place(
    "between the rows of the files and the closing", _after(OpsTable, "append", _has_event(FileEvent.LOADED))
)
RESULT_RECORDED = _place("between the result of a gate and its figures", _after(OpsTable, "append", _has_result))
RESCUED_READ = _place("when it looks for rescued values", _before(bronze, "rescued_fields"))
BEFORE_REPORT = _place("before the report", _before(JobReport, "save"))
COLUMNS_RECORDED = _place(
    "after the record of new columns", _after(NewColumns, "record", lambda *args, **_: bool(args[3]))
)
COLUMNS_ADDED = _place("after the statement that adds them", _after(tables, "_add_columns"))
FILE_PLACES = (
    *(BEFORE_INTENT, FILES_PLANNED, Step.INTENT, IN_THE_WRITE, Step.COMMIT, Step.RECORDED, Step.QUARANTINE),
    *(FILES_LOADED, Step.CLOSED, BEFORE_REPORT),
)
"""All places of a bronze batch that loads landing files, in their order."""

FIXES_RECORDED = _place("after the record of the fixes", _after(QuarantineEvents, "record_fixes"))
BEFORE_PINNING = _place("before the rows of a replay are pinned", _before(QuarantineEvents, "pin"))
ROWS_PINNED = _place("after the rows of a replay are pinned", _after(QuarantineEvents, "pin"))
REFUSALS_RECORDED = _place(
    "between the record of refused rows and of replayed rows", _after(OpsTable, "append", _has_event(RowEvent.REFUSED))
)
OUTCOME_RECORDED = _place("between the outcome of each row and the closing", _after(QuarantineEvents, "record_outcome"))

RESTORE_PLACES = (
    _place("after the intent of a restore", _after(Ledger, "record_intent", _of_a_restore)),
    RESTORED := _place("after the commit of a restore", _after(restoring, "_restore")),
    _place("after the record of this commit", _after(Ledger, "record_committed", _of_a_restore)),
    QUARANTINE_PUT_BACK := _place(
        "after the restore of the quarantine",
        _after(restoring, "_restore_secondary", _restores_folder("silver_quarantine")),
    ),
    _place(
        "after the restore of the tombstones",
        _after(restoring, "_restore_secondary", _restores_folder("silver_tombstones")),
    ),
    _place("after the closing of a restore", _after(Ledger, "record_closed", _of_a_restore)),
)
"""All places of the restore after a refused version, in their order."""

IN_THE_SWITCH = _place("while the server writes the switch", _slow_down_the_switch)
SWITCHED = _place(
    "after the commit of the switch", _each(*(_after(module, "replace_rows") for module in (switching, undoing)))
)
_SWITCH_CLOSED = _place("after the closing of the switch", _after(Ledger, "record_closed", _of_a_switch))
REBUILD_PLACES = (
    _place("after the record of a rebuild", _after(Rebuilds, "start")),
    BUILT := _place("after the build in a separate folder", _after(StagedBuild, "build")),
    _place("after the copy of the secondary rows", _after(switching.Switch, "_copy_secondary_rows")),
    SWITCH_RECORDED := _place("after the record of the rows of the switch", _after(switching.Switch, "_record")),
    SWITCHED,
    _SWITCH_CLOSED,
    REBUILD_DONE := _place("after the record that a rebuild is done", _after(Rebuilds, "record", _records("done"))),
)
"""All places of a rebuild, in their order, without IN_THE_SWITCH: after that the server may commit or not."""

CANCELLED = _place("after the record that a rebuild is cancelled", _after(Rebuilds, "record", _records("cancelled")))
UNDO_PLACES = (
    _place("after the intent of an undo", _after(Ledger, "record_intent", _of_a_switch)),
    _place("after the record of the coming commit", _after(Ledger, "record_committed", _of_a_switch)),
    SWITCHED,
    _SWITCH_CLOSED,
)
"""All places of the undo of a rebuild, in their order."""
