"""What a change of a spec means to its table, without a table: every change is named, with its effect."""

from __future__ import annotations

from typing import Any

import pytest

from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.changes.spec_changes import Effect, SpecChange, column_changes, sort_by_effect, spec_changes
from millrace.control.ledger.spec_history import document_of
from tests.support.documents.specs import (
    bronze_spec,
    gold_document,
    gold_query_spec,
    gold_spec,
    silver_document,
    silver_spec,
)

_, APPLIED, RECOMPUTE, REBUILD = Effect
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
    "meaning of a key": (
        {"columns": columns(order_id={"from": "upper(order_id)"})},
        {"columns.order_id.from": REBUILD},
    ),
    "meaning of the order": (
        {"columns": columns(event_seq={"from": "-event_seq", "round": "down"})},
        {"columns.event_seq.from": REBUILD, "columns.event_seq.round": REBUILD},
    ),
    "deletes": ({"apply_as_deletes": "amount = 0"}, {"apply_as_deletes": RECOMPUTE}),
    "rule": ({"expectations": [RULE]}, {"expectations": RECOMPUTE}),
    "gate": ({"expectations": [GATE]}, {"expectations": APPLIED}),
    "nullable": ({"columns": columns(day={"nullable": False})}, {"columns.day.nullable": APPLIED}),
    "reading": ({"columns": columns(amount={"round": "down"})}, {"columns.amount.round": RECOMPUTE}),
    "classification": (
        {"columns": columns(day={"classification": "restricted"})},
        {"columns.day.classification": APPLIED},
    ),
    "comment": ({"columns": columns(day={"description": "UTC"})}, {"columns.day.description": APPLIED}),
    "property": ({"delta": {"delta.appendOnly": "false"}}, {"delta": APPLIED}),
}
GOLD: dict[str, tuple[dict[str, Any], dict[str, Effect]]] = {
    "classifications": ({"classifications": {"orders": "internal"}}, {"classifications": APPLIED}),
    "measure": ({"measures": {**gold_document()["measures"], "most": "max(o.amount)"}}, {"measures.most": APPLIED}),
    "other measure": (
        {"measures": {"orders": "count(o.day)", "revenue": "sum(o.amount)"}},
        {"measures.orders": APPLIED},
    ),
    "no measure": ({"measures": {"orders": "count(*)"}}, {"measures.revenue": REBUILD}),
    "groups": ({"group_by": {"day": "date_add(o.day, 1)"}}, {"group_by": REBUILD}),
    "rows": ({"sources": {"o": {"table": "silver.orders", "where": "amount > 0"}}}, {"sources": APPLIED}),
    "reach": ({"lookback": "7 days"}, {"lookback": APPLIED}),
}


A, B, C = ({"table": f"bronze.{name}"} for name in "abc")
SOURCES: dict[str, tuple[list[Any], dict[str, Effect]]] = {
    "source with another column": ([A, {**B, "columns": {"amount": "cents"}}], {"sources.bronze.b": RECOMPUTE}),
    "source with another key": ([A, {**B, "columns": {"order_id": "number"}}], {"sources.bronze.b": REBUILD}),
    "source with another order": ([A, {**B, "columns": {"event_at": "at"}}], {"sources.bronze.b": REBUILD}),
    "source with deletes": (
        [A, {**B, "apply_as_deletes": "gone"}, C],
        {"sources.bronze.b": RECOMPUTE, "sources.bronze.c": APPLIED},
    ),
    "other order of sources": ([B, A], {"sources": REBUILD}),
    "no source": ([A], {"sources": REBUILD}),
}


def shared(*sources: dict[str, Any], **changes: Any) -> AnySpec:
    return silver_spec(source=None, sources=sources, **changes)


