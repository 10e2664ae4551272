"""Silver rows of bronze rows: what no text, date or type holds is refused, and nothing is stored in its place."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from millrace_spark.transforms.silver.silver import silver_rows
from tests.support.documents.specs import silver_spec


def test_bytes_that_are_no_text_are_refused_and_texts_that_mean_nothing_are_null(spark: SparkSession) -> None:
    columns = {
        "order_id": {"type": "string", "nullable": False},
        "name": {"type": "string", "nullable": False},
        "tags": {"type": "array<string>", "null_values": "-"},
        "days": {"type": "array<date>"},
        "price": {"type": "double", "decimal_comma": True, "from": "text", "null_values": "-", "nullable": False},
    }
    spec = silver_spec(keys=["order_id"], sequence_by=[], columns=columns, expectations=[])
    bronze = spark.sql(
        "SELECT *, 'a.json' AS _source_file, timestamp'2025-01-01' AS _interval_start FROM VALUES "
        "('a', X'FF00', array('-', 'x'), array(date_from_unix_date(6616999)), '\uffff5'), "
        "('b', X'6F6B', array('y'), null, '1,5'), ('c', null, null, null, '-') "
        "AS bronze(order_id, name, tags, days, text)"
    )
    refused, fine, none = silver_rows(bronze, spec).orderBy("order_id").collect()
    assert (refused["name"], refused["tags"], refused["days"]) == (None, [None, "x"], None)
    assert [each["reason"] for each in refused["_refusals"]] == [
        "name is no string: no text, in base64: /wA=", 'days is no array<date>: ["+20086-09-23"]',
        "price is no double: \uffff5",
    ]  # fmt: skip
    assert (fine["name"], fine["tags"], fine["price"], fine["_refusals"]) == ("ok", ["y"], 1.5, [])
    assert (none["price"], [each["reason"] for each in none["_refusals"]]) == (None, ["name is null", "price is null"])


def test_a_key_that_does_not_fit_has_no_second_reason_unless_nothing_but_keys_is_checked(spark: SparkSession) -> None:
    columns = {"order_id": {"type": "int", "nullable": False}, "amount": {"type": "int"}}
    bronze = spark.sql(
        "SELECT *, 'a' AS _source_file, timestamp'2025-01-01' AS _interval_start FROM VALUES ('x', 1) "
        "AS bronze(order_id, amount)"
    )
    for deletes, reason in (("amount > 1", "order_id is no int: x"), ("amount = 1", "order_id is null")):
        spec = silver_spec(sequence_by=[], columns=columns, expectations=[], apply_as_deletes=deletes)
        assert [each["reason"] for each in silver_rows(bronze, spec).first()["_refusals"]] == [reason]


def test_a_null_message_without_a_key_is_dropped_by_name_unless_it_is_a_delete(spark: SparkSession) -> None:
    columns = {"order_id": {"type": "string", "nullable": False}, "amount": {"type": "int", "nullable": False}}
    bronze = spark.sql(
        "SELECT *, 'a' AS _source_file, timestamp'2025-01-01' AS _interval_start FROM VALUES "
        "(cast(null as string), cast(null as int), true), (null, 1, false) AS bronze(order_id, amount, _null_message)"
    )

    def refusals(**more: Any) -> list[list[tuple[str, str]]]:
        rows = silver_rows(bronze, silver_spec(sequence_by=[], columns=columns, **more)).orderBy("amount").collect()
        return [[(each["action"], each["reason"]) for each in row["_refusals"]] for row in rows]

    missing = [("quarantine", "order_id is null")]
    assert refusals() == [[("drop", "it has no values and no key, as a tombstone")], missing]
    assert refusals(apply_as_deletes="_null_message") == [missing, missing], "a delete of nobody knows which key"
