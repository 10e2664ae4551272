"""What is asked of an events table: answered as by a list of events, each data file read once for a question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from include.control.ledger.ops_table import FILES_WORTH_COMPACTING, OpsTable
from include.errors import TornLogError

EVENTS = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("event", pa.string()),
        ("table", pa.string()),
        ("token", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("number", pa.int64()),
    ]
)
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
TABLE = "bronze.orders"
MORE_THAN_A_PIECE = 12_000


@dataclass(frozen=True)
class Looks:
    """Asks for nothing, and counts what it is shown."""

    columns: tuple[str, ...] = ("recorded_at", "number")
    shown: list[int] = field(default_factory=list, compare=False)

    def answer(self, events: Iterator[pa.RecordBatch]) -> int:
        self.shown.extend(len(piece) for piece in events)
        return len(self.shown)


def event(number: int, token: str = "t", kind: str = "planned", table: str = TABLE) -> dict[str, Any]:
    at = NOON + timedelta(seconds=number)
    said = {"recorded_at": at, "event": kind, "table": table, "token": token}
    return {**said, "columns": ["x", token], "number": number}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ops" / "events"


def lose_data(path: Path) -> None:
    """Take away the content of the table, so that whoever reads it fails."""
    gone = [file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts]
    assert gone
    for file in gone:
        file.unlink()


GIVEN = st.lists(
    st.lists(
        st.builds(
            event,
            st.integers(0, 9),
            st.sampled_from(["s", "t", "u"]),
            st.sampled_from(["planned", "loaded"]),
            st.sampled_from([TABLE, "bronze.other"]),
        ),
        max_size=4,
    ),
    max_size=5,
)


@settings(max_examples=25, deadline=None)
@given(
    commits=GIVEN,
    columns=st.sampled_from([(), ("number",), ("columns", "number"), ("token", "recorded_at")]),
    tokens=st.sets(st.sampled_from(["s", "t", "never"])),
)
def test_answers_are_those_of_a_list_of_events(
    commits: list[list[dict[str, Any]]],
    columns: tuple[str, ...],
    tokens: set[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("ops") / "events"
    writer, reader, said = OpsTable(path, EVENTS), OpsTable(path, EVENTS), list[dict[str, Any]]()
    for events in commits:
        writer.append(events)
        said += [one for one in events if one["table"] == TABLE]
        expected = [{name: one[name] for name in columns or EVENTS.names} for one in said if one["event"] == "planned"]
        found = reader.events(TABLE, columns, event="planned")
        assert len(found) == len(expected)
        assert all(found.count(one) == expected.count(one) for one in expected)
        about = [one for one in said if one["token"] in tokens and one["event"] == "planned"]
        found = reader.find(TABLE, ("number",), token=tokens, event=["planned"])
        assert [one["number"] for one in found] == sorted(one["number"] for one in about)
        assert [one["number"] for one in reader.find(TABLE)] == sorted(one["number"] for one in said)


def test_a_second_look_reads_only_what_was_appended_since(path: Path) -> None:
    events, looks = OpsTable(path, EVENTS), Looks()
    for number in range(3):
        events.append([event(number), event(number, kind="loaded")])
        events.append([event(number, table="bronze.other")])
        events.answers(TABLE, looks)
        assert looks.shown == [2] * (number + 1)
        assert len(events.events(TABLE, event="planned")) == number + 1
    lose_data(path)
    events.append([event(3)])
    assert sorted(events.answers(TABLE, looks).values()) == [1, 2, 3, 4]
    assert [one["number"] for one in events.events(TABLE, event="planned")] == [0, 1, 2, 3]


def test_events_of_a_kind_or_a_token_are_read_from_the_data_files_that_hold_some(path: Path) -> None:
    events = OpsTable(path, EVENTS)
    events.append([event(1, "old"), event(2, "older")])
    assert events.find(TABLE, token=["old"]) == [event(1, "old")]
    assert events.find(TABLE, event=["failed"]) == []
    lose_data(path)
    events.append([event(9, "new", "failed")])
    assert events.find(TABLE, event=["failed"]) == [event(9, "new", "failed")]
    events.append([event(3, "new"), event(4, "newer")])
    assert events.find(TABLE, token=["new", "never"], event=["planned"]) == [event(3, "new")]
    with pytest.raises(TornLogError, match="a file of the ledger, cannot be read"):
        events.find(TABLE, token=["older"])


def test_a_large_data_file_is_read_in_pieces_and_what_went_with_compaction_is_forgotten(path: Path) -> None:
    events, looks = OpsTable(path, EVENTS), Looks()
    events.append([event(number) for number in range(MORE_THAN_A_PIECE)])
    for number in range(FILES_WORTH_COMPACTING - 2):
        events.append([event(number)])
    before = events.answers(TABLE, looks)
    assert len(before) == FILES_WORTH_COMPACTING - 1
    assert sum(looks.shown) == MORE_THAN_A_PIECE + FILES_WORTH_COMPACTING - 2
    other = OpsTable(path, EVENTS)
    other.append([event(0)])
    other.compact(TABLE)
    looks.shown.clear()
    after = events.answers(TABLE, looks)
    assert len(after) == len(DeltaTable(str(path)).file_uris()) == 1
    assert sum(looks.shown) == MORE_THAN_A_PIECE + FILES_WORTH_COMPACTING - 1
    assert max(looks.shown) < MORE_THAN_A_PIECE / 2
    assert before.keys().isdisjoint(after)


def test_the_memory_that_others_use_arrow_with_is_as_it_was(path: Path) -> None:
    before, events = pa.default_memory_pool().backend_name, OpsTable(path, EVENTS)
    events.append([event(1)])
    assert len(events.find(TABLE)) == 1
    assert pa.default_memory_pool().backend_name == before
    lose_data(path)
    with pytest.raises(TornLogError, match="a file of the ledger, cannot be read"):
        events.find(TABLE)
    assert pa.default_memory_pool().backend_name == before
