"""What breaks by a change of a column is what `lakehouse check` reports after the change, for every column."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

from millrace.catalog import Catalog, load_catalog
from millrace.overview.described_columns import column_names
from millrace.overview.lineage.breakage import broken_places, stopped_tables
from millrace.overview.lineage.chains import ColumnChains
from millrace.specs.checks.sql import sql_problems
from tests.support.documents.specs import (
    Document,
    bronze_document,
    gold_document,
    query_document,
    silver_document,
    write_specs,
)
from tests.support.silver.known_customers import CUSTOMERS, ORDERS, shop_documents
from tests.support.silver.two_shops import BRANCH, SILVER, WEB, two_shops

NEW = "another_name"
_PART = re.compile(r"\['([^']+)'\]|\[(\d+)\]|([^.\[]+)")

FRESH = {"expect_table_to_be_fresh": {"column": "event_at", "max_age": "2 days"}, "action": "warn"}
KNOWN = {
    "expect_column_values_to_exist_in_other_table": {
        "column": "customer", "other_table": "silver.customers", "other_column": "customer",
    },
    "action": "warn",
}  # fmt: skip
POSITIVE = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
COUNTED = {"expect_sql": {"condition": "event_seq is null or amount >= 0"}, "action": "drop"}
BALANCED = {
    "expect_table_to_reconcile_with_source": {
        "source": "silver.orders", "measure": "sum(revenue)", "source_measure": "sum(amount)",
    },
    "action": "fail",
}  # fmt: skip
UNIQUE = {"expect_compound_columns_to_be_unique": {"column_list": ["day", "country"]}, "action": "fail"}


def odd_documents() -> list[Document]:
    """Return specs that name columns in all the ways that there are, one of them wrong."""
    text = {"type": "string"}
    orders = silver_document()
    orders["columns"] |= {
        "customer": {**text, "from": "upper(customer)"},
        "label": {**text, "from": "concat(customer, '-', amount)"},
        "initial": {**text, "from": "left(label, 1) || 'größe'"},
        "op": text,
    }
    history = silver_document("silver.history", stored_as_scd_type=2, track_history_column_list=["amount"])
    sources = {
        "o": {"table": "silver.orders", "where": "amount > 0"},
        "c": {"table": "silver.customers", "join": "left", "on": "c.`customer` = o.customer"},
    }
    received = bronze_document()["columns"] | {"customer": text, "op": text}
    raw = {"kafka": "main", "topics": ["a"], "format": "raw", "transforms": {"sent_at": "timestamp"}}
    return [
        bronze_document(columns=received, zorder_by=["day"], expectations=[FRESH]),
        bronze_document("bronze.customers", columns={"customer": text, "country": text}, on_drift="evolve"),
        bronze_document("bronze.raw", source=raw, columns={"value": {"type": "binary"}, "sent_at": text}),
        bronze_document("bronze.wrong", columns={"a": text}, keyz=1),
        {
            **orders,
            "apply_as_deletes": "op = 'delete'",
            "except_column_list": ["op"],
            "partitioned_by": ["day"],
            "delta": {"delta.dataSkippingStatsColumns": "order_id, amount,_batch_seq"},
            "expectations": [KNOWN, POSITIVE, COUNTED],
        },
        silver_document(
            "silver.customers",
            source="bronze.customers",
            keys=["customer"],
            sequence_by=[],
            columns={"customer": text, "country": {**text, "from": "coalesce(country, `Größe`)"}},
        ),
        history,
        silver_document("silver.late", source="bronze.wrong", keys=["b"], columns={"b": {"from": "a"}}, sequence_by=[]),
        gold_document(
            sources=sources,
            refresh_from={"o": "day", "c": "null"},
            group_by={"day": "o.day", "country": "country"},
            measures={
                "orders": "count(*)",
                "revenue": "sum(o.`amount`)",
                "mean": "revenue / orders",
                "amount": "sum(amount)",
            },
            expectations=[BALANCED, UNIQUE],
            zorder_by=["day"],
        ),
    ]  # fmt: skip


class Specs:
    """Documents in a folder; a test changes some, checks all, and writes them back."""

    def __init__(self, folder: Path, documents: list[Document]) -> None:
        self.folder = folder
        write_specs(folder, *documents)
        self.documents = {str(document["table"]): document for document in documents}

    def catalog(self) -> Catalog:
        return load_catalog(self.folder)

    def check(self, *changed: Document) -> set[tuple[str, str]]:
        """Return the file and the key of each problem after some documents were changed.

        That a field of raw bytes cannot be renamed is no problem of those who name it.
        """
        write_specs(self.folder, *changed)
        catalog = self.catalog()
        problems = [*catalog.problems, *sql_problems(catalog)]
        write_specs(self.folder, *(self.documents[document["table"]] for document in changed))
        return {(problem.file.stem, problem.key) for problem in problems if problem.key != f"columns.{NEW}"}


def odd(folder: Path) -> Specs:
    return Specs(folder, odd_documents())


def with_column_renamed(document: Document, column: str) -> Document:
    """Return the spec in which only the column itself has a new name."""
    changed = copy.deepcopy(document)
    for key in ("columns", "group_by", "measures"):
        part = changed.get(key, {})
        if column in part and changed["table"].startswith("silver."):
            part[column] = {"from": f"`{column}`", **part[column]}
        changed |= {key: {NEW if name == column else name: value for name, value in part.items()}} if part else {}
    return changed


def with_place_changed(document: Document, key: str, table: str, column: str) -> None:
    """Write the new name into a place of a spec, as its owner would."""
    path = [name or other or int(index) for name, index, other in _PART.findall(key)]
    owner: Any = document
    for part in path[:-1]:
        owner = owner[part]
    last = path[-1]
    if path[:1] == ["columns"] and path[1:] == [column]:
        owner[last] = {**owner[last], "from": NEW}
    elif path[:2] == ["source", "transforms"]:
        owner[NEW] = owner.pop(last)
    else:
        aliases = [alias for alias, each in document.get("sources", {}).items() if each["table"] == table]
        before = rf"(?:(?<![\w.'`-])|(?<=\b(?:{'|'.join(aliases)})\.))" if aliases else r"(?<![\w.'`])"
        owner[last] = re.sub(rf"{before}`?\b{column}\b`?", NEW, owner[last])


def test_what_breaks_is_what_check_reports_and_who_changes_it_has_sound_specs_again(tmp_path: Path) -> None:
    specs = odd(tmp_path)
    catalog, wrong_before = specs.catalog(), specs.check()
    columns = [(table, column) for table, spec in catalog.specs.items() for column in column_names(spec)]
    assert len(columns) > 20
    found = {place: broken_places(*place, catalog) for place in columns}
    assert sum(map(len, found.values())) > len(columns) / 2
    for (table, column), places in found.items():
        changed = with_column_renamed(specs.documents[table], column)
        reported = {(place.problem.file.stem, place.problem.key) for place in places}
        assert specs.check(changed) - wrong_before == reported, f"{table}.{column}"
        documents = {table: changed}
        for place in places:
            document = documents.setdefault(place.table, copy.deepcopy(specs.documents[place.table]))
            with_place_changed(document, place.problem.key, table, column)
        assert specs.check(*documents.values()) == wrong_before, f"{table}.{column}"


def means_its_own(column: str, table: str, reader: str, catalog: Catalog) -> bool:
    """Whether a name in an expression then means an earlier column of the same table; or the table makes the column."""
    names = column_names(catalog.specs[table])
    return reader not in names or column in names[: names.index(reader)]


def test_the_columns_that_break_are_those_to_which_a_column_goes(tmp_path: Path) -> None:
    catalog = odd(tmp_path).catalog()
    chains, followed = ColumnChains(catalog.specs), 0
    for table, spec in catalog.specs.items():
        # An evolving table may have the column still, from the records: only a column of the same name breaks.
        for column in column_names(spec) if getattr(spec, "on_drift", "") != "evolve" else ():
            places = broken_places(table, column, catalog)
            keys = [(place.table, _PART.findall(place.problem.key)) for place in places]
            broken = {(name, path[1][2]) for name, path in keys if path[0][2] in ("columns", "measures", "group_by")}
            steps = {(step.table, step.column) for step in chains.goes_to(table, column) if step.column}
            still_right = {step for step in steps - broken if means_its_own(column, *step, catalog)}
            assert broken == steps - still_right, f"{table}.{column}"
            followed += len(broken)
    assert followed > 15


def test_a_place_says_what_the_column_is_there_and_in_which_line(tmp_path: Path) -> None:
    catalog = odd(tmp_path).catalog()
    places = broken_places("silver.orders", "day", catalog)
    assert [(place.table, place.kind, place.problem.key, place.problem.value) for place in places] == [
        ("silver.orders", "partitions", "partitioned_by[0]", "day"),
        ("gold.revenue_daily", "what is computed again", "refresh_from.o", "day"),
        ("gold.revenue_daily", "group", "group_by.day", "o.day"),
    ]
    for place in places:
        assert "day" in place.problem.file.read_text().splitlines()[place.problem.line - 1]
    assert stopped_tables([place.table for place in places], catalog) == ["silver.orders", "gold.revenue_daily"]
    amount = broken_places("silver.orders", "amount", catalog)
    assert ("delta['delta.dataSkippingStatsColumns']", "table property") in {
        (place.problem.key, place.kind) for place in amount
    }
    rule = broken_places("silver.customers", "customer", catalog)
    assert ("silver.orders", "rule") in {(place.table, place.kind) for place in rule}
    assert broken_places("gold.revenue_daily", "mean", catalog) == [], "nobody reads it"
    assert stopped_tables([], catalog) == []


def test_a_column_of_one_of_several_sources_breaks_what_the_spec_says_of_that_source(tmp_path: Path) -> None:
    catalog = Specs(tmp_path, two_shops()).catalog()
    of_branch = [(place.problem.key, place.kind) for place in broken_places(BRANCH, "cents", catalog)]
    assert of_branch == [("sources[1].columns.amount", "column of a source")]
    assert [place.problem.key for place in broken_places(WEB, "amount", catalog)] == ["columns.amount"]
    own = [place.kind for place in broken_places(SILVER, "amount", catalog)]
    assert own == ["rule"], "what a source states of the column is renamed with it"


def test_a_column_of_a_query_breaks_the_rules_and_settings_that_name_it(tmp_path: Path) -> None:
    rules = [{"expect_column_values_to_not_be_null": {"column": "amount"}, "action": "fail"}]
    table = query_document("gold.last_orders", expectations=rules, refresh_by="day")
    catalog = Specs(tmp_path, [bronze_document(), silver_document(), table]).catalog()
    assert [place.kind for place in broken_places("gold.last_orders", "amount", catalog)] == ["rule"]
    assert [place.problem.key for place in broken_places("gold.last_orders", "day", catalog)] == ["refresh_by"]


def test_a_table_whose_rows_wait_for_a_table_stops_with_it(tmp_path: Path) -> None:
    catalog = Specs(tmp_path, shop_documents()).catalog()
    places = broken_places(CUSTOMERS, "customer_id", catalog)
    assert (ORDERS, "rule") in {(place.table, place.kind) for place in places}
    assert stopped_tables([CUSTOMERS], catalog) == [CUSTOMERS, ORDERS]
