"""Avro files, read block by block: complete files have columns, all others are refused."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import fastavro
import pytest

from tests.support.deliveries import Deliver, orders_spec_of
from tests.support.listing import inspected

SPEC = orders_spec_of("avro")
COLUMNS = ("order_id", "amount", "day", "event_at", "event_seq")
DAY = {"type": "int", "logicalType": "date"}
KINDS: dict[str, Any] = {"order_id": "string", "amount": "int", "day": DAY, "event_at": "string", "event_seq": "long"}
ROWS = [{"order_id": str(n), "amount": n, "day": 15706, "event_at": "x", "event_seq": n} for n in range(500)]


def avro(kinds: dict[str, Any] = KINDS, rows: list[dict[str, Any]] = ROWS, codec: str = "null", **more: Any) -> bytes:
    """Return an Avro file of several blocks, by another writer than Spark."""
    schema = {"type": "record", "name": "order", "fields": [{"name": n, "type": k} for n, k in kinds.items()], **more}
    stored = io.BytesIO()
    fastavro.writer(stored, schema, rows, codec=codec, sync_interval=1000)
    return stored.getvalue()


@pytest.mark.parametrize(("codec", "place"), [("null", -8), ("deflate", -40), ("bzip2", -40), ("xz", -40)])
def test_the_columns_of_an_avro_file_are_those_of_its_schema_and_a_cut_or_damaged_one_is_refused(
    deliver: Deliver, codec: str, place: int
) -> None:
    whole = avro(codec=codec)
    found = inspected(deliver, SPEC, "a.avro", whole)
    assert (found.defect, found.columns) == ("", COLUMNS)
    assert len(whole) > 2500, "several blocks"
    for kept in (3, 4, 5, 60, -1500, -300, -17, -16, -1):
        cut = inspected(deliver, SPEC, "a.avro", whole[:kept])
        assert cut.defect.startswith(("not a sound Avro file (", "a.avro is not an Avro file")), kept
        assert cut.columns == ()
    damaged = bytearray(whole)
    damaged[place] ^= 0x55
    assert inspected(deliver, SPEC, "a.avro", bytes(damaged)).defect.startswith("not a sound Avro file (")


def test_a_file_that_is_compressed_as_a_whole_is_refused(deliver: Deliver) -> None:
    found = inspected(deliver, SPEC, "a.avro.gz", gzip.compress(avro()))
    assert found.defect.startswith("not an Avro file, or one that is compressed as a whole")


PLACE = {"type": "record", "name": "place", "namespace": "geo", "fields": [{"name": "x", "type": "int"}]}
PLACES = {"type": "array", "items": "geo.place"}
AT = {"type": "long", "logicalType": "timestamp-micros"}


def test_a_repeated_type_name_and_times_outside_the_range_of_python_are_sound(deliver: Deliver) -> None:
    kinds = {
        **KINDS,
        "event_at": AT,
        "a": PLACE,
        "b": ["null", "geo.place"],
        "c": {"type": "array", "items": "geo.place"},
    }
    row = {**ROWS[0], "event_at": 1 << 60, "day": -(1 << 30), "a": {"x": 1}, "b": None, "c": []}
    found = inspected(deliver, SPEC, "a.avro", avro(kinds, [row]))
    assert (found.defect, found.columns) == ("", (*COLUMNS, "a", "b", "c"))


def test_a_block_with_a_wrong_number_of_records_is_refused(deliver: Deliver) -> None:
    (row,) = ROWS[1:2]
    whole = avro(rows=[row])
    count = whole.index(b"\x021") - 2
    assert whole[count] == 2, "one record, zigzag"
    for records in (0, 4):
        defect = inspected(deliver, SPEC, "a.avro", whole[:count] + bytes([records]) + whole[count + 1 :]).defect
        assert defect.startswith("not a sound Avro file (")


def test_files_with_the_same_column_types_have_the_same_layout(deliver: Deliver) -> None:
    plain = inspected(deliver, SPEC, "a.avro", avro())
    documented = inspected(deliver, SPEC, "a.avro", avro(namespace="shop", doc="an order"))
    other = inspected(deliver, SPEC, "a.avro", avro({**KINDS, "amount": "long"}))
    assert plain.layout == documented.layout != other.layout
    assert plain.columns == other.columns


@pytest.mark.parametrize(
    ("schema", "defect"),
    [
        ("int", "its values are no records, so they have no columns"),
        ({"type": "record", "name": "o", "fields": [{"name": "n", "type": ["null", "o"]}]}, "its type o holds itself"),
        (
            {"type": "record", "name": "o", "fields": [{"name": "v", "type": "int"}, {"name": "V", "type": "int"}]},
            "its columns v, V differ by nothing but case",
        ),
        ({"type": "record", "name": "o", "fields": [{"name": "v"}]}, "its schema is no Avro schema (KeyError"),
        ({"type": "record", "name": "o", "fields": [{"name": "v", "type": 5}]}, "its schema is no Avro schema ("),
    ],
)
def test_a_schema_without_columns_that_spark_can_have_is_refused(deliver: Deliver, schema: Any, defect: str) -> None:
    assert inspected(deliver, SPEC, "a.avro", header(json.dumps(schema).encode())).defect.startswith(defect)


def test_a_wrong_header_is_refused(deliver: Deliver) -> None:
    torn = inspected(deliver, SPEC, "a.avro", header(b"{"))
    assert torn.defect.startswith("not a sound Avro file (its header: ")
    unknown = inspected(deliver, SPEC, "a.avro", header(b'{"type": "record"}', b"lzo"))
    assert unknown.defect.startswith("its blocks are compressed by lzo; known are null, deflate, snappy")


def header(schema: bytes, codec: bytes = b"null") -> bytes:
    """Return an Avro file without a block."""
    entries = [b"avro.schema", schema, b"avro.codec", codec]
    return b"Obj\x01\x04" + b"".join(number(len(entry)) + entry for entry in entries) + b"\0" + bytes(16)


def number(value: int) -> bytes:
    """Return a number in Avro's form."""
    coded, written = value << 1, b""
    while coded >= 0x80:
        written, coded = written + bytes([coded & 0x7F | 0x80]), coded >> 7
    return written + bytes([coded])
