"""Plain copies hold the values of Parquet and Avro files in types that Spark reads, exactly or as text."""

from __future__ import annotations

import io
import json
import zlib
from base64 import b64decode, b64encode, b85decode
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig

from millrace.control.landing.formats.plain_copies import far_column, nanoseconds_column, value_column, write_copy
from millrace.control.landing.landing import LandingFile
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.log.batch import COPIED
from tests.support.deliveries import Deliver, orders_spec_of
from tests.support.examples import settings_for
from tests.support.listing import inspected
from tests.support.storage.landing_files import avro_of

SPEC = orders_spec_of("parquet")
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  a time without a zone

Copied = Callable[[str, bytes], pa.Table]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Copied:
    """Return the copy of a file of a format."""
    folder = tmp_path_factory.mktemp("landing")

    def copy(kind: str, content: bytes) -> pa.Table:
        (folder / "a").write_bytes(content)
        write_copy(LandingFile(LocalLanding(str(folder)), "a"), kind, folder / "copies" / "a.parquet")
        return pq.read_table(folder / "copies" / "a.parquet")

    return copy


def parquet(column: pa.Array, **options: Any) -> bytes:
    stored = io.BytesIO()
    pq.write_table(pa.table({"v": column}), stored, **options)
    return stored.getvalue()


@given(st.lists(st.none() | st.integers(-(2**63) + 1, 2**63 - 1), max_size=30), st.sampled_from([None, "Asia/Tokyo"]))
@settings_for(50)
def test_a_nanosecond_time_is_cut_to_its_microsecond_and_whole_beside_it_where_that_loses_digits(
    copied: Copied, numbers: list[int | None], zone: str | None
) -> None:
    times = pa.array(numbers, pa.timestamp("ns", zone))
    copy = copied("parquet", parquet(times))
    assert copy[value_column(0)].type == pa.timestamp("us", zone and "UTC")
    assert copy[value_column(0)].cast(pa.int64()).to_pylist() == [n if n is None else n // 1000 for n in numbers]
    assert copy[nanoseconds_column(0)].to_pylist() == [
        f"{EPOCH + timedelta(seconds=n // 10**9)}.{n % 10**9:09}" if n is not None and n % 1000 else None
        for n in numbers
    ]


TIME = {"type": "long", "logicalType": "time-micros"}
NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 10}
SUM = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
TOKEN = {"type": "fixed", "name": "token", "size": 16, "logicalType": "uuid"}
GAP = {"type": "fixed", "name": "gap", "size": 12, "logicalType": "duration"}
STOP = {"type": "record", "name": "stop", "fields": [{"name": "t", "type": TIME}, {"name": "at", "type": NANOS}]}
KINDS = {
    "time": ["null", TIME],
    "at": NANOS,
    "sent": MILLIS,
    "wide": WIDE,
    "sum": SUM,
    "token": TOKEN,
    "gap": GAP,
    "day": {"type": "int", "logicalType": "date"},
    "stops": {"type": "array", "items": ["null", STOP]},
    "limits": {"type": "map", "values": TIME},
    "any": ["null", TIME, "string", "boolean", {"type": "array", "items": "int"}],
    "number": ["null", TIME, "int", "boolean"],
}


def test_every_type_of_avro_has_a_column_that_spark_reads(copied: Copied) -> None:
    sent = datetime(2013, 1, 1, 8, 0, 0, 5000, UTC)
    record = {
        "time": 45_296_000_005,
        "at": 1357027200123456789,
        "sent": sent,
        "wide": Decimal(f"1{'0' * 38}.5"),
        "sum": Decimal("-1.05"),
        "token": bytes(range(16)),
        "gap": bytes([14, 0, 0, 0, 2, 0, 0, 0, 220, 5, 0, 0]),
        "day": date(2013, 1, 1),
        "stops": [{"t": 0, "at": -1}, None],
        "limits": {"a": 1},
        "any": True,
        "number": 5,
    }
    others = [{**record, "time": None, "any": value} for value in (None, 5, "5", [5])]
    copy = copied("avro", avro_of(KINDS, record, *others))
    row, *rest = copy.to_pylist()
    values = {name: row[value_column(number)] for number, name in enumerate(KINDS)}
    assert values == {
        "time": "12:34:56.000005",
        "at": datetime(2013, 1, 1, 8, 0, 0, 123456, UTC),
        "sent": sent,
        "wide": f"1{'0' * 38}.5000000000",
        "sum": Decimal("-1.05"),
        "token": "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "gap": "P14M2DT1.5S",
        "day": date(2013, 1, 1),
        "stops": [{"t": "00:00:00.000000", "at": "1969-12-31 23:59:59.999999999"}, None],
        "limits": [("a", "00:00:00.000001")],
        "any": "true",
        "number": "5",
    }
    assert row[nanoseconds_column(1)] == "2013-01-01 08:00:00.123456789"
    assert [each[value_column(10)] for each in rest] == [None, "00:00:00.000005", "5", "[5]"]
    assert {each[value_column(0)] for each in rest} == {None}


