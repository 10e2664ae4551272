"""Parquet files of one run: values of other types, of any bytes, nested ones, and files that Spark does not read."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.transport import TMemoryBuffer

from millrace.control.landing.formats.parquet_footers import read_footer
from millrace.errors import Outcome
from tests.support.lakehouse import Lakehouse
from tests.support.storage.landing_files import (
    FIELD_COLUMNS,
    FIELD_RECORDS,
    FIELDS,
    PART_COLUMNS,
    PART_RECORDS,
    load_files,
    parquet_of,
    require_fields,
    require_parts,
    rows_of_file,
)

NESTED_COLUMNS = {"guest": {"type": "struct<name: string, at: timestamp>"}, "tags": {"type": "array<int>"}}
ODD_COLUMNS: dict[str, dict[str, Any]] = {
    "at": {"type": "timestamp"},
    "clock": {},
    "token": {},
    "share": {"type": "double"},
    "sum": {"type": "decimal(38,10)"},
}
COLUMNS: dict[str, dict[str, Any]] = {
    "order_id": {},
    "day": {"type": "date"},
    "label": {},
    "pieces": {"type": "smallint"},
    "street": {"from": "buyer.address.street"},
    **FIELD_COLUMNS,
    **PART_COLUMNS,
    **NESTED_COLUMNS,
    **ODD_COLUMNS,
}
IS_A_LABEL = {"expect_column_values_to_be_in_set": {"column": "label", "value_set": ["a"]}, "action": "fail"}
DAY, MOMENT = date(2013, 1, 1), datetime(2013, 1, 1, 8, 0, 0, 123456, UTC)
MANY = parquet_of([{"order_id": f"o{number}", "day": DAY} for number in range(5000)])


def of_labels() -> bytes:
    """Texts, one of which is no UTF-8."""
    stored, texts = io.BytesIO(), pa.array([b"a", b"caf\xe9", b"b"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"label": texts, "remark": texts}), stored)
    return stored.getvalue()


def of_fields() -> bytes:
    texts = [[None if value is None else str(value) for value in record] for record in FIELD_RECORDS]
    return parquet_of([dict(zip(FIELDS, record, strict=True)) for record in texts])


def of_duckdb(values: str, version: str = "V2") -> bytes:
    """A file of DuckDB, whose second version has the encoding BYTE_STREAM_SPLIT for each double."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "a.parquet"
        duckdb.execute(f"COPY (SELECT {values}) TO '{file}' (FORMAT parquet, PARQUET_VERSION {version})")
        return file.read_bytes()


def of_polars(**columns: list[Any]) -> bytes:
    """Integers of 128 bits, beside other values."""
    kinds = {name: pl.Int128 for name, values in columns.items() if isinstance(values[0], int)}
    stored = io.BytesIO()
    pl.DataFrame(columns, schema_overrides=kinds).write_parquet(stored)
    return stored.getvalue()


def of_arrow(compression: str = "snappy", **columns: pa.Array) -> bytes:
    """A file whose pages have checksums."""
    stored = io.BytesIO()
    pq.write_table(pa.table(columns), stored, compression=compression, write_page_checksum=True, write_statistics=False)
    return stored.getvalue()


def with_variant_in(column: str) -> bytes:
    """A file with VARIANT values within structs, which DuckDB and Arrow do not write, beside times of a day."""
    binary = pa.array([b"\x01\x00\x00"])
    variant = pa.StructArray.from_arrays([binary, binary], names=["metadata", "value"])
    box = pa.StructArray.from_arrays([variant], names=["v"])
    plain = of_arrow(order_id=pa.array(["o1"]), clock=pa.array([45_296_000_000], pa.time64("us")), **{column: box})
    footer, stored = read_footer(io.BytesIO(plain)), TMemoryBuffer()
    kind = next(type(element.logicalType) for element in footer.schema if element.logicalType)
    next(element for element in footer.schema if element.name == "v").logicalType = kind(
        VARIANT=kind.thrift_spec[16][2]()
    )
    footer.write(TCompactProtocol(stored))
    content = stored.getvalue()
    before = len(plain) - 8 - int.from_bytes(plain[-8:-4], "little")
    return plain[:before] + content + len(content).to_bytes(4, "little") + b"PAR1"


