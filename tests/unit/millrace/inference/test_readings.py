"""How values are read follows from all of them, and only if nothing else fits as well."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.contracts.spec.value_reading import ValueReading
from tests.support.documents.inferred_specs import inferred, put

EPOCH, MS = {"type": "timestamp", "epoch": "s"}, {"type": "timestamp", "epoch": "ms"}
IN_ZONES = {"format": "yyyy-MM-dd HH:mm:ss VV"}
BIGINT, STRING, DATE = {"type": "bigint"}, {"type": "string"}, {"type": "date"}
READINGS = {
    # name: (values, reading)
    "created_at": (["1717000000", "1717000001"], EPOCH),
    "updatedTime": (["1717000000123", "1717000000124"], MS),
    "ts": (["1717000000123456", "1717000000123457"], {**MS, "epoch": "us"}),
    "timestamp": (["1717000000123456000", "1717000000123457000"], {**MS, "epoch": "ns"}),
    "event_time": (["1717000000123456001", "1717000000123457000"], BIGINT),  # digits that no timestamp has
    "arrived_at": (["1717000000", "12"], BIGINT),
    "category": (["1717000000", "1717000001"], BIGINT),
    "birth_date": (["19872", "19873"], {"type": "date", "epoch": "days"}),
    "changed_at": (["19872", "19873"], BIGINT),
    "order_date": (["20240630", "20240701"], {"type": "date", "format": "yyyyMMdd"}),
    "number": (["20240630", "20240701"], BIGINT),
    "dotted": (["30.06.2024", "01.07.2024"], {"type": "date", "format": "dd.MM.yyyy"}),
    "american": (["06/30/2024", "07/01/2024"], {"type": "date", "format": "MM/dd/yyyy"}),
    "british": (["30/06/2024", "01/07/2024"], {"type": "date", "format": "dd/MM/yyyy"}),
    "either": (["05/06/2024", "01/07/2024"], STRING),
    "two_ways": (["30/06/2024", "06/30/2024"], STRING),
    "slashed": (["2024/06/30", "2024/07/01"], {"type": "date", "format": "yyyy/MM/dd"}),
    "till": (["30.06.2024 12:05", "01.07.2024 23:59"], {"type": "timestamp", "format": "dd.MM.yyyy HH:mm"}),
    "in_zones": (["2024-06-30 12:00:00 Europe/Berlin", "2024-07-01 08:30:00 UTC"], {"type": "timestamp", **IN_ZONES}),
    "short_zone": (["2024-06-30 12:00:00 CET", "2024-07-01 08:30:00 CET"], STRING),
    "no_zone": (["2024-06-30 12:00:00 Europe/Berlinn", "2024-07-01 08:30:00 UTC"], STRING),
    "either_time": (["05/06/2024 12:00:00", "01/07/2024 12:00:00"], STRING),
    "no_hour": (["30.06.2024 24:05", "01.07.2024 23:59"], STRING),
    "no_day": (["31.06.2024", "01.07.2024"], STRING),
    "price": (["1.234,5", "7"], {"type": "decimal(18,1)", "decimal_comma": True}),
    "share": (["-0,125", "0,5"], {"type": "decimal(18,3)", "decimal_comma": True}),
    "thousands": (["1,234", "12,345,678"], STRING),
    "version": (["1.234", "1.2,3"], STRING),
    "code": (["012,5", "013,5"], STRING),
}
WITH_NULLS = {
    "count": (["1", r"\N", "-2", r"\N"], {**BIGINT, "null_values": r"\N"}),
    "wide": (["99999999999999999999", "NA", "NA", "1"], {"type": "decimal(38,0)", "null_values": "NA"}),
    "rate": (["1.5", "NULL", "NULL", "2"], {"type": "double", "null_values": "NULL"}),
    "long": (["1.50000000000000001", "-", "-", "2"], {"type": "decimal(18,17)", "null_values": "-"}),
    "day": (["2024-06-30", "N/A", "N/A", "2024-07-01"], {**DATE, "null_values": "N/A"}),
    "at": (["2024-06-30T10:00:00Z", "-", "-", "2024-06-30 10:00"], {"type": "timestamp", "null_values": "-"}),
    "seen_at": (["1717000000", "null", "null", "1717000001"], {**EPOCH, "null_values": "null"}),
    "dotted": (["30.06.2024", "-", "-", "-"], {"type": "date", "format": "dd.MM.yyyy", "null_values": "-"}),
    "once": (["1", "NA", "2", "3"], STRING),
    "two_words": (["1", "NA", "NULL", "3"], STRING),
    "words": (["a", "NA", "NA", "3"], STRING),
    "nothing": (["NA", "NA", "NA", "NA"], STRING),
}


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@pytest.mark.parametrize("given", [READINGS, WITH_NULLS])
def test_a_reading_is_proposed_if_it_alone_fits_all_values(
    tmp_path: Path, kind: str, given: dict[str, tuple[list[str], dict[str, object]]]
) -> None:
    rows = [dict(zip(given, values, strict=True)) for values in zip(*(of for of, _ in given.values()), strict=True)]
    place = tmp_path / f"orders/a.{kind}"
    if kind == "csv":
        put(place, "\n".join(";".join(row) for row in (list(given), *(row.values() for row in rows))))
    elif kind == "json":
        whole = {name for name, (values, _) in given.items() if all(value.isdigit() for value in values)}
        records = ({name: int(text) if name in whole else text for name, text in row.items()} for row in rows)
        put(place, "\n".join(map(json.dumps, records)))
    else:
        put(place, "")
        pq.write_table(pa.Table.from_pylist(rows), place)
    found = {
        name: {"type": column.type, **column.model_dump(mode="json", include={*ValueReading.model_fields})}
        for name, column in inferred(tmp_path).columns.items()
    }
    wanted = {name: reading for name, (_, reading) in given.items()}
    if kind == "parquet":  # with texts alone, which need no other type
        wanted = {name: STRING if reading == BIGINT else reading for name, reading in wanted.items()}
    assert found == {name.replace("updatedTime", "updated_time"): reading for name, reading in wanted.items()}


def test_a_value_after_many_others_still_decides(tmp_path: Path) -> None:
    record = {"created_at": 1717000000, "visit": {"at": 1717000000}}
    late = {"created_at": 12, "visit": {"at": 12}}
    place = put(tmp_path / "orders/a.json", "".join(f"{json.dumps(row)}\n" for row in [record] * 1_000))
    epoch = {name: (column.type, column.epoch) for name, column in inferred(tmp_path).columns.items()}
    assert epoch == {"created_at": ("timestamp", "s"), "visit": ("struct<at:timestamp>", "s")}
    place.write_text(place.read_text() + f"{json.dumps(late)}\n")
    assert {column.epoch for column in inferred(tmp_path).columns.values()} == {None}


INSTANT = 1_717_000_000_123
NESTED = {
    # name: (value, type, settings); `seen` is a time of the part that has a time already
    "event": ({"at": INSTANT, "n": 5}, "struct<at:timestamp,n:bigint>", {"epoch": "ms"}),
    "events": ([{"changed": {"at": INSTANT}}, None], "array<struct<changed:struct<at:timestamp>>>", {"epoch": "ms"}),
    "two_units": ({"at": INSTANT, "since": 1_717_000_000}, "struct<at:bigint,since:bigint>", {}),
    "seen": ({"at": "2024-06-30T10:00:00Z", "since": INSTANT}, "struct<at:timestamp,since:bigint>", {}),
    "price": (
        {"net": "1.234,5", "tax": "0,25"},
        "struct<net:decimal(18,1),tax:decimal(18,2)>",
        {"decimal_comma": True},
    ),
    "weight": ({"net": "1.234,5", "tare": 0.25}, "struct<net:string,tare:double>", {}),
    "day": ({"of": "30.06.2024", "n": 1}, "struct<of:date,n:bigint>", {"format": "dd.MM.yyyy"}),
    "visit": (
        {"at": INSTANT, "fee": "1,5"},
        "struct<at:timestamp,fee:decimal(18,1)>",
        {"epoch": "ms", "decimal_comma": True},
    ),
}


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_reading_of_parts_is_proposed_if_it_fits_all_parts_of_its_types(tmp_path: Path, kind: str) -> None:
    record = {name: value for name, (value, *_) in NESTED.items()}
    place = put(tmp_path / f"orders/a.{kind}", "".join(f"{json.dumps(record)}\n" for _ in range(3)))
    if kind == "parquet":
        seen = {"at": datetime(2024, 6, 30, tzinfo=UTC), "since": INSTANT}
        pq.write_table(pa.Table.from_pylist([{**record, "seen": seen}] * 3), place)
    found = {
        name: (column.type, column.model_dump(mode="json", include={*ValueReading.model_fields}))
        for name, column in inferred(tmp_path).columns.items()
    }
    assert found == {name: (kind_of, settings) for name, (_, kind_of, settings) in NESTED.items()}
