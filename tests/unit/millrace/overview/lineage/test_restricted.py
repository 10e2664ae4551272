"""Which columns are restricted: what a spec states, and what comes from a restricted column."""

from __future__ import annotations

from typing import Any

from millrace.contracts.restricted import RestrictedColumns
from millrace.contracts.spec.table_spec import AnySpec
from millrace.overview.lineage.restricted import Restrictions
from tests.support.documents.specs import (
    bronze_document,
    bronze_spec,
    gold_query_spec,
    gold_spec,
    silver_document,
    silver_spec,
)

AMOUNT = {"type": "int", "classification": "restricted"}


def bronze(**columns: Any) -> AnySpec:
    return bronze_spec(columns={**bronze_document()["columns"], **columns})


def silver(**columns: Any) -> AnySpec:
    return silver_spec(columns={**silver_document()["columns"], **columns})


def names(table: str, *specs: AnySpec) -> set[str]:
    return set(restricted(table, *specs).names)


def restricted(table: str, *specs: AnySpec) -> RestrictedColumns:
    return Restrictions({spec.table: spec for spec in specs}).of(table)


def test_a_column_is_restricted_by_itself_or_by_its_table() -> None:
    assert names("bronze.orders", bronze(amount=AMOUNT)) == {"amount"}
    public = {"type": "date", "classification": "public"}
    columns = {**bronze_document()["columns"], "day": public}
    of_table = restricted("bronze.orders", bronze_spec(columns=columns, classification="restricted"))
    assert of_table.names == {"order_id", "amount", "event_at", "event_seq"}
    assert ("day" in of_table, "a_new_field" in of_table) == (False, True)


def test_what_nobody_has_classified_is_restricted_beside_a_restricted_column() -> None:
    columns = restricted("bronze.orders", bronze(amount=AMOUNT))
    assert ["Amount" in columns, "day" in columns, "_rescued" in columns] == [True, False, True]
    assert ["no_column" in columns, "_batch_seq" in columns] == [True, False]
    assert "_rescued" not in restricted("bronze.orders", bronze())
    merged = restricted("silver.orders", bronze(amount=AMOUNT), silver())
    assert ["_sequence" in merged, "_content_hash" in merged, "_stream" in merged] == [True, True, False]


def test_the_hash_of_a_row_is_restricted_also_in_a_table_that_takes_no_restricted_column_of_it() -> None:
    secret = {"type": "string", "classification": "restricted"}
    columns = restricted("silver.orders", bronze(ssn=secret), silver())
    assert ["_source_hash" in columns, "_content_hash" in columns, "amount" in columns] == [True, False, False]
    assert "_source_hash" not in restricted("silver.orders", bronze(), silver())


def test_a_column_from_a_restricted_one_is_restricted_through_all_layers() -> None:
    twice = {"type": "int", "from": "amount * 2"}
    own = {"type": "int", "from": "twice + 1"}
    tables = [bronze(amount=AMOUNT), silver(twice=twice, own=own), gold_spec(), gold_query_spec()]
    assert names("silver.orders", *tables) == {"amount", "twice", "own"}
    assert names("gold.revenue_daily", *tables) == {"revenue"}
    assert names("gold.last_orders", *tables) == {"amount"}


def test_a_column_whose_value_a_restricted_one_decides_is_restricted() -> None:
    is_large = {"type": "string", "from": "case when amount > 9 then 'large' else 'small' end"}
    assert names("silver.orders", bronze(amount=AMOUNT), silver(size=is_large)) == {"amount", "size"}


def test_a_period_of_a_restricted_sequence_is_restricted() -> None:
    event_at = {"type": "timestamp", "classification": "restricted"}
    history = silver_spec(stored_as_scd_type=2, sequence_by=["event_at"])
    assert names("silver.orders", bronze(event_at=event_at), history) == {"event_at", "__start_at", "__end_at"}


def test_a_restricted_column_with_the_name_of_a_function_of_spark_is_followed() -> None:
    user = {"type": "string", "classification": "restricted"}
    of_user = {"user": {"type": "string"}, "shout": {"type": "string", "from": "upper(user)"}}
    assert names("silver.orders", bronze(user=user), silver(**of_user)) == {"user", "shout"}


def test_an_explicit_classification_ends_the_restriction_for_all_that_follows() -> None:
    lowered = {"type": "int", "classification": "internal"}
    tables = [bronze(amount=AMOUNT), silver(amount=lowered), gold_spec()]
    assert names("silver.orders", *tables) == {"_source_hash"}
    assert names("gold.revenue_daily", *tables) == set()
    counted = gold_spec(measures={"orders": "count(o.amount)"}, classifications={"orders": "internal"})
    assert not restricted(counted.table, bronze(amount=AMOUNT), silver(), counted)


