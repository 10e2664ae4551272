"""Landing files in every format: loaded as written, or named as broken while the other files are loaded."""

from __future__ import annotations

import gzip
import io
import json
from datetime import date
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from embedded.spark.server import SparkServer
from include.errors import Outcome
from tests.support.documents.specs import bronze_document
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00pzst"


@pytest.fixture
def bronze(tmp_path: Path, server: SparkServer) -> Lakehouse:
    """A lakehouse without a table."""
    return Lakehouse(tmp_path)


def lines(first: int, count: int) -> bytes:
    return b"".join(b'{"order_id": "o%d", "amount": %d}\n' % (number, number) for number in range(first, first + count))


def windowed(content: bytes) -> bytes:
    """A frame whose window is larger than the content's first half, as `zstd --long` writes it."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return frame.compress(content) + frame.flush()


def test_zstd_files_are_unpacked_whoever_wrote_them(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(source={"landing": "orders", "files": "*", "format": "json"}))
    many = lines(0, 300_000)
    assert len(many) > 1 << 23, "more than the window of a plain zstd file"
    lakehouse.deliver(1, "many.json.zst", zstandard.compress(many))
    frames = zstandard.compress(lines(300_000, 10)) + SKIPPABLE + zstandard.compress(lines(300_010, 10))
    lakehouse.deliver(1, "frames.jsonl.zst", SKIPPABLE + frames)
    lakehouse.deliver(1, "long.json.zst", windowed(lines(300_020, 10)))
    lakehouse.deliver(1, "beside.json.gz", gzip.compress(lines(300_030, 10)))
    lakehouse.deliver(1, "cut.json.zst", zstandard.compress(many)[:-1000])
    lakehouse.deliver(1, "misnamed.json", zstandard.compress(many))
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    first, *others = report.message.splitlines()
    assert first.startswith("bronze.orders: 2 of 6 files cannot be loaded, the others are loaded")
    assert any("cut.json.zst: truncated zstd" in line for line in others)
    assert any("misnamed.json: zstd data under the name misnamed.json; it must end in .zst" in line for line in others)
    rows = lakehouse.rows(ORDERS, "order_id", "amount")
    assert len(rows) == 300_040
    assert set(rows) == {(f"o{number}", number) for number in range(300_040)}


def test_csv_values_are_read_from_zstd_files(bronze: Lakehouse) -> None:
    columns = {"order_id": {"type": "string"}, "name": {"type": "string"}}
    source = {"landing": "orders", "files": "*.csv*", "format": "csv"}
    bronze.specs(bronze_document(source=source, columns=columns))
    text = b'order_id,name\n1,"two\nlines"\n2,"a ""b"", c"\n'
    bronze.deliver(1, "a.csv.zst", zstandard.compress(text))
    assert bronze.run(ORDERS).outcome is Outcome.COMMITTED
    assert bronze.rows(ORDERS, "order_id", "name") == [("1", "two\nlines"), ("2", 'a "b", c')]


def test_arrays_and_lines_may_be_in_the_same_folder_and_follow_the_same_rules(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(source={"landing": "orders", "files": "*", "format": "json"}))
    pretty = b'[\n {\n  "order_id": "o1",\n  "amount": 1,\n  "note": 1.10000000000000000000001\n },\n 5,\n null\n]\n'
    lakehouse.deliver(1, "a.json", pretty)
    lakehouse.deliver(1, "b.json.zst", zstandard.compress(b'[{"order_id": "o2", "amount": 2},{"order_id": "[{o3]"}]'))
    lakehouse.deliver(1, "c.json.gz", gzip.compress(b"[]"))
    lakehouse.deliver(1, "d.json", [order(4, 4)])
    lakehouse.deliver(1, "cut.json", pretty[:-3])
    lakehouse.deliver(1, "half.json", b'[{"order_id": "o5"} {"order_id": "o6"}]')
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    first, *others = report.message.splitlines()
    assert first.startswith("bronze.orders: 2 of 6 files cannot be loaded, the others are loaded")
    assert any("cut.json: not a sound JSON array (element 3: the file ends within" in line for line in others)
    assert any("half.json: not a sound JSON array (element 1: then comes '{'" in line for line in others)
    assert lakehouse.rows(ORDERS, "order_id", "amount", "_rescued") == [
        ("[{o3]", None, None), ("o1", 1, '{"note":"1.10000000000000000000001"}'), ("o2", 2, None), ("o4", 4, None)
    ]  # fmt: skip
    found = sorted((row["position"], row["record"]) for row in lakehouse.quarantine(ORDERS))
    assert found == [(2, "5"), (3, "null")]
    assert (report.rows.read, report.rows.applied, report.rows.quarantined) == (6, 4, 2)


def test_an_array_takes_part_in_schema_drift(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(on_drift="fail"))
    lakehouse.deliver(1, "a.json", b'[{"order_id": "o1"}, {"order_id": "o2", "colour": "red"}]')
    lakehouse.deliver(1, "b.json", b'[{"order_id": "o3"}]')
    report = lakehouse.run(ORDERS)
    assert 'a.json: values that fit no column: {"colour":"red"}' in report.message
    assert lakehouse.rows(ORDERS, "order_id") == [("o3",)]


def test_parquet_files_with_different_types_for_a_column_load_together(bronze: Lakehouse) -> None:
    source = {"landing": "orders", "files": "*", "format": "parquet"}
    kinds = {"order_id": {"type": "string"}, "day": {"type": "date"}}
    bronze.specs(bronze_document(source=source, columns=kinds))
    for number, day in enumerate((date(2013, 1, 1), "2013-01-01", 20130101)):
        table = pa.table({"order_id": [f"o{number}"], "day": [day]})
        pq.write_table(table, bronze.deliver(1, f"{number}.parquet", b""))
    two_days = pa.Table.from_pydict({"order_id": ["o9"], "day": ["2013-01-01"], "Day": ["2013-01-02"]})
    pq.write_table(two_days, bronze.deliver(1, "9.parquet", b""))
    report = bronze.run(ORDERS)
    assert "9.parquet: Spark cannot read both of its columns day and Day" in report.message
    assert bronze.rows(ORDERS, "order_id", "day", "_rescued") == [
        ("o0", date(2013, 1, 1), None), ("o1", date(2013, 1, 1), None), ("o2", None, '{"day":"20130101"}')
    ]  # fmt: skip


def test_a_parquet_text_that_is_no_utf8_is_rescued_so_that_a_gate_can_show_it(bronze: Lakehouse) -> None:
    source = {"landing": "orders", "files": "*", "format": "parquet"}
    rule = {"expect_column_values_to_be_in_set": {"column": "order_id", "value_set": ["o1"]}, "action": "fail"}
    bronze.specs(bronze_document(source=source, columns={"order_id": {"type": "string"}}, expectations=[rule]))
    texts = pa.array([b"o1", b"caf\xe9", b"o2"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"order_id": texts, "note": texts}), bronze.deliver(1, "a.parquet", b""))
    report = bronze.run(ORDERS)
    assert [check.samples for check in report.checks] == [("o2",)], report.message
    no_text = "no text, in base64: Y2Fm6Q=="
    assert {key: json.loads(rescued) for key, rescued in bronze.rows(ORDERS, "order_id", "_rescued")} == {
        "o1": {"note": "o1"}, "o2": {"note": "o2"}, None: {"order_id": no_text, "note": no_text}
    }  # fmt: skip


def test_a_file_of_any_format_may_have_a_colon_in_its_name(bronze: Lakehouse) -> None:
    parquet, avro = io.BytesIO(), io.BytesIO()
    pq.write_table(pa.table({"order_id": ["o1"]}), parquet)
    fields = [{"name": "order_id", "type": "string"}]
    fastavro.writer(avro, {"type": "record", "name": "order", "fields": fields}, [{"order_id": "o1"}])
    contents = {
        "csv": b"order_id\no1\n",
        "csv.gz": gzip.compress(b"order_id\no1\n"),
        "json": b'[{"order_id": "o1"}]',
        "json.zst": zstandard.compress(lines(1, 1)),
        "parquet": parquet.getvalue(),
        "avro": avro.getvalue(),
    }
    for suffix, content in contents.items():
        source = {"landing": "orders", "files": f"*.{suffix}", "format": suffix.partition(".")[0]}
        table = f"bronze.{suffix.replace('.', '_')}"
        bronze.specs(bronze_document(table, source=source, columns={"order_id": {"type": "string"}}))
        bronze.deliver(1, f"08:00.{suffix}", content)
        report = bronze.run(table)
        assert report.outcome is Outcome.COMMITTED, report.message
        assert bronze.rows(table, "order_id", "_source_file") == [("o1", f"orders/date=2013-01-01/08:00.{suffix}")]