def test_a_type_of_avro_that_holds_itself_is_json(copied: Copied, deliver: Deliver) -> None:
    tree = {
        "type": "record",
        "name": "tree",
        "fields": [{"name": "n", "type": "int"}, {"name": "of", "type": {"type": "array", "items": "tree"}}],
    }
    leaf = {"n": 2, "of": []}
    content = avro_of(
        {"id": "int", "tree": ["null", tree]}, {"id": 1, "tree": {"n": 1, "of": [leaf, leaf]}}, {"id": 2, "tree": None}
    )
    assert inspected(deliver, orders_spec_of("avro"), "a.avro", content).layout.startswith(COPIED)
    copy = copied("avro", content)
    assert copy[value_column(0)].to_pylist() == [1, 2]
    whole, none = copy[value_column(1)].to_pylist()
    assert (json.loads(whole), none) == ({"n": 1, "of": [leaf, leaf]}, None)


@pytest.mark.parametrize("kind", ["avro", "parquet"])
def test_a_value_with_parts_whose_names_differ_only_in_case_is_json(
    copied: Copied, deliver: Deliver, kind: str
) -> None:
    values = [[{"size": 1, "Size": "a"}, None], None]
    if kind == "parquet":
        part = pa.struct({"size": pa.int32(), "Size": pa.string()})
        content = parquet(pa.array(values, pa.list_(part)))
    else:
        fields = [{"name": "size", "type": "int"}, {"name": "Size", "type": "string"}]
        items = ["null", {"type": "record", "name": "part", "fields": fields}]
        content = avro_of({"v": ["null", {"type": "array", "items": items}]}, *({"v": value} for value in values))
    assert inspected(deliver, orders_spec_of(kind), f"a.{kind}", content).layout.startswith(COPIED)
    whole, none = copied(kind, content)[value_column(0)].to_pylist()
    assert (json.loads(whole), none) == (values[0], None)


def test_a_text_that_is_not_utf8_hides_only_the_value_that_has_it(copied: Copied) -> None:
    texts = pa.array([b"\xff", b"a"]).view(pa.string())
    of, far = pa.array([5, 2**60], pa.timestamp("us")), pa.array([[5], [3_000_000]], pa.list_(pa.date32()))
    parts = pa.StructArray.from_arrays([texts, of, far], names=["v", "V", "days"])
    broken, whole = copied("parquet", parquet(parts))[value_column(0)].to_pylist()
    assert broken.startswith("not read: 'utf-8' codec can't decode byte 0xff")
    assert json.loads(whole)["days"] == ["10183-09-21"]


@pytest.mark.parametrize("kind", ["avro", "parquet"])
def test_a_time_whose_microseconds_a_long_does_not_hold_is_null_with_its_number_beside_it(
    copied: Copied, kind: str
) -> None:
    numbers = [0, -1, None, 2**63 - 1, -(2**63) + 1, -9_223_372_036_854_775, 9_223_372_036_854_776]
    if kind == "parquet":
        content = parquet(pa.array(numbers, pa.timestamp("ms", "UTC")))
    else:
        content = avro_of({"v": ["null", MILLIS]}, *({"v": number} for number in numbers))
    copy = copied(kind, content)
    micros = copy[value_column(0)].cast(pa.int64()).to_pylist()
    assert micros == [0, -1000, None, None, None, -9_223_372_036_854_775_000, None]
    texts = copy[far_column(0)].to_pylist()
    assert texts == [None, None, None, str(2**63 - 1), str(-(2**63) + 1), None, "9223372036854776"]


