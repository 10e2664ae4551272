"""Avro files as a source of bronze: values typed as declared, invalid values rescued, broken files named."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from embedded.spark.server import SparkServer
from include.errors import Outcome
from spark_jobs.runtime.session import own_session
from tests.support.documents.specs import bronze_document
from tests.support.lakehouse import Lakehouse

ORDERS = "bronze.orders"
KINDS: dict[str, Any] = {
    "order_id": "string",
    "amount": ["null", "int"],
    "day": {"type": "int", "logicalType": "date"},
    "event_at": {"type": "long", "logicalType": "timestamp-micros"},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
}
AT = datetime(2013, 1, 1, 1, 2, 3, 456789, tzinfo=UTC)
SOURCE = {"landing": "orders", "files": "*", "format": "avro"}
COLUMNS = {
    name: {"type": kind}
    for name, kind in {
        "order_id": "string", "amount": "int", "day": "date", "event_at": "timestamp", "price": "decimal(20,4)"
    }.items()
}  # fmt: skip


@pytest.fixture
def bronze(tmp_path: Path, server: SparkServer) -> Lakehouse:
    """A lakehouse without a table."""
    return Lakehouse(tmp_path)


def avro(rows: list[dict[str, Any]], codec: str = "null", **kinds: Any) -> bytes:
    """An Avro file as another writer than Spark makes it; `kinds` adds fields or changes their types."""
    fields = [{"name": name, "type": kind} for name, kind in {**KINDS, **kinds}.items()]
    stored = io.BytesIO()
    fastavro.writer(stored, {"type": "record", "name": "order", "fields": fields}, rows, codec=codec)
    return stored.getvalue()


def row(number: int, **more: Any) -> dict[str, Any]:
    values = {"order_id": f"o{number}", "amount": number, "day": date(2013, 1, 1), "event_at": AT}
    return {**values, "price": Decimal("1234567890123456.0001"), **more}


def expected(number: int) -> tuple[Any, ...]:
    return (f"o{number}", number, date(2013, 1, 1), AT, Decimal("1234567890123456.0001"), None)


def avro_rows(bronze: Lakehouse) -> list[tuple[Any, ...]]:
    return bronze.rows(ORDERS, *COLUMNS, "_rescued")


def test_avro_values_arrive_as_their_writer_wrote_them(bronze: Lakehouse, tmp_path: Path) -> None:
    bronze.specs(bronze_document(source=SOURCE, columns=COLUMNS))
    for number, codec in enumerate(("null", "deflate", "bzip2", "xz")):
        bronze.deliver(1, f"{codec}.avro", avro([row(number)], codec))
    with own_session({}) as session:
        schema = "order_id string, amount int, day date, event_at timestamp, price decimal(20,4)"
        for number, codec in enumerate(("snappy", "zstandard"), 4):
            rows = session.createDataFrame([tuple(row(number).values())], schema)
            written = rows.coalesce(1).write.format("avro").option("compression", codec)
            written.save(str(tmp_path / codec))
            (part,) = (tmp_path / codec).glob("*.avro")
            bronze.deliver(1, part.name, part.read_bytes())
    report = bronze.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert avro_rows(bronze) == [expected(number) for number in range(6)]


@pytest.mark.slow
@pytest.mark.parametrize(("codec", "damage"), [("snappy", b""), ("zstandard", b"\x28\xb5\x2f\xfd")])
def test_a_damaged_block_of_a_codec_of_spark_is_detected(
    bronze: Lakehouse, tmp_path: Path, codec: str, damage: bytes
) -> None:
    bronze.specs(bronze_document(source=SOURCE, columns={"order_id": {"type": "bigint"}}))
    with own_session({}) as session:
        rows = session.range(5000).withColumnRenamed("id", "order_id").coalesce(1)
        rows.write.format("avro").option("compression", codec).save(str(tmp_path / codec))
    (part,) = (tmp_path / codec).glob("*.avro")
    whole = part.read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(damage) if damage else -40] ^= 0x55
    bronze.deliver(1, "damaged.avro", bytes(damaged))
    bronze.deliver(1, "cut.avro", whole[:-20])
    bronze.deliver(1, "sound.avro", whole)
    report = bronze.run(ORDERS)
    assert "2 of 3 files cannot be loaded" in report.message
    assert report.message.count(".avro: not a sound Avro file (") == 2
    assert len(bronze.rows(ORDERS, "order_id")) == 5000


@pytest.mark.slow
def test_avro_files_of_other_schemas_load_together_and_invalid_values_are_rescued(bronze: Lakehouse) -> None:
    bronze.specs(bronze_document(source=SOURCE, columns=COLUMNS))
    bronze.deliver(1, "a.avro", avro([row(1)]))
    place = {"type": "record", "name": "place", "fields": [{"name": "x", "type": ["null", "long"]}]}
    more = avro([row(2, colour="red", place={"x": None})], colour="string", place=place)
    bronze.deliver(1, "b.avro", more)
    bronze.deliver(1, "c.avro", avro([row(3, amount="3"), row(4, amount="many")], amount="string"))
    bronze.deliver(1, "d.avro", avro([row(5, amount=5), row(6, amount=1 << 40)], amount="long"))
    bronze.deliver(1, "e.avro", avro([row(7, day=20130101)], day="int"))
    bronze.deliver(1, "f.avro", avro([row(8, amount={"x": 1})], amount=place))
    bronze.deliver(1, "g.avro", b"Obj\x01 and no more")
    report = bronze.run(ORDERS)
    assert "1 of 7 files cannot be loaded" in report.message
    assert "g.avro: not a sound Avro file (its header" in report.message
    assert [(found[0], found[1], found[2], found[-1]) for found in avro_rows(bronze)] == [
        ("o1", 1, date(2013, 1, 1), None),
        ("o2", 2, date(2013, 1, 1), '{"colour":"red","place":"{\\"x\\":null}"}'),
        ("o3", 3, date(2013, 1, 1), None),
        ("o4", None, date(2013, 1, 1), '{"amount":"many"}'),
        ("o5", 5, date(2013, 1, 1), None),
        ("o6", None, date(2013, 1, 1), '{"amount":"1099511627776"}'),
        ("o7", 7, None, '{"day":"20130101"}'),
        ("o8", None, date(2013, 1, 1), '{"amount":"{\\"x\\":1}"}'),
    ]


@pytest.mark.slow
def test_an_avro_file_may_lack_optional_columns_and_new_columns_may_evolve(bronze: Lakehouse) -> None:
    columns = {**COLUMNS, "day": {"type": "date", "required": True}}
    bronze.specs(bronze_document(source=SOURCE, columns=columns, on_drift="evolve"))
    bronze.deliver(1, "a.avro", avro([row(1, colour="red")], colour="string"))
    stored = io.BytesIO()
    fields = [{"name": "order_id", "type": "string"}]
    fastavro.writer(stored, {"type": "record", "name": "order", "fields": fields}, [{"order_id": "o2"}])
    bronze.deliver(1, "b.avro", stored.getvalue())
    report = bronze.run(ORDERS)
    assert "b.avro: has no column day; its columns are order_id" in report.message
    assert bronze.rows(ORDERS, "order_id", "colour", "_rescued") == [("o1", "red", None)]
    bronze.specs(bronze_document(source=SOURCE, columns=COLUMNS, on_drift="evolve"))
    report = bronze.run(ORDERS)
    assert any("b.avro has no column amount, day, event_at, price: null in its row" in note for note in report.notes)
    assert bronze.rows(ORDERS, "order_id", "amount", "colour") == [("o1", 1, "red"), ("o2", None, None)]


def test_a_strict_spec_leaves_out_an_avro_file_with_a_field_that_has_no_column(bronze: Lakehouse) -> None:
    bronze.specs(bronze_document(source=SOURCE, columns=COLUMNS, on_drift="fail"))
    bronze.deliver(1, "a.avro", avro([row(1, size=1)], size="int"))
    bronze.deliver(1, "b.avro", avro([row(2)]))
    assert 'a.avro: values that fit no column: {"size":"1"}' in bronze.run(ORDERS).message
    assert avro_rows(bronze) == [expected(2)]


def test_a_file_with_an_unreadable_record_is_named_and_the_other_files_load(bronze: Lakehouse) -> None:
    bronze.specs(bronze_document(source=SOURCE, columns=COLUMNS))
    broken = bytearray(avro([row(1)]))
    broken[broken.index(b"o1") - 1] = 0xFE
    bronze.deliver(1, "a.avro", bytes(broken))
    bronze.deliver(1, "b.avro", avro([row(2)]))
    assert "a.avro: not a sound Avro file (" in bronze.run(ORDERS).message
    assert avro_rows(bronze) == [expected(2)]
