"""`lakehouse infer` on a file with hostile headers: the checks accept its spec, and each value is in its column."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import yaml
from typer.testing import CliRunner

from embedded.spark.server import SparkServer
from millrace.cli.app import app
from millrace.contracts.spec.record_fields import fields_of
from millrace.contracts.spec.table_spec import BronzeSpec, parse_spec
from millrace.errors import Outcome
from millrace.specs.files import SpecLoader
from tests.support.lakehouse import Lakehouse

HEADER = [
    "Order ID", "order_id", "ORDER ID", "Order.ID", "Größe (m²)", "2nd", "日本", "", "", "ID", "Id", "it's \"x\"",
    "a`b", "`c`", "order", "select", "sum(x)", "_id", "_rescued", "_source_file", "_corrupt_record", " padded ", "a;b",
    "a:b", "#", "yes", "null", "{interval_start}", "two\nlines", "x" * 300,
]  # fmt: skip


def inferred(shop: Lakehouse) -> BronzeSpec:
    """Write specs for the delivered orders, check them, and return that of bronze."""
    (shop.folder / "tables").mkdir()
    for words in (["infer", "orders", "--domain", "shop", "--write"], ["check"]):
        answer = CliRunner().invoke(app, words, env=shop.environment())
        assert answer.exit_code == 0, answer.output
    spec = parse_spec(yaml.load((shop.folder / "tables/bronze/shop/orders.yaml").read_text(), SpecLoader))
    assert isinstance(spec, BronzeSpec)
    return spec


def test_every_value_of_a_file_with_hostile_headers_is_in_its_column(tmp_path: Path, server: SparkServer) -> None:
    shop = Lakehouse(tmp_path)
    records = [[f"{row}-{number}" for number in range(len(HEADER))] for row in range(3)]
    content = io.StringIO(newline="")
    csv.writer(content, lineterminator="\n").writerows([HEADER, *records])
    file = tmp_path / "landing/orders/year=2013/month=01/day=01/a.csv"
    file.parent.mkdir(parents=True)
    file.write_text(content.getvalue())
    spec = inferred(shop)
    unnamed = {7: "column 8", 8: "column 9"}
    assert list(fields_of(spec).values()) == [unnamed.get(at, name) for at, name in enumerate(HEADER)]
    report = shop.run("bronze.orders")
    assert report.outcome is Outcome.COMMITTED, report.message
    assert shop.rows("bronze.orders", *spec.columns, "_rescued") == [(*record, None) for record in records]
    assert shop.run("silver.orders").rows.applied == len(records)
