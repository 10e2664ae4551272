"""What a change of a spec means to its table, without a table: every change is named, with its effect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.contracts.spec.table_spec import AnySpec
from include.control.changes.spec_changes import Effect, SpecChange, column_changes, sort_by_effect, spec_changes
from include.control.ledger.spec_history import document_of
from tests.support.documents.specs import (
    bronze_spec,
    gold_document,
    gold_query_spec,
    gold_spec,
    silver_document,
    silver_spec,
)

APPLIED, RECOMPUTE, REBUILD = Effect
RULE = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
GATE = {"expect_table_row_count_to_be_between": {"min_value": 1}, "action": "fail"}
ON_DISK = {"order_id": "string", "amount": "integer", "day": "date", "event_at": "timestamp", "event_seq": "integer"}


def effects(before: AnySpec, now: AnySpec) -> dict[str, Effect]:
    return {change.key: change.effect for change in spec_changes(document_of(before), document_of(now))}


def columns(**changes: Any) -> dict[str, Any]:
    """The columns of the silver spec, some of them changed; one that becomes None is left out."""
    changed = {name: {**silver_document()["columns"].get(name, {}), **more} for name, more in changes.items() if more}
    kept = {name: column for name, column in silver_document()["columns"].items() if name not in changes}
    return {**kept, **changed}


SILVER: dict[str, tuple[dict[str, Any], dict[str, Effect]]] = {
    "nothing": ({}, {}),
    "keys": ({"keys": ["order_id", "day"]}, {"keys": REBUILD}),
    "order": ({"sequence_by": ["event_at"]}, {"sequence_by": REBUILD}),
    "history": ({"stored_as_scd_type": 2}, {"stored_as_scd_type": REBUILD}),
    "source": ({"source": "bronze.others"}, {"source": REBUILD}),
    "meaning": ({"columns": columns(amount={"from": "amount * 2"})}, {"columns.amount.from": RECOMPUTE}),
    "deletes": ({"apply_as_deletes": "amount = 0"}, {"apply_as_deletes": RECOMPUTE}),
    "rule": ({"expectations": [RULE]}, {"expectations": RECOMPUTE}),
    "gate": ({"expectations": [GATE]}, {"expectations": APPLIED}),
    "nullable": ({"columns": columns(day={"nullable": False})}, {"columns.day.nullable": APPLIED}),
    "comment": ({"columns": columns(day={"description": "UTC"})}, {"columns.day.description": APPLIED}),
    "property": ({"delta": {"delta.appendOnly": "false"}}, {"delta": APPLIED}),
    "owner": ({"owner": "the shop"}, {"owner": APPLIED}),
}
GOLD: dict[str, tuple[dict[str, Any], dict[str, Effect]]] = {
    "measure": ({"measures": {**gold_document()["measures"], "most": "max(o.amount)"}}, {"measures.most": APPLIED}),
    "other measure": (
        {"measures": {"orders": "count(o.day)", "revenue": "sum(o.amount)"}},
        {"measures.orders": RECOMPUTE},
    ),
    "no measure": ({"measures": {"orders": "count(*)"}}, {"measures.revenue": REBUILD}),
    "groups": ({"group_by": {"day": "date_add(o.day, 1)"}}, {"group_by": REBUILD}),
    "rows": ({"sources": {"o": {"table": "silver.orders", "where": "amount > 0"}}}, {"sources": RECOMPUTE}),
}


@pytest.mark.parametrize("name", SILVER)
def test_a_change_of_a_silver_spec_has_its_effect(name: str) -> None:
    changes, wanted = SILVER[name]
    assert effects(silver_spec(), silver_spec(**changes)) == wanted


A, B, C = ({"table": f"bronze.{name}"} for name in "abc")


@pytest.mark.parametrize(
    ("before", "now", "wanted"),
    [
        ([A, B], [A, B, C], {"sources.bronze.c": APPLIED}),
        ([A, B], [A, {**B, "columns": {"amount": "cents"}}], {"sources.bronze.b": RECOMPUTE}),
        (
            [A, B],
            [A, {**B, "apply_as_deletes": "gone"}, C],
            {"sources.bronze.b": RECOMPUTE, "sources.bronze.c": APPLIED},
        ),
        ([A, B], [B, A], {"sources": REBUILD}),
        ([A, B], [A], {"sources": REBUILD}),
        ([A, B], [A, B], {}),
    ],
)
def test_only_a_source_that_is_added_at_the_end_changes_no_row(
    before: list[Any], now: list[Any], wanted: dict[str, Effect]
) -> None:
    assert effects(silver_spec(source=None, sources=before), silver_spec(source=None, sources=now)) == wanted


def test_other_streams_are_made_by_the_next_run_and_change_no_row() -> None:
    def shared(*sources: dict[str, Any], **changes: Any) -> AnySpec:
        return silver_spec(source=None, sources=sources, partitioned_by=["order_id"], **changes)

    by_id = {"concurrent_by": "order_id"}
    one, several = shared(A, B), shared({**A, "partitions": ["1", "2"]}, {**B, "partitions": ["3"]}, **by_id)
    moved = shared({**A, "partitions": ["1"]}, {**B, "partitions": ["3", "2"]}, **by_id)
    keys = ["sources.bronze.a.partitions", "sources.bronze.b.partitions"]
    for before, now, changed in (
        (one, several, [*keys, "concurrent_by"]),
        (several, one, [*keys, "concurrent_by"]),
        (several, moved, keys),
    ):
        changes = spec_changes(document_of(before), document_of(now))
        assert [(change.key, change.effect, change.needs_run) for change in changes] == [
            (key, APPLIED, True) for key in changed
        ]
    assert "['1', '2'] becomes ['1']" in str(spec_changes(document_of(several), document_of(moved))[0])
    added = shared({**A, "partitions": ["1", "2"]}, {**B, "partitions": ["3"]}, {**C, "partitions": ["4"]}, **by_id)
    assert effects(several, added) == {"sources.bronze.c": APPLIED}


def test_another_priority_of_the_sources_orders_all_rows_again() -> None:
    now = silver_spec(source=None, sources=[A, B], source_priority="after_sequence")
    assert effects(silver_spec(source=None, sources=[A, B]), now) == {"source_priority": REBUILD}


def test_a_list_in_place_of_one_source_needs_a_rebuild_whose_rows_name_their_source() -> None:
    assert effects(silver_spec(), silver_spec(source=None, sources=[{"table": "bronze.orders"}])) == {
        "source": REBUILD,
        "sources": REBUILD,
    }


@pytest.mark.parametrize("name", GOLD)
def test_a_change_of_a_gold_spec_has_its_effect(name: str) -> None:
    changes, wanted = GOLD[name]
    assert effects(gold_spec(), gold_spec(**changes)) == wanted


def test_of_a_key_with_parts_only_the_parts_that_differ_are_named() -> None:
    landing = {"landing": "orders", "path": "{interval_start:%Y}/{interval_start:%m}/{interval_start:%d}"}
    before, now = (bronze_spec(source={**landing, "format": "csv", **more}) for more in ({}, {"header": False}))
    [change] = spec_changes(document_of(before), document_of(now))
    assert str(change) == "source: {'header': True} becomes {'header': False}"
    [change] = spec_changes(document_of(gold_spec()), document_of(gold_spec(**GOLD["rows"][0])))
    assert str(change) == "sources: {'o': {'where': None}} becomes {'o': {'where': 'amount > 0'}}"


def test_another_query_computes_the_table_again_unless_it_lacks_a_column_of_it() -> None:
    before = gold_query_spec(query="SELECT day, amount FROM o")
    assert effects(before, gold_query_spec(query="SELECT day, amount + 1 AS amount, order_id FROM o")) == {
        "query": APPLIED
    }
    assert effects(before, gold_query_spec(query="SELECT day, order_id FROM o")) == {"query": REBUILD}
    assert effects(gold_spec(), before) == effects(before, gold_spec()) == {"query": REBUILD}
    others = gold_query_spec(query="SELECT day, amount FROM o", sources={"o": {"table": "gold.large"}})
    [change] = spec_changes(document_of(before), document_of(others))
    text = "sources: {'o': {'table': 'silver.orders'}} becomes {'o': {'table': 'gold.large'}}"
    assert str(change) == f"query: {text}, from which the whole table is computed"
    assert (change.effect, change.needs_run) == (APPLIED, True)


@given(names=st.lists(st.sampled_from([name for name in SILVER if name not in ("comment", "nullable", "gate")])))
def test_several_changes_have_the_effects_of_each(names: list[str]) -> None:
    changes: dict[str, Any] = {}
    wanted: dict[str, Effect] = {}
    for name in names:
        changes, wanted = {**changes, **SILVER[name][0]}, {**wanted, **SILVER[name][1]}
    assert effects(silver_spec(), silver_spec(**changes)) == wanted
    assert set(effects(silver_spec(**changes), silver_spec())) == set(wanted), "and there is a way back"


def test_declared_columns_are_compared_with_those_of_the_table() -> None:
    def changes_of(on_disk: dict[str, str], *partitions: str, **changes: Any) -> list[SpecChange]:
        return sort_by_effect(column_changes(document_of(silver_spec(**changes)), on_disk, partitions))

    assert changes_of({**ON_DISK, "_sequence": "struct<event_at:timestamp>", "__START_AT": "long"}) == []
    added, *rest = changes_of({name: kind for name, kind in ON_DISK.items() if name != "day"})
    assert (added.key, added.effect, added.needs_run, rest) == ("columns.day", APPLIED, True, [])
    assert [str(change) for change in changes_of({**ON_DISK, "amount": "long", "old": "string"}, "day")] == [
        "columns.amount.type: long becomes integer",
        "columns.old: the table has it (string), the spec does not",
        "partitioned_by: ['day'] is gone",
    ]
    assert changes_of({name: kind for name, kind in ON_DISK.items() if name != "day"}, except_column_list=["day"]) == []


def test_a_column_that_is_not_stored_may_have_another_type() -> None:
    def with_type(kind: str) -> AnySpec:
        return silver_spec(except_column_list=["day"], columns=columns(day={"type": kind}))

    assert effects(with_type("date"), with_type("string")) == {"columns.day.type": RECOMPUTE}


def test_another_landing_folder_affects_no_row() -> None:
    source = {"landing": "others", "files": "*.json", "format": "json"}
    assert effects(bronze_spec(), bronze_spec(source=source)) == {"source": APPLIED}
