"""Processes that append to one table of events, compact it and read it, all at the same time."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from millrace.contracts.lake_path import LakePath
from millrace.control.events import event_log
from millrace.control.ledger import ops_table
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.log.stored_tables import open_table
from tests.support.processes import LineUp, run_together

EVENTS = pa.schema([("recorded_at", pa.timestamp("us", tz="UTC")), ("table", pa.string()), ("word", pa.string())])
TABLES = ("silver.flights", "gold.a b, 100% übrig")
ONCE = "bronze.planes"
FEW = (
    (ops_table, "FILES_WORTH_COMPACTING", 5),
    (ops_table, "_CHECKPOINT_INTERVAL", 4),
    (ops_table, "_CLEAN_UP_INTERVAL", 8),
    (event_log, "_COMMITS_KEPT", 6),
)
"""Limits at which a few events cause compactions, checkpoints and clean-ups."""


def race_and_count(path: LakePath, processes: int, rounds: int) -> None:
    """Let `processes` processes work on the table at `path`, and check that each event is there once.

    In each round each process appends an event about each of `TABLES`, and tries to append the only one about `ONCE`.
    """
    results = run_together(processes, _work, path, rounds)
    assert [problem for _, wrong in results for problem in wrong] == []
    words = Counter(f"{number}-{turn}" for number in range(processes) for turn in range(rounds))
    assert {table: word_counts(path, table) for table in TABLES} == dict.fromkeys(TABLES, words)
    assert sorted(key for once, _ in results for key in once) == sorted(f"round {turn}" for turn in range(rounds))
    assert word_counts(path, ONCE).total() == rounds
    stored: DeltaTable = open_table(path)
    assert len(stored.file_uris()) < stored.version() / 2, "no files were joined"


def word_counts(path: LakePath, table: str) -> Counter[str]:
    """Return how often each word is in the table of events."""
    return Counter(event["word"] for event in OpsTable(path, EVENTS).events(table))


def event(table: str, word: str) -> dict[str, Any]:
    """Return an event with the current time."""
    return {"recorded_at": datetime.now(UTC), "table": table, "word": word}


def _work(number: int, line_up: LineUp, path: LakePath, rounds: int) -> tuple[list[str], list[str]]:
    """Return the keys under which this process was the first, and the errors that it saw."""
    for module, name, limit in FEW:
        setattr(module, name, limit)
    writer, reader, words = OpsTable(path, EVENTS), OpsTable(path, EVENTS), list[str]()
    once, wrong = list[str](), list[str]()
    for turn in range(rounds):
        line_up()
        words.append(f"{number}-{turn}")
        for table in TABLES:
            writer.append([event(table, words[-1])])
        if writer.append_once([event(ONCE, words[-1])], f"round {turn}"):
            once.append(f"round {turn}")
        for table in TABLES:
            writer.compact(table)
            for events in (writer, reader, OpsTable(path, EVENTS)):
                counts = Counter(row["word"] for row in events.events(table))
                missing, doubled = set(words) - counts.keys(), [word for word, times in counts.items() if times > 1]
                wrong += [f"{table}: {missing} is missing"] if missing else []
                wrong += [f"{table}: {doubled} is there twice"] if doubled else []
    return once, wrong
