"""`lakehouse table-diff`: versions, tables and lakehouses as people name them, and what a script relies on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from embedded.servers.s3 import Bucket
from millrace.contracts.lake_path import S3Path
from millrace.errors import ExitCode
from millrace.overview.described_columns import row_key
from millrace.paths import LakehousePaths
from tests.support.cli import Lakehouse
from tests.support.documents.specs import (
    bronze_spec,
    gold_query_spec,
    gold_spec,
    silver_document,
    silver_spec,
    write_specs,
)
from tests.support.reading.certified_lake import ORDERS, certify, now_of, write_version

EQUAL, DIFFERENT = 0, 1


def amounts(**of_orders: int | None) -> pa.Table:
    """Rows of orders with an amount, as a batch has written them: `_batch_token` is another one each time."""
    columns = {"order_id": list(of_orders), "amount": pa.array(of_orders.values(), pa.int32())}
    return pa.table({**columns, "_batch_token": [f"{sorted(of_orders.items(), key=str)}"] * len(of_orders)})


@pytest.fixture
def paths(place: Mapping[str, str]) -> LakehousePaths:
    """Orders with two certified versions, 0 and 1, and the refused version 2."""
    paths = LakehousePaths(Path(place["LAKEHOUSE_ROOT"]))
    write_version(paths, amounts(a=1, b=2, c=3))
    write_version(paths, amounts(a=1, b=20, d=None))
    write_version(paths, amounts(a=1), passed=False)
    return paths


def squeezed(text: str) -> list[str]:
    """The lines that have letters, with single blanks."""
    return [" ".join(line.split()) for line in text.split("\n") if re.search(r"\w", line)]


def test_a_person_sees_what_differs_between_two_versions(paths: LakehousePaths, lakehouse: Lakehouse) -> None:
    shown = lakehouse("table-diff", f"{ORDERS}@0", f"{ORDERS}@1")
    assert shown.exit_code == DIFFERENT
    assert squeezed(shown.stdout) == [
        f"from {ORDERS} version 0",
        f"to {ORDERS} version 1",
        "key: order_id",
        "rows added removed changed unchanged now",
        "3 1 1 1 1 3",
        "column changed rows",
        "amount 1",
        "for example key column from to",
        "added order_id d",
        "removed order_id c",
        "changed order_id b amount 2 20",
    ]


def test_a_person_sees_other_columns_partitions_and_what_looks_alike(
    paths: LakehousePaths, lakehouse: Lakehouse, place: Mapping[str, str]
) -> None:
    tables = ("silver.dated", "silver.dated_anew")
    write_specs(Path(place["LAKEHOUSE_TABLES"]), *map(silver_document, tables))
    days, ids = ["2013-01-01", "2013-01-02", "2013-01-03"], ["a", "b", "c"]
    old = {"order_id": ids, "day": days, "amount": pa.array([1, 2, 3], pa.int32()), "city": ["\u00e5", "b", "c"]}
    new = {"order_id": ids, "day": days, "amount": pa.array([1, 2, 4], pa.int64()), "city": ["a\u030a", "b", "c"]}
    for table, columns in zip(tables, ({**old, "note": ids}, new), strict=True):
        write_version(paths, pa.table(columns), table=table, partition_by=["day"])
    shown = squeezed(lakehouse("table-diff", *tables, "--limit", "1").stdout)
    assert shown[3:6] == ["column from to", "note string -", "amount integer long values are compared"]
    assert shown[-5:] == [
        "partition added removed changed",
        "day 2013-01-01 0 0 1",
        "... and 1 more partition: --json has all of them",
        "for example key column from to",
        r'changed order_id a city "\u00e5" "a\u030a"',
    ]


def test_versions_are_named_by_number_as_newest_by_a_time_or_are_the_certified_ones(
    paths: LakehousePaths, lakehouse: Lakehouse
) -> None:
    def numbers(*arguments: str) -> tuple[int, int, int]:
        answer = lakehouse("table-diff", *arguments, "--json")
        (item,) = json.loads(answer.stdout)
        assert item["is_equal"] == (answer.exit_code == EQUAL)
        return item["first"]["version"], item["second"]["version"], answer.exit_code

    assert numbers(f"{ORDERS}@0") == (0, 1, DIFFERENT)
    assert numbers(f"{ORDERS}@1") == (1, 1, EQUAL)
    assert numbers(ORDERS, f"{ORDERS}@newest") == (1, 2, DIFFERENT)
    certify(paths, ORDERS)
    time = f"{now_of(paths):%Y-%m-%dT%H:%M:%S.%fZ}"
    write_version(paths, amounts(a=1, b=2, c=3))
    assert numbers(f"{ORDERS}@{time}", ORDERS) == (2, 3, DIFFERENT)
    assert numbers(f"{ORDERS}@0", ORDERS) == (0, 3, EQUAL)
    assert lakehouse("table-diff", f"{ORDERS}@0", "--own-columns").exit_code == EQUAL
    wrong = {
        (ORDERS,): "with what",
        (f"{ORDERS}@soon",): "no instant",
        (f"{ORDERS}@9",): "The newest version is 3",
        ("silver.order@0",): "did you mean 'silver.orders'",
        (ORDERS, "silver.orders@2013-01-04T06:00"): "no offset",
        (f"{ORDERS}@0", "--key", "day"): "day is no column of both",
    }
    for arguments, reason in wrong.items():
        refused = lakehouse("table-diff", *arguments)
        assert (refused.exit_code, reason in refused.output) == (ExitCode.WRONG_USAGE, True), arguments


def test_two_tables_are_compared_by_the_key_of_their_specs_or_a_stated_one(
    place: Mapping[str, str], paths: LakehousePaths, lakehouse: Lakehouse
) -> None:
    write_version(paths, amounts(a=1, b=21, d=None), table="silver.copies")
    write_version(paths, amounts(a=1, b=20), table="gold.revenue_daily")
    no_spec = lakehouse("table-diff", ORDERS, "silver.copies")
    assert no_spec.exit_code == DIFFERENT
    assert "changed order_id (restricted) amount (restricted) (restricted)" in squeezed(no_spec.stdout)
    assert "no value is shown: a table has no sound spec" in no_spec.stdout
    other_key = lakehouse("table-diff", ORDERS, "gold.revenue_daily")
    assert (other_key.exit_code, other_key.stderr) == (
        ExitCode.WRONG_USAGE,
        "the two tables have different keys (silver.orders: order_id; gold.revenue_daily: day)\n"
        "State --key with columns of both.\n",
    )
    (item,) = json.loads(
        lakehouse("table-diff", ORDERS, "gold.revenue_daily", "--key", "order_id, amount", "--json").stdout
    )
    assert item["keys"] == ["order_id", "amount"]
    assert [(each["kind"], each["key"]) for each in item["samples"]] == [("removed", {"order_id": "d", "amount": None})]
    specs = [bronze_spec(), silver_spec(), silver_spec(stored_as_scd_type=2), gold_spec(), gold_query_spec()]
    keys = [(), ("order_id",), ("order_id", "__START_AT"), ("day",), ()]
    assert list(map(row_key, specs)) == keys


def test_values_of_restricted_columns_are_not_shown(
    place: Mapping[str, str], paths: LakehousePaths, lakehouse: Lakehouse
) -> None:
    spec = silver_document()
    spec["columns"]["amount"]["classification"] = "restricted"
    write_specs(Path(place["LAKEHOUSE_TABLES"]), spec)
    for options in ((), ("--json",), ("--key", "amount"), ("--key", "amount", "--json")):
        shown = lakehouse("table-diff", f"{ORDERS}@0", *options)
        assert "(restricted)" in shown.stdout
        assert "20" not in shown.stdout.partition("for example")[2]
        assert '"20"' not in shown.stdout


def test_a_table_is_compared_with_that_of_another_lakehouse(
    paths: LakehousePaths, lakehouse: Lakehouse, bucket: Bucket
) -> None:
    other = LakehousePaths(S3Path("s3://lake/table-diff"))
    write_version(other, amounts(b=20, a=1, d=None))
    same = lakehouse("table-diff", ORDERS, "--other-root", "s3://lake/table-diff")
    assert (same.exit_code, "They are equal: 3 rows." in same.stdout) == (EQUAL, True)
    assert f"in {other.root}" in same.stdout
    assert lakehouse("table-diff", f"{ORDERS}@0", "--other-root", str(other.root)).exit_code == DIFFERENT
    missing = lakehouse("table-diff", ORDERS, "--other-root", "s3://no-such-bucket/x")
    assert (missing.exit_code, "no-such-bucket" in missing.stderr) == (ExitCode.WRONG_USAGE, True)
