"""`lakehouse infer`: what it prints, and what it writes once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from millrace.contracts.spec.record_fields import fields_of
from millrace.contracts.spec.table_spec import parse_spec
from millrace.errors import ExitCode
from tests.support.cli import Lakehouse


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


HOSTILE = [
    " Order ID ", "order_id", "Größe (m²)", "2nd", "日本", "", "ID", "Id", "a.b",
    'it\'s "x"', "order", "f(x)", "_id", "a;b",
]  # fmt: skip


def test_hostile_headers_become_names_of_columns_that_read_them(lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
    header = ",".join('"' + name.replace('"', '""') + '"' for name in HOSTILE)
    rows = "".join(",".join(f"{row}{number}" for number in range(len(HOSTILE))) + "\n" for row in (1, 2))
    put(Path(place["LAKEHOUSE_LANDING"]) / "shares/a.csv", f"{header}\n{rows}")
    answer = lakehouse("infer", "shares", "--domain", "shop", "--write")
    assert answer.exit_code == 0, answer.stderr
    assert lakehouse("check").exit_code == 0
    spec = parse_spec(yaml.safe_load((Path(place["LAKEHOUSE_TABLES"]) / "bronze/shop/shares.yaml").read_text()))
    assert list(fields_of(spec).values()) == [*HOSTILE[:5], "column 6", *HOSTILE[6:]]
    assert {name for name in spec.columns if not name.startswith("id")} == {
        "order_id_2", "order_id", "grosse_m2", "column_2nd", "column_5", "column_6", "a_b", "it_s_x", "order_",
        "f_x", "a_b_2",
    }  # fmt: skip
    assert {column.type for column in spec.columns.values()} == {"bigint"}
    silver = (Path(place["LAKEHOUSE_TABLES"]) / "silver/shop/shares.yaml").read_text()
    assert "order_id_2: {type: bigint" in silver


def test_the_command_prints_a_spec_or_writes_it_once(lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
    lines = '{"id": 1, "by": {"name": "x"}}\n{"id": 2, "by": null}\n'
    put(Path(place["LAKEHOUSE_LANDING"]) / "Shop Orders/a.json", lines)
    printed = lakehouse("infer", "Shop Orders")
    assert (printed.exit_code, "table: bronze.shop_orders\n" in printed.stdout) == (0, True)
    assert "silver.shop_orders too: --write" in printed.stderr
    assert lakehouse("infer", "Shop Orders", "--write").exit_code == 2, "it does not say where"
    wrote = lakehouse("infer", "Shop Orders", "--domain", "shop", "--write")
    assert wrote.exit_code == 0, wrote.stderr
    bronze, silver = (
        Path(place["LAKEHOUSE_TABLES"]) / layer / "shop/shop_orders.yaml" for layer in ("bronze", "silver")
    )
    assert wrote.stdout == f"wrote {bronze}\nwrote {silver}\n"
    assert bronze.read_text() == printed.stdout
    assert "keys: [id]" in silver.read_text()
    assert "  by: {type: 'struct<name:string>'}\n" in silver.read_text()
    assert lakehouse("check").exit_code == 0
    for domain in ("shop", "store"):
        again = lakehouse("infer", "Shop Orders", "--domain", domain, "--write")
        assert (again.exit_code, "not overwritten" in again.stderr) == (ExitCode.BAD_SPEC, True), domain


def test_a_silver_spec_needs_a_key_and_is_never_replaced(lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
    landing, tables = Path(place["LAKEHOUSE_LANDING"]), Path(place["LAKEHOUSE_TABLES"])
    put(landing / "lines/a.csv", "sku,amount\n1,1\n1,1\n")
    assert lakehouse("infer", "lines", "--domain", "shop", "--write").stdout.count("wrote") == 1
    assert "no silver table is proposed" in (tables / "bronze/shop/lines.yaml").read_text()
    put(landing / "bills/a.csv", "id\n1\n2\n")
    silver = put(tables / "silver/shop/bills.yaml", "mine")
    wrote = lakehouse("infer", "bills", "--domain", "shop", "--write")
    assert wrote.stdout == f"wrote {tables / 'bronze/shop/bills.yaml'}\n"
    assert silver.read_text() == "mine"
