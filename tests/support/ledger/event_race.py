"""Processes that append to one table of events, compact it and read it, all at the same time."""

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
"""Limits at which a few events cause compactions, checkpoints and clean-ups."""


@dataclass
class RaceResult:
    """The work of one process.

    Attributes:
        once: the keys under which it was the first.
        wrong: the errors that it saw.
    """

    once: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def race_and_count(path: LakePath, processes: int, rounds: int) -> None:
    """Let `processes` processes work on the table at `path`, and check that each event is there once.

    In each round each process appends an event about each of `TABLES`, and tries to append the only one about `ONCE`.
    """
    results = run_together(processes, _work, path, rounds)
    assert [wrong for result in results for wrong in result.wrong] == []
    words = Counter(f"{number}-{turn}" for number in range(processes) for turn in range(rounds))
    assert {table: word_counts(path, table) for table in TABLES} == dict.fromkeys(TABLES, words)
    assert sorted(key for result in results for key in result.once) == sorted(f"round {turn}" for turn in range(rounds))
    assert word_counts(path, ONCE).total() == rounds
    stored: DeltaTable = open_table(path)
    assert len(stored.file_uris()) < stored.version() / 2, "no files were joined"


def word_counts(path: LakePath, table: str) -> Counter[str]:
    """Return how often each word is in the table of events."""
    return Counter(event["word"] for event in OpsTable(path, EVENTS).events(table))


def event(table: str, word: str) -> dict[str, Any]:
    """Return an event with the current time."""
    return {"recorded_at": datetime.now(UTC), "table": table, "word": word}


def lower_limits() -> None:
    """Let this process compact, write checkpoints and clean up after a few commits."""
    for module, numbers in _SMALL.items():
        for name, number in numbers.items():
            setattr(module, name, number)


def _work(number: int, line_up: LineUp, path: LakePath, rounds: int) -> RaceResult:
    lower_limits()
    writer, reader, result = OpsTable(path, EVENTS), OpsTable(path, EVENTS), RaceResult()
    words: list[str] = []
    for turn in range(rounds):
        line_up()
        words.append(f"{number}-{turn}")
        for table in TABLES:
            writer.append([event(table, words[-1])])
        if writer.append_once([event(ONCE, words[-1])], f"round {turn}"):
            result.once.append(f"round {turn}")
        for table in TABLES:
            writer.compact(table)
            for events in (writer, reader, OpsTable(path, EVENTS)):
                counts = Counter(row["word"] for row in events.events(table))
                missing, doubled = set(words) - counts.keys(), [word for word, times in counts.items() if times > 1]
                result.wrong += [f"{table}: {missing} is missing"] if missing else []
                result.wrong += [f"{table}: {doubled} is there twice"] if doubled else []
    return result
