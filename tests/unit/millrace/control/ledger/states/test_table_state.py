"""The state of a table agrees with its history or is missing, whichever process dies between the two."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millrace.contracts.job.report import RowCounts
from millrace.control.gates.gates import Gates
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import read_position, table_id
from millrace.control.ledger.states.table_state import AllStates, PartChange, StatePart, TableStates
from millrace.control.storage.objects import LocalObjectStore, StoredObject
from millrace.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import (
    FLIGHTS,
    append,
    commit,
    create_table,
    intent_of,
    judge,
    load_batch,
    optimize,
)
from tests.support.ledger.gate_results import last_passed

SPEC = silver_spec(table=FLIGHTS.table)
TABLE = SPEC.table


class Died(BaseException):
    """The process ended here."""


class Counted(StatePart):
    number: int = 0


class Other(StatePart):
    said: str = ""


def said(paths: LakehousePaths) -> dict[str, Any]:
    """Return the facts that planner, gate and listings read."""
    gates, ledger = Gates(paths), Ledger(paths)
    position, _ = read_position(paths.table(TABLE), FLIGHTS, ledger)
    last = position.last
    return {
        "certified": gates.certified(TABLE),
        "passed": last_passed(gates),
        "refused": gates.first_refusal(TABLE, above=-1),
        "by a person": gates.override_in_force(TABLE),
        "on the last": gates.result(TABLE, last.version, SPEC.suite_hash) if last else None,
        "last": last,
        "closed": ledger.closed_rows(last) if last else None,
    }


def without_state(paths: LakehousePaths) -> dict[str, Any]:
    """Return the same facts from the whole history."""
    away = Path(paths.root) / "away"
    if not Path(paths.state).exists():
        return said(paths)
    Path(paths.state).rename(away)
    try:
        return said(paths)
    finally:
        away.rename(paths.state)


STEPS = ["batch", "unclosed batch", "pass", "refuse", "refuse an old one", "optimize", "lose"]
ALL = [(step, dies) for dies in (True, False) for step in STEPS]


@settings(max_examples=8)
@example(steps=[("refuse", False), ("pass", True), *ALL])
@example(steps=ALL[::-1])
@given(steps=st.lists(st.sampled_from(ALL), max_size=12))
def test_the_state_agrees_with_the_history_after_any_steps_and_any_crash(
    steps: list[tuple[str, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root, change = tmp_path_factory.mktemp("lake"), TableStates.change
    paths, newest = LakehousePaths(root), load_batch(root, SPEC).version
    for step, dies in steps:
        with pytest.MonkeyPatch.context() as patch:
            if dies:
                patch.setattr(TableStates, "change", _once_then_die(change))
            try:
                match step:
                    case "batch" | "unclosed batch":
                        newest = load_batch(root, SPEC, closed=step == "batch").version
                    case "pass" | "refuse":
                        judge(root, SPEC, newest, passed=step == "pass")
                    case "refuse an old one":
                        judge(root, SPEC, newest - 1, passed=False)
                    case "optimize" if len(DeltaTable(str(paths.table(TABLE))).file_uris()) > 1:
                        newest = optimize(Path(paths.table(TABLE)))
                    case "lose":
                        (Path(paths.state) / TABLE).unlink(missing_ok=True)
                assert not dies or step in ("optimize", "lose")
            except Died:
                newest = read_position(paths.table(TABLE), FLIGHTS, Ledger(paths))[0].version
        assert said(paths) == without_state(paths), step


def _once_then_die(change: Callable[..., None]) -> Callable[..., None]:
    """Allow the removal of a part, and end before the put of a part."""

    def dying(self: TableStates, table: str, *changes: PartChange) -> None:
        if "_drop_outdated_state" in getattr(changes[0][1], "__qualname__", ""):
            change(self, table, *changes)
            return
        raise Died

    return dying


def test_a_lost_history_is_restored_from_the_log_even_if_the_state_has_the_batch(
    tmp_path: Path, paths: LakehousePaths
) -> None:
    winner = load_batch(tmp_path, SPEC)
    judge(tmp_path, SPEC, winner.version)
    (tmp_path / "ops").rename(tmp_path / "gone")
    ledger = Ledger(paths)
    position, unrecorded = read_position(paths.table(TABLE), FLIGHTS, ledger)
    assert (position.last, unrecorded) == (winner, (winner,))
    assert ledger.closed_rows(winner) == RowCounts(read=1, applied=1, inserted=1)
    assert Gates(paths).certified(TABLE) == winner.version


def test_the_state_of_an_earlier_table_at_the_same_path_does_not_count(tmp_path: Path, paths: LakehousePaths) -> None:
    judge(tmp_path, SPEC, load_batch(tmp_path, SPEC).version)
    Path(paths.table(TABLE)).rename(tmp_path / "gone")
    create_table(Path(paths.table(TABLE)))
    append(Path(paths.table(TABLE)))
    assert said(paths) == without_state(paths)
    assert Gates(paths).certified(TABLE) is None


def test_a_damaged_or_old_state_is_computed_again(tmp_path: Path, paths: LakehousePaths) -> None:
    load_batch(tmp_path, SPEC)
    old = (Path(paths.state) / TABLE).read_bytes()
    for passed in (True, False):
        judge(tmp_path, SPEC, load_batch(tmp_path, SPEC).version, passed=passed)
    table = Path(paths.table(TABLE))
    commit(table, intent_of(table_id(table), 4))
    wanted = said(paths)
    for body in (old, old[: len(old) // 2], b"", b"[1]", b'{"Streams": {"ends": 7}}'):
        (Path(paths.state) / TABLE).write_bytes(body)
        assert said(paths) == wanted


def test_each_part_is_stored_and_removed_separately(tmp_path: Path) -> None:
    states, others = (TableStates(LakehousePaths(tmp_path)) for _ in range(2))
    for writer in (states, others, states):
        writer.change("silver.a", (Counted, lambda kept: Counted(table_id="1", number=kept.number + 1 if kept else 1)))
    states.change("silver.a", (Other, lambda _: Other(table_id="1", said="ä\u2028")))
    assert states.read("silver.a", Counted) == Counted(table_id="1", number=3)
    states.change("silver.a", (Counted, lambda _: None))
    assert states.read("silver.a", Counted) is None
    assert states.read("silver.a", Other) == Other(table_id="1", said="ä\u2028")
    assert states.read("silver.b", Other) is None


def test_all_states_are_listed_each_time_and_only_those_that_changed_are_read(
    paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    get, all_states, read = LocalObjectStore.get, AllStates(paths), list[str]()

    def counted(store: LocalObjectStore, key: str) -> StoredObject | None:
        read.append(key)
        return get(store, key)

    def put(table: str, number: int) -> None:
        TableStates(paths).change(table, (Counted, lambda _: Counted(table_id="t", number=number)))

    def numbers() -> dict[str, int | None]:
        parts = {table: state.part(Counted) for table, state in all_states.read().items()}
        return {table: part.number if part else None for table, part in parts.items()}

    monkeypatch.setattr(LocalObjectStore, "get", counted)
    assert numbers() == {}
    for number, table in enumerate(("bronze.a", "bronze.b", "bronze.c"), start=1):
        put(table, number)
    assert numbers() == {"bronze.a": 1, "bronze.b": 2, "bronze.c": 3}
    put("bronze.b", 9)
    (Path(paths.state) / "bronze.c").unlink()
    read.clear()
    assert numbers() == {"bronze.a": 1, "bronze.b": 9}
    assert read == ["bronze.b"]
    (Path(paths.state) / "bronze.a").write_text('{"Coun')
    assert numbers() == {"bronze.a": None, "bronze.b": 9}, "a cut state has no part"