@pytest.mark.parametrize(
    ("options", "is_copied"),
    [
        ({"compression": "zstd"}, False),
        ({"compression": "brotli"}, True),
        ({"use_dictionary": False, "column_encoding": {"v": "DELTA_BINARY_PACKED"}}, False),
        ({"use_dictionary": False, "use_byte_stream_split": True}, True),
    ],
)
def test_a_file_is_copied_only_where_spark_does_not_read_it(
    deliver: Deliver, options: dict[str, Any], is_copied: bool
) -> None:
    found = inspected(deliver, SPEC, "a.parquet", parquet(pa.array([1, 2]), **options))
    assert found.layout.startswith(COPIED) is is_copied


def test_no_damage_of_a_footer_ends_the_process(deliver: Deliver) -> None:
    """Arrow ends it where it looks at the columns of a damaged footer, or at encrypted ones."""
    whole = parquet(pa.array(["a", None]), store_schema=False)
    footer = range(len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), len(whole) - 8)
    defects = set()
    for place in footer:
        damaged = bytearray(whole)
        damaged[place] = 0x50
        defects.add(inspected(deliver, SPEC, "a.parquet", bytes(damaged)).defect[:26])
    assert "not a sound Parquet file (" in defects


class Keys(KmsClient):
    """Keys that nobody else has."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        """Return the key as text."""
        return b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        """Return the key."""
        return b64decode(wrapped_key)


@pytest.mark.parametrize(
    ("plaintext_footer", "cause"), [(True, "it has encrypted columns"), (False, "not a sound Parquet file (Could not")]
)
def test_an_encrypted_file_is_named(deliver: Deliver, plaintext_footer: bool, cause: str) -> None:
    settings = EncryptionConfiguration("f", column_keys={"k": ["v"]}, plaintext_footer=plaintext_footer)
    keys = CryptoFactory(lambda _: Keys()).file_encryption_properties(KmsConnectionConfig(), settings)
    encrypted = parquet(pa.array([1]), encryption_properties=keys)
    assert inspected(deliver, SPEC, "a.parquet", encrypted).defect.startswith(cause)


LZO = (
    "c-"
    "noFL2KJE7>2*5PRL3xJ4mx32O((LzzKF%0vn<2cG}VGu){`clvr)N*^(>Er6C0RCwkjqKVzpc*dN)?=wXM+cGJdNs865X@3G!jpHT4Ty^jF>*+"
    "xSb1*YntF2J)E00di?ApIK{l3y+aa1BoZ4Dhv$M*pJ$yoKANA7C95z=uXE;g&Og*U6_do-"
    "$+s+TCl}U8y3j!Z_M9{T+0@g<5typE1P&2Tsp%_q#o`>mYC*P}IQz{$}A14&d&11mN^gnWS{yKkcEN3a@vm*q?3u(Xgju+XO5>>v&b&9^uCS`1"
    "cbW7{TsjOhhcVzgr7Bl}V9`FcuNN;yHayJ}u~3%#$b-Eahe`iX?FfO}S<f)9gWM_C=9q^H9&TQlq(6)QGjuy_&{XJnF|n^K-"
    "7~^289e{U%?!8VP;Oy+JiI$jN6u)f-"
    "|IBA&{K)1^!P^{nRlxZyq0bURBV)1!k8cB@W(Ud5S~%IFK4#1qBTykc0cGo~&IUIo77DvzZoJ40_c8oU~KWm;O@QrMW;7o(M&V&c4x)wq^iGo{"
    "Vat7@K^(yvNcmIq!H>Mrn_>&t;Z@awZE9c!bmyPhn;?yp7eXLCK1g4}IDR+-83Nf9Rz@m>JgHZRA#zrU`x^e_"
)
"""A file that fastparquet has compressed by LZO."""


def test_a_file_in_lzo_which_nothing_reads_is_named(copied: Copied, deliver: Deliver) -> None:
    stored = zlib.decompress(b85decode(LZO))
    found = inspected(deliver, SPEC, "a.parquet", stored)
    assert (found.columns, found.layout.startswith(COPIED)) == (("order_id", "share"), True)
    with pytest.raises(ValueError, match=r"it cannot be read to its end \(While LZO compression is supported by"):
        copied("parquet", stored)


def test_a_file_without_rows_or_with_a_broken_page(copied: Copied, tmp_path: Path) -> None:
    assert copied("parquet", parquet(pa.array([], pa.uuid()))).num_rows == 0
    broken = bytearray(parquet(pa.array([bytes([n]) * 16 for n in range(200)], pa.uuid())))
    broken[4:200] = bytes(196)
    with pytest.raises(ValueError, match="it cannot be read to its end"):
        copied("parquet", bytes(broken))
