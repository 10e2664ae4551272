"""Avro files, read block by block: complete files have columns, all others are refused."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from include.control.landing.inspection import inspect
from include.control.landing.on_disk import LocalLanding
from include.control.log.batch import FileFact
from tests.support.deliveries import Deliver, orders_spec_of
from tests.support.ledger.delta_tables import day
from tests.support.listing import list_files

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


def inspected(landing: Path, deliver: Deliver, content: bytes, name: str = "a.avro") -> FileFact:
    """Deliver an Avro file, and return it after its inspection."""
    deliver(name, content)
    place = LocalLanding(str(landing))
    (file,) = list_files(orders_spec_of("avro"), place, day())
    return inspect(file, place, orders_spec_of("avro"))


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_the_columns_of_an_avro_file_are_those_of_its_schema(landing: Path, deliver: Deliver, codec: str) -> None:
    found = inspected(landing, deliver, avro(codec=codec))
    assert (found.defect, found.columns) == ("", COLUMNS)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
@pytest.mark.parametrize("kept", [3, 4, 5, 60, -1500, -300, -17, -16, -1])
def test_an_avro_file_is_refused_wherever_it_is_cut(landing: Path, deliver: Deliver, codec: str, kept: int) -> None:
    whole = avro(codec=codec)
    assert len(whole) > 2500, "several blocks"
    found = inspected(landing, deliver, whole[:kept])
    assert found.defect.startswith(("not a sound Avro file (", "a.avro is not an Avro file"))
    assert found.columns == ()


@pytest.mark.parametrize(("codec", "place"), [("null", -8), ("deflate", -40), ("bzip2", -40), ("xz", -40)])
def test_a_damaged_block_is_refused(landing: Path, deliver: Deliver, codec: str, place: int) -> None:
    damaged = bytearray(avro(codec=codec))
    damaged[place] ^= 0x55
    assert inspected(landing, deliver, bytes(damaged)).defect.startswith("not a sound Avro file (")


def test_a_file_that_is_compressed_as_a_whole_is_refused(landing: Path, deliver: Deliver) -> None:
    found = inspected(landing, deliver, gzip.compress(avro()), "a.avro.gz")
    assert found.defect.startswith("not an Avro file, or one that is compressed as a whole")


def test_a_file_that_has_no_declared_column_is_refused_and_one_that_has_some_is_not(
    landing: Path, deliver: Deliver
) -> None:
    assert inspected(landing, deliver, avro({"order_id": "string", "day": DAY})).defect == ""
    assert inspected(landing, deliver, avro({"other": "string"}, [{"other": "x"}])).defect == (
        "has no column order_id, amount, day, event_at, event_seq; its columns are other: correct the file or the spec"
    )


def test_times_outside_the_range_of_python_are_sound(landing: Path, deliver: Deliver) -> None:
    kinds = {**KINDS, "event_at": {"type": "long", "logicalType": "timestamp-micros"}}
    found = inspected(landing, deliver, avro(kinds, [{**ROWS[0], "event_at": 1 << 60, "day": -(1 << 30)}]))
    assert (found.defect, found.columns) == ("", COLUMNS)


def test_a_block_with_a_wrong_number_of_records_is_refused(landing: Path, deliver: Deliver) -> None:
    (row,) = ROWS[1:2]
    whole = avro(rows=[row])
    count = whole.index(b"\x021") - 2
    assert whole[count] == 2, "one record, zigzag"
    for records in (0, 4):
        defect = inspected(landing, deliver, whole[:count] + bytes([records]) + whole[count + 1 :]).defect
        assert defect.startswith("not a sound Avro file (")


def test_files_with_the_same_column_types_have_the_same_layout(landing: Path, deliver: Deliver) -> None:
    plain = inspected(landing, deliver, avro())
    documented = inspected(landing, deliver, avro(namespace="shop", doc="an order"))
    other = inspected(landing, deliver, avro({**KINDS, "amount": "long"}))
    assert plain.layout == documented.layout != other.layout
    assert plain.columns == other.columns


PLACE = {"type": "record", "name": "place", "namespace": "geo", "fields": [{"name": "x", "type": "int"}]}


def test_a_repeated_type_name_is_resolved(landing: Path, deliver: Deliver) -> None:
    twice = {**KINDS, "a": PLACE, "b": ["null", "geo.place"], "c": {"type": "array", "items": "geo.place"}}
    rows = [{**ROWS[0], "a": {"x": 1}, "b": None, "c": []}]
    found = inspected(landing, deliver, avro(twice, rows))
    assert (found.defect, found.columns) == ("", (*COLUMNS, "a", "b", "c"))


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
)  # fmt: skip
def test_a_schema_without_columns_that_spark_can_have_is_refused(
    landing: Path, deliver: Deliver, schema: Any, defect: str
) -> None:
    assert inspected(landing, deliver, header(json.dumps(schema).encode())).defect.startswith(defect)


@pytest.mark.parametrize(
    ("schema", "codec", "defect"),
    [
        (b"{", b"null", "not a sound Avro file (its header: "),
        (b'{"type": "record"}', b"lzo", "its blocks are compressed by lzo; known are null, deflate, snappy"),
    ],
)
def test_a_wrong_header_is_refused(landing: Path, deliver: Deliver, schema: bytes, codec: bytes, defect: str) -> None:
    assert inspected(landing, deliver, header(schema, codec)).defect.startswith(defect)


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