NANOSECONDS = pa.array([1357027200123456789, 1357027200123456000, -1], pa.timestamp("ns"))
SUMS = pa.array([Decimal("12.5"), Decimal(10) ** 39], pa.decimal256(50, 10))
LIKE_NAMES = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["size", "Size"])
ODD_FILES = {
    "arrow times.parquet": of_arrow(at=NANOSECONDS, times=pa.array([[5], None, []], pa.list_(pa.time64("ns")))),
    "duckdb.parquet": of_duckdb(
        "'o1' AS order_id, TIMESTAMP_NS '2013-01-01 08:00:00.123456' AS at, TIME '12:34:56.5' AS clock, "
        "'00000000-0000-0000-0000-000000000007'::UUID AS token, 1.5::DOUBLE AS share, INTERVAL '1 month 3 s' AS gap"
    ),
    "variant.parquet": of_duckdb("'o1' AS order_id, 1.5::DOUBLE AS share, 'x'::VARIANT AS token"),
    "brotli.parquet": of_arrow(
        "brotli",
        share=pa.array([0.5, None], pa.float16()),
        sum=SUMS,
        _metadata=pa.array([None, 2**64 - 1], pa.uint64()),
    ),
    "variant alone.parquet": of_duckdb("'o1' AS order_id, 'z'::VARIANT AS token", version="V1"),
    "variant beside.parquet": of_duckdb(
        "'o1' AS order_id, TIME '12:34:56' AS clock, {'a': [1, 2]}::VARIANT AS token, 'y'::VARIANT AS more"
    ),
    "variant within.parquet": with_variant_in("box"),
    "variant within token.parquet": with_variant_in("token"),
    "far.parquet": of_arrow(at=pa.array([2**62], pa.timestamp("ms", "UTC"))),
    "polars.parquet": of_polars(order_id=[1 << 100]),
    "polars total.parquet": of_polars(total=[1 << 100], order_id=["o5"], clock=["8 h"]),
    "like names.parquet": of_arrow(order_id=pa.array(["o1"]), parcel=LIKE_NAMES),
}
FILES = {
    "08:00.parquet": parquet_of([{"order_id": "o0", "day": DAY}]),
    "1.parquet": parquet_of([{"order_id": "o1", "day": "2013-01-01"}]),
    "2.parquet": parquet_of([{"order_id": "o2", "day": 20130101}]),
    "two days.parquet": parquet_of([{"order_id": "o9", "day": "2013-01-01", "Day": "2013-01-02"}]),
    "path.parquet": parquet_of([{"buyer.address.street": "Am Ring"}]),
    "good.parquet": MANY,
    "bad.parquet": MANY[:100] + bytes(1900) + MANY[2000:],
    "damaged.parquet": of_arrow("none", order_id=pa.array(["o1", "o2"])).replace(b"o2", b"o3", 1),
    "labels.parquet": of_labels(),
    "pieces.parquet": of_arrow(pieces=pa.array([70000, -32768, 32768], pa.int32())),
    "fields.parquet": of_fields(),
    "parts.parquet": parquet_of(PART_RECORDS),
    "nested a.parquet": parquet_of([{"order_id": "o1", "guest": {"name": "Ann", "at": MOMENT}, "tags": [1]}]),
    "nested b.parquet": parquet_of([{"order_id": "o2", "guest": {"at": MOMENT, "name": "Bob"}, "tags": ["2"]}]),
    "nested c.parquet": parquet_of([{"order_id": "o3"}]),
    "nested d.parquet": parquet_of([{"order_id": "o4", "guest": {"name": "Ann", "at": MOMENT}, "tags": 5}]),
    **ODD_FILES,
}


@pytest.fixture(scope="module")
def loaded(shared: Lakehouse) -> Lakehouse:
    """All these files after one run."""
    source = {"landing": "orders", "format": "parquet"}
    load_files(shared, FILES, source=source, columns=COLUMNS, expectations=[IS_A_LABEL])
    return shared


def test_a_file_that_breaks_only_when_read_is_blamed_and_the_others_load(loaded: Lakehouse) -> None:
    report = loaded.reports[-1]
    assert report.outcome is Outcome.BAD_INPUT
    assert "6 of 28 files cannot be loaded, the others are loaded" in report.message
    assert "bad.parquet: it cannot be read to its end (" in report.message
    assert "damaged.parquet: it cannot be read to its end (could not verify page integrity, CRC" in report.message
    assert len(rows_of_file(loaded, "good.parquet", "order_id")) == 5000
    assert (report.rows.read, report.rows.applied, report.rows.quarantined) == (5032, 5032, 0)


def test_files_with_different_types_for_a_column_load_together(loaded: Lakehouse) -> None:
    assert "two days.parquet: Spark cannot read both of its columns day and Day" in loaded.reports[-1].message
    names = ["08:00.parquet", "1.parquet", "2.parquet"]
    assert rows_of_file(loaded, names, "order_id", "day", "_rescued") == [
        ("o0", DAY, None), ("o1", DAY, None), ("o2", None, '{"day":"20130101"}')
    ]  # fmt: skip