CHANGES: dict[str, tuple[AnySpec, AnySpec, dict[str, Effect]]] = {
    **{name: (silver_spec(), silver_spec(**changes), wanted) for name, (changes, wanted) in SILVER.items()},
    **{name: (gold_spec(), gold_spec(**changes), wanted) for name, (changes, wanted) in GOLD.items()},
    **{name: (shared(A, B), shared(*sources), wanted) for name, (sources, wanted) in SOURCES.items()},
    "priority": (shared(A, B), shared(A, B, source_priority="after_sequence"), {"source_priority": REBUILD}),
    "list of one source": (
        silver_spec(),
        shared({"table": "bronze.orders"}),  # whose rows name their source
        {"source": REBUILD, "sources": REBUILD},
    ),
    "type of a column that is not stored": (
        silver_spec(except_column_list=["day"], columns=columns(day={"type": "date"})),
        silver_spec(except_column_list=["day"], columns=columns(day={"type": "string"})),
        {"columns.day.type": RECOMPUTE},
    ),
    "type of the order, which is not stored": (
        silver_spec(except_column_list=["event_seq"]),
        silver_spec(except_column_list=["event_seq"], columns=columns(event_seq={"type": "string"})),
        {"columns.event_seq.type": REBUILD},
    ),
    "landing": (
        bronze_spec(),
        bronze_spec(source={"landing": "others", "files": "*.json", "format": "json"}),
        {"source": APPLIED},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_has_its_effect(name: str) -> None:
    before, now, wanted = CHANGES[name]
    assert effects(before, now) == wanted


def test_other_streams_are_made_by_the_next_run_and_change_no_row() -> None:
    by_id: dict[str, Any] = {"partitioned_by": ["order_id"], "concurrent_by": "order_id"}
    one = shared(A, B, partitioned_by=["order_id"])
    several = shared({**A, "partitions": ["1", "2"]}, {**B, "partitions": ["3"]}, **by_id)
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


def test_of_a_key_with_parts_only_the_parts_that_differ_are_named() -> None:
    landing = {"landing": "orders", "path": "{interval_start:%Y}/{interval_start:%m}/{interval_start:%d}"}
    before, now = (bronze_spec(source={**landing, "format": "csv", **more}) for more in ({}, {"header": False}))
    [change] = spec_changes(document_of(before), document_of(now))
    assert str(change) == "source: {header: true} becomes {header: false}"
    [change] = spec_changes(document_of(gold_spec()), document_of(gold_spec(**GOLD["rows"][0])))
    assert str(change) == "sources: {o: {where: null}} becomes {o: {where: amount > 0}}, computed for all groups"


def test_another_query_computes_the_table_again_unless_it_lacks_a_column_of_it() -> None:
    before = gold_query_spec(query="SELECT day, amount FROM o")
    assert effects(before, gold_query_spec(query="SELECT day, amount + 1 AS amount, order_id FROM o")) == {
        "query": APPLIED
    }
    assert effects(before, gold_query_spec(query="SELECT day, order_id FROM o")) == {"query": REBUILD}
    assert effects(gold_spec(), before) == effects(before, gold_spec()) == {"query": REBUILD}
    others = gold_query_spec(query="SELECT day, amount FROM o", sources={"o": {"table": "gold.large"}})
    [change] = spec_changes(document_of(before), document_of(others))
    text = "sources: {o: {table: silver.orders}} becomes {o: {table: gold.large}}"
    assert str(change) == f"{text}, computed for all groups"
    assert (change.effect, change.needs_run) == (APPLIED, True)


def test_several_changes_have_the_effects_of_each() -> None:
    names = [
        name
        for name in SILVER
        if name
        not in ("classification", "comment", "nullable", "gate", "reading", "meaning of a key", "meaning of the order")
    ]
    changes = {key: value for name in names for key, value in SILVER[name][0].items()}
    wanted = {key: effect for name in names for key, effect in SILVER[name][1].items()}
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
        "partitioned_by: [day] is gone",
    ]
    assert changes_of({name: kind for name, kind in ON_DISK.items() if name != "day"}, except_column_list=["day"]) == []
