"""Processes that append to one table of events, put its files together, and read it, all at the same time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from include.contracts.lake_path import LakePath
from include.control.events import event_log
from include.control.ledger import ops_table
from include.control.ledger.ops_table import OpsTable
from include.control.log.stored_tables import open_table
from tests.support.processes import LineUp, run_together

EVENTS = pa.schema([("recorded_at", pa.timestamp("us", tz="UTC")), ("table", pa.string()), ("word", pa.string())])
TABLES = ("silver.flights", "gold.a b, 100% übrig")
ONCE = "bronze.planes"
_SMALL: dict[Any, dict[str, int]] = {
    ops_table: {"FILES_WORTH_COMPACTING": 5, "_CHECKPOINT_INTERVAL": 4, "_CLEAN_UP_INTERVAL": 8},
    event_log: {"_COMMITS_KEPT": 6},
}
"""So that few events are enough for each of these to happen again and again."""


@dataclass
class Raced:
    """What one process did.

    Attributes:
        once: the keys under which it was the first.
        rewritten: how often it put files together.
        wrong: what it saw that must not be.
    """

    once: list[str] = field(default_factory=list)
    rewritten: int = 0
    wrong: list[str] = field(default_factory=list)


def race_and_count(path: LakePath, processes: int, rounds: int) -> None:
    """Let so many processes work on the table at `path`, and look for each event.

    Each appends one event a round about each of `TABLES`, and tries to be the first who says something about `ONCE`.
    """
    raced = run_together(processes, _work, path, rounds)
    assert [wrong for one in raced for wrong in one.wrong] == []
    words = Counter(f"{number}-{turn}" for number in range(processes) for turn in range(rounds))
    assert {table: said(path, table) for table in TABLES} == dict.fromkeys(TABLES, words)
    assert sorted(key for one in raced for key in one.once) == sorted(f"round {turn}" for turn in range(rounds))
    assert said(path, ONCE).total() == rounds
    assert sum(one.rewritten for one in raced) > 1, "nobody has put files together"
    stored: DeltaTable = open_table(path)
    assert len(stored.file_uris()) < stored.version() / 2, "the files have stayed as they were appended"


def said(path: LakePath, table: str) -> Counter[str]:
    """How often each word stands in the table of events."""
    return Counter(event["word"] for event in OpsTable(path, EVENTS).events(table))


def event(table: str, word: str) -> dict[str, Any]:
    """An event of this moment."""
    return {"recorded_at": datetime.now(UTC), "table": table, "word": word}


def small_numbers() -> None:
    """Let this process put files together, sum up and clean up after a few commits."""
    for module, numbers in _SMALL.items():
        for name, number in numbers.items():
            setattr(module, name, number)


def _work(number: int, line_up: LineUp, path: LakePath, rounds: int) -> Raced:
    small_numbers()
    writer, reader, raced = OpsTable(path, EVENTS), OpsTable(path, EVENTS), Raced()
    mine: list[str] = []
    for turn in range(rounds):
        line_up()
        mine.append(f"{number}-{turn}")
        for table in TABLES:
            writer.append([event(table, mine[-1])])
        if writer.append_once([event(ONCE, mine[-1])], f"round {turn}"):
            raced.once.append(f"round {turn}")
        for table in TABLES:
            raced.rewritten += writer.compact(table)
            for events in (writer, reader, OpsTable(path, EVENTS)):
                seen = Counter(one["word"] for one in events.events(table))
                missing, doubled = set(mine) - seen.keys(), [word for word, times in seen.items() if times > 1]
                raced.wrong += [f"{table}: {missing} is missing"] if missing else []
                raced.wrong += [f"{table}: {doubled} is there twice"] if doubled else []
    return raced