def test_a_text_that_is_no_utf8_is_rescued_so_that_a_gate_can_show_it(loaded: Lakehouse) -> None:
    assert [check.samples for check in loaded.reports[-1].checks] == [("b",)]
    no_text = "no text, in base64: Y2Fm6Q=="
    rows = rows_of_file(loaded, "labels.parquet", "label", "_rescued")
    assert {label: json.loads(rescued) for label, rescued in rows} == {
        "a": {"remark": "a"}, "b": {"remark": "b"}, None: {"label": no_text, "remark": no_text}
    }  # fmt: skip


def test_an_integer_beyond_the_type_of_its_column_is_rescued_and_not_cut_to_its_last_bits(loaded: Lakehouse) -> None:
    assert rows_of_file(loaded, "pieces.parquet", "pieces", "_rescued") == [
        (-32768, None), (None, '{"pieces":"32768"}'), (None, '{"pieces":"70000"}')
    ]  # fmt: skip


def test_values_are_in_the_columns_that_name_their_fields(loaded: Lakehouse) -> None:
    require_fields(loaded, "fields.parquet")


def test_columns_read_parts_of_fields(loaded: Lakehouse) -> None:
    require_parts(loaded, "parts.parquet")


def test_a_file_with_a_field_named_like_a_path_says_how_to_read_it(loaded: Lakehouse) -> None:
    (line,) = (line for line in loaded.reports[-1].message.splitlines() if "path.parquet: has no column" in line)
    assert "from: '`buyer.address.street`' reads the field of this name" in line


def test_nested_values_of_the_declared_type_and_of_another_one_load_together(loaded: Lakehouse) -> None:
    names = [name for name in FILES if name.startswith("nested")]
    assert rows_of_file(loaded, names, "order_id", *NESTED_COLUMNS, "_rescued") == [
        ("o1", {"name": "Ann", "at": MOMENT}, [1], None),
        ("o2", {"name": "Bob", "at": MOMENT}, [2], None),
        ("o3", None, None, None),
        ("o4", {"name": "Ann", "at": MOMENT}, None, '{"tags":"5"}'),
    ]


UNREAD = ("polars.parquet", "variant within token.parquet")


def test_types_codecs_and_encodings_that_spark_does_not_read_are_read_exactly_or_told(loaded: Lakehouse) -> None:
    names = [name for name in ODD_FILES if name not in UNREAD]
    rows = {
        name: [
            (*row, json.loads(rescued or "{}"))
            for *row, rescued in rows_of_file(loaded, name, *ODD_COLUMNS, "_rescued")
        ]
        for name in names
    }
    whole, before = datetime(2013, 1, 1, 8, 0, 0, 123456, UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)
    nothing = (None,) * 4
    assert rows["arrow times.parquet"] == [
        (before, *nothing, {"at.nanoseconds": "1969-12-31 23:59:59.999999999", "times": "[]"}),
        (whole, *nothing, {"at.nanoseconds": "2013-01-01 08:00:00.123456789", "times": '["00:00:00.000000005"]'}),
        (whole, *nothing, {}),
    ]
    token = "00000000-0000-0000-0000-000000000007"
    assert rows["duckdb.parquet"] == [(whole, "12:34:56.500000", token, 1.5, None, {"gap": "P1M0DT3S"})]
    assert rows["variant.parquet"] == [(None, None, "x", 1.5, None, {})]
    assert rows["variant alone.parquet"] == [(None, None, "z", None, None, {})]
    assert rows["variant beside.parquet"] == [(None, "12:34:56.000000", '{"a":[1,2]}', None, None, {"more": "y"})]
    cause = "not read: VARIANT values within others, in a file that Spark does not read"
    assert rows["variant within.parquet"] == [(None, "12:34:56.000000", *(None,) * 3, {"box": cause})]
    assert rows["like names.parquet"] == [(*(None,) * 5, {"parcel": '{"size": 1, "Size": 2}'})]
    assert rows["far.parquet"] == [(None, *nothing, {"at": str(2**62)})]
    cause = "not read: bytes of a type that only its writer knows"
    assert rows["polars total.parquet"] == [(None, "8 h", None, None, None, {"total": cause})]
    assert rows["brotli.parquet"] == [
        (None, None, None, 0.5, Decimal("12.5"), {}),
        (*nothing, None, {"sum": f"1{'0' * 39}.{'0' * 10}", "_metadata": "18446744073709551615"}),
    ]


def test_a_file_that_no_reader_can_read_is_named_with_the_cause(loaded: Lakehouse) -> None:
    states = {path.rpartition("/")[2]: state for path, state in loaded.reports[-1].files.items()}
    assert states["polars.parquet"].startswith(
        "failed: its column order_id (bytes of a type that only its writer knows)"
    )
    assert states["variant within token.parquet"].startswith("failed: its column token (VARIANT values within others")
