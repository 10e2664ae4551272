"""Avro and compressed files: truncated or damaged files are refused wherever they end, sound files never."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

import fastavro
import pytest
import zstandard

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


def test_types_with_one_short_name_in_several_namespaces_are_several_types(deliver: Deliver) -> None:
    order = {"type": "record", "name": "order", "namespace": "geo", "fields": [{"name": "at", "type": PLACE}]}
    place = {"type": "record", "name": "geo.old.place", "fields": [{"name": "now", "type": "geo.place"}]}
    row = {**ROWS[0], "a": {"at": {"x": 1}}, "b": {"now": {"x": 2}}, "c": None, "d": {"now": {"x": 3}}}
    kinds = {**KINDS, "a": order, "b": place, "c": ["null", "geo.order"], "d": "geo.old.place"}
    found = inspected(deliver, SPEC, "a.avro", avro(kinds, [row]))
    assert (found.defect, found.columns) == ("", (*COLUMNS, "a", "b", "c", "d"))


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


def test_a_wrong_header_and_a_file_that_is_compressed_as_a_whole_are_refused(deliver: Deliver) -> None:
    torn = inspected(deliver, SPEC, "a.avro", header(b"{"))
    assert torn.defect.startswith("not a sound Avro file (its header: ")
    unknown = inspected(deliver, SPEC, "a.avro", header(b'{"type": "record"}', b"lzo"))
    assert unknown.defect.startswith("its blocks are compressed by lzo; known are null, deflate, snappy")
    packed = inspected(deliver, SPEC, "a.avro.gz", gzip.compress(avro()))
    assert packed.defect.startswith("not an Avro file, or one that is compressed as a whole")


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


LINES = b"".join(b'{"order_id": "%d", "amount": %d}\n' % (number, number) for number in range(50))
MEBIBYTE = 1 << 20
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00pzst"
"""A frame without content: pzstd writes one before each of its frames."""

Compress = Callable[[bytes], bytes]


def defect_of(deliver: Deliver, name: str, content: bytes, file_format: str = "json") -> str:
    """Deliver a file, and return its defect."""
    found = inspected(deliver, orders_spec_of(file_format), name, content)
    assert found.checksum == hashlib.sha256(content).hexdigest()
    return found.defect


def member_of(size: int) -> bytes:
    """Return a gzip member of exactly `size` bytes: stored lines, and a file name of the necessary length."""
    plain = gzip.compress(LINES * ((size - 4000) // len(LINES)), compresslevel=0)
    name = b"x" * (size - len(plain) - 1) + b"\0"
    return plain[:3] + b"\x08" + plain[4:10] + name + plain[10:]


def frames_of(size: int) -> bytes:
    """Return a skippable frame and a zstd frame of `size` bytes together."""
    plain = zstandard.compress(LINES)
    filling = size - len(plain) - 8
    return SKIPPABLE[:4] + filling.to_bytes(4, "little") + bytes(filling) + plain


@pytest.mark.parametrize(
    ("packing", "suffix", "compress", "of_size"),
    [("gzip", ".gz", gzip.compress, member_of), ("zstd", ".zst", zstandard.compress, frames_of)],
    ids=["gzip", "zstd"],
)
def test_members_may_end_anywhere_and_a_file_may_not_and_needs_a_name_of_its_packing(
    deliver: Deliver, packing: str, suffix: str, compress: Compress, of_size: Callable[[int], bytes]
) -> None:
    name, member = f"a.json{suffix}", compress(LINES)
    for beyond in (-1, 0, 1, 10):
        body = of_size(MEBIBYTE + beyond)
        assert len(body) == MEBIBYTE + beyond
        assert defect_of(deliver, name, body + member) == ""
    assert defect_of(deliver, name, (of_size(MEBIBYTE) + member)[: MEBIBYTE + 5]).startswith("truncated ")
    assert defect_of(deliver, name, b"".join(map(compress, [LINES, b"", LINES * 99, LINES]))) == ""
    cut = [member[:kept] for kept in (1, 2, 9, 10, 11, 40, -9, -8, -1)]
    for content in (*cut, member + member[:-12], member * 3 + member[:-12]):
        problem = f"truncated {packing}: the file ends before its data does; have it delivered again"
        assert defect_of(deliver, name, content) == problem, len(content)
    defect = defect_of(deliver, name, LINES)
    assert defect.startswith(f"not a sound {packing} file")
    assert defect.endswith("have it delivered again")
    problem = f"{packing} data under the name a.data; it must end in {suffix}"
    assert [defect_of(deliver, "a.data", compress(LINES), form) for form in ("json", "parquet")] == [problem] * 2
    other = ".gz" if suffix == ".zst" else ".zst"
    problem = f"{packing} data under the name b{other}; it must end in {suffix}"
    assert defect_of(deliver, f"b{other}", compress(LINES)) == problem


@pytest.mark.parametrize(
    ("suffix", "stored", "place"),
    [
        (".gz", gzip.compress(LINES), -6),
        (".zst", zstandard.ZstdCompressor(write_checksum=True).compress(LINES), -2),
        (".zst", zstandard.compress(LINES), 12),
    ],
    ids=["gzip", "zstd with a check sum", "zstd without one"],
)
def test_damaged_data_are_not_sound(deliver: Deliver, suffix: str, stored: bytes, place: int) -> None:
    damaged = bytearray(stored)
    damaged[place] ^= 1
    assert defect_of(deliver, f"a.json{suffix}", bytes(damaged)).startswith("not a sound ")


def test_the_largest_window_of_zstd_is_sound_and_a_larger_window_is_refused(deliver: Deliver) -> None:
    assert defect_of(deliver, "a.json.zst", windowed(27)) == ""
    assert "requires too much memory" in defect_of(deliver, "a.json.zst", windowed(28))


def windowed(log: int) -> bytes:
    """Return lines in a frame without its size, which needs the whole window, like the output of `zstd --long`."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=log)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return frame.compress(LINES) + frame.flush()
