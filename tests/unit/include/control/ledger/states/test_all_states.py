"""All states are listed each time; only those that changed are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from include.control.ledger.states.all_states import AllStates
from include.control.ledger.states.table_state import StatePart, TableStates
from include.control.storage.objects import LocalObjectStore, StoredObject
from include.paths import LakehousePaths


class Counted(StatePart):
    number: int = 0


def put(paths: LakehousePaths, table: str, number: int) -> None:
    TableStates(paths).change(table, (Counted, lambda _: Counted(table_id="t", number=number)))


def numbers(states: AllStates) -> dict[str, int]:
    """Return table -> the number in its state, 0 for a state that cannot be read."""
    parts = {table: state.part(Counted) for table, state in states.read().items()}
    return {table: part.number if part else 0 for table, part in parts.items()}


@pytest.fixture
def gets(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The keys of the objects that were read."""
    read: list[str] = []
    get = LocalObjectStore.get

    def counted(store: Any, key: str) -> StoredObject | None:
        read.append(key)
        return get(store, key)

    monkeypatch.setattr(LocalObjectStore, "get", counted)
    return read


def test_a_second_read_gets_only_what_changed(tmp_path: Path, gets: list[str]) -> None:
    paths = LakehousePaths(tmp_path)
    states = AllStates(paths)
    assert numbers(states) == {}
    for number, table in enumerate(("bronze.a", "bronze.b", "bronze.c"), start=1):
        put(paths, table, number)
    assert numbers(states) == {"bronze.a": 1, "bronze.b": 2, "bronze.c": 3}
    put(paths, "bronze.b", 9)
    (tmp_path / "_millrace" / "state" / "bronze.c").unlink()
    gets.clear()
    assert numbers(states) == {"bronze.a": 1, "bronze.b": 9}
    assert gets == ["bronze.b"]


def test_a_cut_state_has_no_part(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    put(paths, "bronze.a", 1)
    (tmp_path / "_millrace" / "state" / "bronze.a").write_text('{"Coun')
    assert numbers(AllStates(paths)) == {"bronze.a": 0}
