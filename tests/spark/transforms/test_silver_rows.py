"""Silver rows of bronze rows: what no text, date or type holds is refused, and nothing is stored in its place."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_jobs.transforms.silver.silver import silver_rows
from tests.support.documents.specs import silver_spec


def test_bytes_that_are_no_text_are_refused_and_texts_that_mean_nothing_are_null(spark: SparkSession) -> None:
    columns = {
        "order_id": {"type": "string", "nullable": False},
        "name": {"type": "string"},
        "tags": {"type": "array<string>", "null_values": "-"},
        "days": {"type": "array<date>"},
        "price": {"type": "double", "decimal_comma": True, "from": "text", "null_values": "-"},
    }
    spec = silver_spec(keys=["order_id"], sequence_by=[], columns=columns, expectations=[])
    bronze = spark.sql(
        "SELECT *, 'a.json' AS _source_file, timestamp'2025-01-01' AS _interval_start FROM VALUES "
        "('a', X'FF00', array('-', 'x'), array(date_from_unix_date(6616999)), '\uffff5'), "
        "('b', X'6F6B', array('y'), null, '1,5'), ('c', X'6F6B', null, null, '-') "
        "AS bronze(order_id, name, tags, days, text)"
    )
    refused, fine, none = silver_rows(bronze, spec).orderBy("order_id").collect()
    assert (refused["name"], refused["tags"], refused["days"]) == (None, [None, "x"], None)
    assert [each["reason"] for each in refused["_refusals"]] == [
        "name is no string: no text, in base64: /wA=", 'days is no array<date>: ["+20086-09-23"]',
        "price is no double: \uffff5",
    ]  # fmt: skip
    assert (fine["name"], fine["tags"], fine["price"], fine["_refusals"]) == ("ok", ["y"], 1.5, [])
    assert (none["price"], none["_refusals"]) == (None, [])
