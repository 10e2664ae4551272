"""Avro files of every compression and of several schemas in one run: values typed or rescued, broken files named."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
import zstandard

from millrace.errors import Outcome
from tests.support.lakehouse import Lakehouse
from tests.support.storage.landing_files import (
    PART_COLUMNS,
    PART_RECORDS,
    avro_of,
    load_files,
    packed_avro_of,
    require_parts,
    rows_of_file,
    snappy_block,
)

KINDS: dict[str, Any] = {
    "order_id": "string",
    "amount": ["null", "int"],
    "day": {"type": "int", "logicalType": "date"},
    "event_at": {"type": "long", "logicalType": "timestamp-micros"},
    "total": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
}
OWN_COLUMNS = {
    "order_id": {},
    "amount": {"type": "int"},
    "day": {"type": "date"},
    "event_at": {"type": "timestamp"},
    "total": {"type": "decimal(20,4)"},
}
# Avro has no names with dots.
COLUMNS = {**OWN_COLUMNS, **PART_COLUMNS, "order_no": {"from": "order.No"}, "b_city": {"from": "top"}}
SOURCE = {"landing": "orders", "files": "*", "format": "avro"}
DAY, AT = date(2013, 1, 1), datetime(2013, 1, 1, 1, 2, 3, 456789, tzinfo=UTC)
TOTAL = Decimal("1234567890123456.0001")
PLACE = {"type": "record", "name": "place", "fields": [{"name": "x", "type": ["null", "long"]}]}

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
TREE = {"type": "record", "name": "tree", "fields": [{"name": "of", "type": {"type": "array", "items": "tree"}}]}

OF_A, OF_B = {**PLACE, "namespace": "a"}, {**PLACE, "namespace": "b", "fields": [{"name": "day", "type": "int"}]}
"""Two types with one short name."""


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"order_id": f"o{number}", "amount": number, "day": DAY, "event_at": AT, "total": TOTAL, **more}


def avro(*rows: dict[str, Any], codec: str = "null", **kinds: Any) -> bytes:
    """An Avro file; `kinds` adds fields or changes their types."""
    return avro_of({**KINDS, **kinds}, *rows, codec=codec)


def repacked(codec: str, pack: Callable[[bytes], bytes], *rows: dict[str, Any]) -> bytes:
    return packed_avro_of(KINDS, codec, pack, *rows)


def of_parts() -> bytes:
    def record(name: str, **fields: Any) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}

    address = record("address", city="string", zip="string")
    kinds = {
        "order": record("orders", No="string"),
        "buyer": ["null", record("buyer", address=["null", address])],
        "items": ["null", {"type": "array", "items": record("item", price="double")}],
        "top": ["null", "string"],
    }
    rows = (
        {**each, "order": {"No": each["order"]["No."]}, "top": each.get("buyer.address.city")} for each in PART_RECORDS
    )
    return avro_of(kinds, *rows)


def files() -> dict[str, bytes]:
    codecs = ("null", "deflate", "bzip2", "xz")
    sound = {f"{codec}.avro": avro(row(number), codec=codec) for number, codec in enumerate(codecs)}
    sound["snappy.avro"] = repacked("snappy", snappy_block, row(4))
    sound["zstandard.avro"] = repacked("zstandard", zstandard.compress, row(5), row(6))
    unreadable, bad_sum = bytearray(avro(row(1))), bytearray(sound["snappy.avro"])
    unreadable[unreadable.index(b"o1") - 1] = 0xFE
    bad_sum[-17] ^= 0x55
    return {
        **sound,
        "08:00.avro": avro(row(1)),
        "b.avro": avro(row(2, colour="red", place={"x": None}), colour="string", place=PLACE),
        "c.avro": avro(row(3, amount="3"), row(4, amount="many"), amount="string"),
        "d.avro": avro(row(5, amount=5), row(6, amount=1 << 40), amount="long"),
        "e.avro": avro(row(7, day=20130101), day="int"),
        "f.avro": avro(row(8, amount={"x": 1}), amount=PLACE),
        "g.avro": avro(row(9, a={"x": 1}, b={"day": 2}, c={"x": 3}), a=OF_A, b=OF_B, c="a.place"),
        "h.avro": avro(
            {**row(10), "event_at": 2**62, "a": 2**62, "b": [2**62, 1]},
            row(11, a=0, b=[]),
            event_at=MILLIS,
            a=MILLIS,
            b={"type": "array", "items": MILLIS},
        ),
        "i.avro": avro(row(12, tree={"of": [{"of": []}]}), tree=TREE),
        "parts.avro": of_parts(),
        "header.avro": b"Obj\x01 and no more",
        "record.avro": bytes(unreadable),
        "damaged snappy.avro": bytes(bad_sum),
        "cut zstandard.avro": repacked("zstandard", lambda block: zstandard.compress(block)[:-3], row(1)),
    }


@pytest.fixture(scope="module")
def loaded(shared: Lakehouse) -> Lakehouse:
    """All these files after one run."""
    load_files(shared, files(), source=SOURCE, columns=COLUMNS)
    return shared


def test_values_arrive_as_their_writer_wrote_them_in_every_compression(loaded: Lakehouse) -> None:
    names = [f"{codec}.avro" for codec in ("null", "deflate", "bzip2", "xz", "snappy", "zstandard")]
    assert rows_of_file(loaded, names, *OWN_COLUMNS, "_rescued") == [
        (f"o{number}", number, DAY, AT, TOTAL, None) for number in range(7)
    ]


def test_damaged_files_are_named_and_the_others_load(loaded: Lakehouse) -> None:
    report = loaded.reports[-1]
    assert report.outcome is Outcome.BAD_INPUT
    assert "4 of 20 files cannot be loaded" in report.message
    assert "header.avro: not a sound Avro file (its header" in report.message
    for name, why in (
        ("record", ""),
        ("damaged snappy", "a block has another check sum than it says"),
        ("cut zstandard", "a block ends too early"),
    ):
        assert f"{name}.avro: not a sound Avro file ({why}" in report.message


def test_files_of_other_schemas_load_together_and_invalid_values_are_rescued(loaded: Lakehouse) -> None:
    names = ["08:00.avro", *(f"{letter}.avro" for letter in "bcdefghi")]
    far = [str(2**62), "1970-01-01T00:00:00.001000Z"]
    assert rows_of_file(loaded, names, "order_id", "amount", "day", "_rescued") == [
        ("o1", 1, DAY, None),
        (
            "o10",
            10,
            DAY,
            f'{{"a":"{2**62}","b":{json.dumps(json.dumps(far, separators=(",", ":")))},"event_at":"{2**62}"}}',
        ),
        ("o11", 11, DAY, '{"a":"1970-01-01 00:00:00","b":"[]"}'),
        ("o12", 12, DAY, '{"tree":"{\\"of\\": [{\\"of\\": []}]}"}'),
        ("o2", 2, DAY, '{"colour":"red","place":"{\\"x\\":null}"}'),
        ("o3", 3, DAY, None),
        ("o4", None, DAY, '{"amount":"many"}'),
        ("o5", 5, DAY, None),
        ("o6", None, DAY, '{"amount":"1099511627776"}'),
        ("o7", 7, None, '{"day":"20130101"}'),
        ("o8", None, DAY, '{"amount":"{\\"x\\":1}"}'),
        ("o9", 9, DAY, '{"a":"{\\"x\\":1}","b":"{\\"day\\":2}","c":"{\\"x\\":3}"}'),
    ]


def test_columns_read_parts_of_fields_and_columns_that_lack_are_named(loaded: Lakehouse) -> None:
    require_parts(loaded, "parts.avro")
    assert any("parts.avro has no column" in note for note in loaded.reports[-1].notes), loaded.reports[-1].notes