def test_sql_that_reads_all_columns_is_restricted() -> None:
    whole = {"type": "string", "from": "to_json(struct(*))"}
    assert "whole" in names("silver.orders", bronze(amount=AMOUNT), silver(whole=whole))
    query = gold_query_spec(query="SELECT day, to_json(struct(o.*)) AS whole FROM o")
    assert "whole" in names(query.table, bronze(amount=AMOUNT), silver(), query)
    assert not restricted("silver.orders", bronze(), silver(whole=whole))


def test_what_only_silver_states_holds_for_the_rows_that_it_receives_and_for_all_that_it_makes_of_them() -> None:
    twice, shown = {"type": "int", "from": "amount * 2"}, {"type": "int", "from": "amount", "classification": "public"}
    table = silver(amount=AMOUNT, twice=twice, shown=shown)
    assert names(table.table, bronze(), table) == {"amount", "twice"}
    received = Restrictions({spec.table: spec for spec in (bronze(), table)}).of_received(table)
    assert ["amount" in received, "_rescued" in received, "day" in received] == [True, True, False]
    assert "amount" not in restricted("bronze.orders", bronze(), table)


def test_a_query_that_makes_rows_or_columns_of_a_restricted_one_is_followed() -> None:
    tables = [bronze(amount=AMOUNT), silver()]
    for select in (
        "(SELECT max(p.amount) FROM o AS p) AS x FROM o",
        "x FROM o LATERAL VIEW explode(array(o.amount)) AS x",
        "x FROM o UNPIVOT (x FOR c IN (amount, event_seq))",
        "x FROM explode(array((SELECT max(amount) FROM o))) AS t(x)",
        "x FROM (SELECT explode(map(day, amount)) AS (y, x) FROM o)",
        "x FROM (SELECT explode(map(day, day)) AS (y, z), day AS n, amount AS x FROM o)",
        "first_value(day) OVER w AS x FROM o WINDOW w AS (ORDER BY amount)",
        "percentile(event_seq, 0.5, amount) AS x FROM o",
    ):
        assert "x" in names("gold.last_orders", *tables, gold_query_spec(query=f"SELECT {select}")), select


def test_a_column_of_a_query_whose_source_cannot_be_told_is_restricted() -> None:
    other = silver_spec(table="silver.more_orders")
    tables = [bronze(amount=AMOUNT), silver(), other]
    sources = {"o": {"table": "silver.orders"}, "m": {"table": other.table}}
    undeclared = gold_query_spec(
        sources=sources, query="SELECT o.day, _sequence AS x FROM o LEFT SEMI JOIN m USING (order_id)"
    )
    assert "x" in names(undeclared.table, *tables, undeclared)
    steps = "SELECT day AS x, event_at AS y, amount AS z, 1 AS n FROM o UNION ALL SELECT y, z, x, n + 1 FROM w"
    rotated = gold_query_spec(query=f"WITH RECURSIVE w AS ({steps} WHERE n < 3) SELECT x, n FROM w")
    assert "x" in names(rotated.table, *tables, rotated)


def test_a_measure_over_an_added_column_of_one_of_several_sources_is_restricted() -> None:
    days = gold_query_spec(table="gold.days", query="SELECT day, order_id FROM o")
    sources = {"o": {"table": "silver.orders"}, "d": {"table": "gold.days", "join": "left", "on": "o.day = d.day"}}
    measures = {"changed": "max(_content_hash)", "days": "max(d.day)", "orders": "max(o.order_id)"}
    joined = gold_spec(sources=sources, refresh_from={"o": "day", "d": "day"}, measures=measures)
    assert names(joined.table, bronze(amount=AMOUNT), silver(), days, joined) == {"changed"}


def test_of_several_sources_one_restricted_column_suffices() -> None:
    other = bronze_spec(table="bronze.more_orders", columns={**bronze_document()["columns"], "amount": AMOUNT})
    merged = silver_document(sources=[{"table": "bronze.orders"}, {"table": other.table}])
    del merged["source"]
    merged_spec = silver_spec(**{**merged, "source": None})
    assert names("silver.orders", bronze(), other, merged_spec) == {"amount"}


def test_a_table_without_a_sound_spec_is_restricted_as_a_whole_and_so_is_what_reads_it() -> None:
    assert "amount" in restricted("silver.orders")
    columns = restricted("silver.orders", silver())
    assert columns.names == {"order_id", "amount", "day", "event_at", "event_seq"}
