"""`lakehouse infer` writes a first spec from delivered files, and the checks accept it unchanged."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from millrace.contracts.interval import Interval
from millrace.control.landing.landing import interval_folder
from millrace.control.landing.on_disk import LocalLanding
from millrace.errors import BadInputError, NotReadyError
from millrace.inference.day_folders import day_of
from millrace.inference.delivered_files import MAX_FILES, files_of_source
from millrace.inference.first_spec import guessed_source
from tests.support.documents.inferred_specs import inferred, kinds, put, text_of
from tests.support.storage.landing_files import avro_of, packed_avro_of, parquet_of, snappy_block


def test_csv_files_give_columns_types_and_dialect_and_what_no_column_can_read_is_text(tmp_path: Path) -> None:
    columns = {
        "id": ("bigint", "1", "2"),
        "zip": ("string", "02134", "10001"),
        "amount": ("double", "1", "2.5"),
        "is_paid": ("boolean", "true", ""),
        "dotted": ("date", "01.07.2025", "31.12.2025"),
        "american": ("timestamp", "07/01/2025 10:00:00", "12/31/2025 11:00:00"),
        "day": ("date", "2025-07-01", "2025-12-31"),
        "at": ("timestamp", "2025-07-01T10:00:00", "2025-12-31 11:00:00"),
        "zoned": ("timestamp", "2025-07-01T10:00:00Z", "2025-12-31T11:00:00.123+02:00"),
    }
    for number in (1, 2):
        values = ";".join(of_column[number] for of_column in columns.values())
        put(tmp_path / f"orders/date=2013-01-0{number}/a.csv", f"{';'.join(columns)}\n{values}\n")
    spec = inferred(tmp_path)
    assert kinds(spec) == {name: kind for name, (kind, *_) in columns.items()}
    source = spec.landing_source
    assert (source.landing, source.files, source.format, source.delimiter) == ("orders", "*.csv", "csv", ";")
    assert source.path.startswith("date={interval_start"), "a folder a day"


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ('1,"a ""b"", c"\n', ('"', '"')),
        ('1,"a \\"b\\", c"\n', ('"', "\\")),
        ("1,'a ''b'', c'\n", ("'", "'")),
        ("1,it's\n", ('"', '"')),
    ],
)
def test_the_quotes_of_csv_files_are_those_of_the_newest_file_with_some(
    tmp_path: Path, text: str, settings: tuple[str, str]
) -> None:
    put(tmp_path / "orders/a.csv", f"id,name\n{text * 3}")
    put(tmp_path / "orders/b.csv", "id,name\n2,x\n")
    source = inferred(tmp_path).landing_source
    assert (source.quote, source.escape) == settings
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as guessed:
        assert guessed.rows.values("name")[0][0] in ('a "b", c', "a 'b', c", "it's")


def test_a_csv_file_whose_quote_does_not_end_is_not_counted_by_its_lines(tmp_path: Path) -> None:
    put(tmp_path / "orders/a.csv", "id,name\n1,a\n")
    put(tmp_path / "orders/b.csv", 'id,name\n2,"b"x\n3,"c\n4,d\n')
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as guessed:
        assert guessed.rows.count() == 1
        assert ["does not end" in line for line in guessed.guess.unread] == [True]


def test_avro_and_parquet_files_give_the_types_of_their_schemas(tmp_path: Path) -> None:
    of_parquet = pa.schema([("n", pa.int32()), ("price", pa.decimal128(9, 2)), ("seen", pa.timestamp("us", tz="UTC"))])
    pq.write_table(of_parquet.empty_table(), put(tmp_path / "bills/a.parquet", b""))
    assert kinds(inferred(tmp_path, "bills")) == {"n": "int", "price": "decimal(9,2)", "seen": "timestamp"}
    counts = {"type": "map", "values": "int"}
    fields = {
        "id": "long", "name": ["null", "string"], "tags": {"type": "array", "items": "string"},
        "day": {"type": "int", "logicalType": "date"}, "at": {"type": "long", "logicalType": "timestamp-micros"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        "by": ["null", {"type": "record", "name": "b", "fields": [{"name": "at", "type": counts}]}],
        "blobs": {"type": "array", "items": "bytes"},
    }  # fmt: skip
    schema = {"type": "record", "name": "o", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}
    with put(tmp_path / "orders/a.avro", b"").open("wb") as file:
        fastavro.writer(file, schema, [])
    assert kinds(inferred(tmp_path)) == {
        "id": "bigint", "name": "string", "tags": "array<string>", "day": "date", "at": "timestamp",
        "price": "decimal(9,2)", "by": "struct<at:map<string,int>>", "blobs": "string",
    }  # fmt: skip


AVRO_TYPES: dict[str, tuple[Any, object, str]] = {
    "wide": ({"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 10}, Decimal("1.5"), "string"),
    "at": ({"type": "int", "logicalType": "time-millis"}, time(10), "string"),
    "day": ({"type": "int", "logicalType": "date"}, (1 << 31) - 1, "date"),
    "uuid": ({"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}, bytes(16), "string"),
    "number": (["null", "int", "long"], None, "bigint"),
    "mixed": (["null", "string", "boolean"], "x", "string"),
    "new": ({"type": "record", "name": "a.place", "fields": [{"name": "x", "type": "int"}]}, {"x": 1}, "struct<x:int>"),
    "old": ({"type": "record", "name": "b.place", "fields": [{"name": "y", "type": "a.place"}]}, {"y": {"x": 1}},
            "struct<y:struct<x:int>>"),
}  # fmt: skip


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "snappy", "zstandard"])
def test_avro_files_of_every_compression_with_types_that_no_column_has(tmp_path: Path, codec: str) -> None:
    types = {name: kind for name, (kind, *_) in AVRO_TYPES.items()}
    row = {name: value for name, (_, value, _) in AVRO_TYPES.items()}
    pack = {"snappy": snappy_block, "zstandard": zstandard.compress}.get(codec)
    content = packed_avro_of(types, codec, pack, row) if pack else avro_of(types, row, codec=codec)
    put(tmp_path / "orders/a.avro", content)
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as source:
        assert source.rows.count() == 1
    assert kinds(inferred(tmp_path)) == {name: kind for name, (*_, kind) in AVRO_TYPES.items()}


def test_parquet_types_that_no_column_has_become_those_that_hold_their_values(tmp_path: Path) -> None:
    columns = {
        "u64": (pa.array([2**64 - 1], pa.uint64()), "decimal(20,0)"),
        "wide": (pa.array([Decimal("1.5")], pa.decimal256(50, 10)), "string"),
        "time": (pa.array([1], pa.time64("us")), "string"),
        "half": (pa.array([1.5], pa.float16()), "float"),
        "uuid": (pa.array([bytes(16)], pa.uuid()), "string"),
        "list": (pa.array([[1]], pa.list_(pa.uint64())), "array<decimal(20,0)>"),
        "parts": (pa.array([{"d": Decimal(1)}], pa.struct([("d", pa.decimal256(60, 2))])), "string"),
    }
    place = put(tmp_path / "orders/a.parquet", b"")
    pq.write_table(pa.table({name: values for name, (values, _) in columns.items()}), place)
    assert kinds(inferred(tmp_path)) == {name: kind for name, (_, kind) in columns.items()}

    duckdb.sql(f"COPY (SELECT 1 AS id, 'POINT(1 2)'::GEOMETRY AS at) TO '{put(tmp_path / 'places/a.parquet', b'')}'")
    assert kinds(inferred(tmp_path, "places")) == {"id": "int", "at": "binary"}


def test_numbers_of_parquet_that_runs_read_and_duckdb_does_not_have_their_types(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([1, 2], pa.int32()), "at": pa.array([0, 1], pa.timestamp("us", "UTC"))})
    options = {"use_dictionary": False, "column_encoding": dict.fromkeys(table.column_names, "BYTE_STREAM_SPLIT")}
    pq.write_table(table, put(tmp_path / "orders/a.parquet", b""), **options)
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as source:
        assert (dict(source.rows.types), source.rows.count()) == ({"id": "int", "at": "timestamp"}, 2)


def test_a_parquet_file_that_is_damaged_or_that_nothing_reads_is_named_and_left_out(tmp_path: Path) -> None:
    good = put(tmp_path / "orders/a.parquet", b"")
    pq.write_table(pa.table({"id": range(1000)}), good, compression="none", use_dictionary=False)
    whole, damaged = good.read_bytes(), bytearray(good.read_bytes())
    damaged[4:40] = bytes(36)
    put(tmp_path / "orders/page.parquet", bytes(damaged))
    put(tmp_path / "orders/footer.parquet", whole[:-60] + bytes(52) + whole[-8:])
    polars.DataFrame({"id": polars.Series([10**30], dtype=polars.Int128)}).write_parquet(tmp_path / "orders/z.parquet")
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as source:
        assert (source.rows.count(), source.rows.types) == (1001, {"id": "bigint"})
        unread = source.guess.unread
    assert [text.partition(" ")[0].rpartition("/")[2] for text in unread] == [
        "footer.parquet",
        "page.parquet",
        "z.parquet:",
    ]
    assert unread[-1].endswith("z.parquet: its column id cannot be read (bytes of a type that only its writer knows)")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "id,code,part,share\n-1,18446744073709551615,12345678901234567890,1e3\n2,1,1,0.5\n"),
        ("a.json", '{"id":-1,"code":18446744073709551615,"part":12345678901234567890,"share":1e3}\n{"id":2,"code":-1}'),
    ],
)
def test_whole_numbers_that_a_bigint_does_not_hold_keep_their_digits(tmp_path: Path, name: str, content: str) -> None:
    put(tmp_path / "orders" / name, content)
    wide = "decimal(38,0)"
    assert kinds(inferred(tmp_path)) == {"id": "bigint", "code": wide, "part": wide, "share": "double"}
    put(tmp_path / "orders" / name, content.replace("18446744073709551615", "9" * 39))
    assert kinds(inferred(tmp_path))["code"] == "string"


@pytest.mark.parametrize("kind", ["csv", "json", "array"])
def test_numbers_with_more_digits_than_a_double_has_keep_them(tmp_path: Path, kind: str) -> None:
    columns = {
        "sum": ("0.30000000000000004", "1.5", "double"),  # as Python writes 0.1 + 0.2
        "rate": ("0.12345678901234567890", "-10.5", "decimal(38,20)"),
        "amount": ("123456789012345678.05", "1", "decimal(38,2)"),
        "größe (m)": ("0.12345678901234567891", "1", "decimal(38,20)"),
        "tiny": ("1.2345678901234567891e-7", "1", "string"),
        "share": ("1e-7", "0.5", "double"),
        "huge": ("1e400", "0.5", "string"),
        "price": (" 1.50", " -2.25", "double"),
    }
    rows = list(zip(*columns.values(), strict=True))[:2]
    records = (", ".join(f'"{name}": {row[at]}' for at, name in enumerate(columns)) for row in rows)
    objects = [f"{{{record}}}" for record in records]
    contents = {
        "csv": "\n".join(",".join(row) for row in (columns, *rows)),
        "json": "\n".join(objects),
        "array": f"[{', '.join(objects)}]",
    }
    put(tmp_path / f"orders/a.{'csv' if kind == 'csv' else 'json'}", contents[kind])
    assert [*kinds(inferred(tmp_path)).values()] == [wanted for *_, wanted in columns.values()]


def test_only_the_newest_finished_files_of_the_most_frequent_format_are_read(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 5):
        put(tmp_path / f"orders/{number:03d}.csv", "id\n1\n")
    put(tmp_path / "orders/readme.json", "{}")
    put(tmp_path / "orders/999.csv.tmp", "no")
    put(tmp_path / "orders/_temporary/999.csv", "no")
    found = files_of_source(LocalLanding(str(tmp_path)), "orders")
    assert [Path(path).name for path in found.paths] == [f"{number:03d}.csv" for number in range(5, MAX_FILES + 5)]
    assert found.left_out == 1
    text = text_of(tmp_path)
    assert "# ignored by `files` below, files with other suffixes: 1" in text


@pytest.mark.parametrize("at", [1, 100, 200])
def test_a_csv_line_with_too_many_values_is_named_and_neither_the_header_nor_another_dialect_follows_from_it(
    tmp_path: Path, at: int
) -> None:
    lines = ["id,name,region", *(f"{number},n,r" for number in range(200))]
    put(tmp_path / "orders/b.csv", "\n".join([*lines[:at], "7,x,y,surplus", *lines[at:]]))
    assert kinds(inferred(tmp_path)) == {"id": "bigint", "name": "string", "region": "string"}
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as source:
        assert source.rows.count() == 200
        [unread] = source.guess.unread
    assert unread.endswith(f"orders/b.csv: line {at + 1}: Expected Number of Columns: 3 Found: 4")
    assert "# 1 line or file could not be read\n" in text_of(tmp_path)


@pytest.mark.parametrize("name", ["b.csv", "b.json"])
def test_a_file_with_a_wrong_byte_is_named_and_left_out(tmp_path: Path, name: str) -> None:
    good, bad = {
        "b.csv": (b"id,city\n1,x\n", b"id,city,more\n1,M\xe1laga,z\n"),
        "b.json": (b'{"id": 1, "city": "x"}\n', b'{"city": "M\xe1laga", "more": 1}\n'),
    }[name]
    put(tmp_path / "orders" / name, bad)
    with pytest.raises(BadInputError, match=rf"orders/{name}.*(?i:utf-8|unicode)"):
        text_of(tmp_path)
    put(tmp_path / "orders" / f"a{name[1:]}", good)
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as source:
        assert source.rows.types == {"id": "bigint", "city": "string"}
        assert source.rows.count() == 1
        [unread] = source.guess.unread
    assert f"orders/{name}" in unread
    assert "# 1 line or file could not be read\n" in text_of(tmp_path)


@pytest.mark.parametrize("name", ["a.parquet", "a.avro"])
def test_a_file_with_columns_that_differ_only_in_case_is_named_as_no_run_can_read_it(tmp_path: Path, name: str) -> None:
    file = put(tmp_path / "orders" / name, b"")
    pq.write_table(pa.table([[1], [2]], names=["ID", "id"]), file)
    if name == "a.avro":
        schema = {"type": "record", "name": "order", "fields": [{"name": each, "type": "int"} for each in ("ID", "id")]}
        with file.open("wb") as stream:
            fastavro.writer(stream, schema, [{"ID": 1, "id": 2}])
    with pytest.raises(BadInputError, match=f"{name} does not read as .*its columns ID( and|,) id"):
        text_of(tmp_path)


PACKINGS = {".csv": bytes, ".csv.gz": gzip.compress, ".csv.zst": zstandard.compress}


@pytest.mark.parametrize("suffix", PACKINGS)
def test_packed_files_are_read_and_an_empty_newest_file_is_ignored(tmp_path: Path, suffix: str) -> None:
    put(tmp_path / f"orders/z{suffix}", PACKINGS[suffix](b""))
    with pytest.raises(NotReadyError, match="are empty"):
        text_of(tmp_path)
    put(tmp_path / f"orders/a{suffix}", PACKINGS[suffix](b"id;city\n1;x\n"))
    spec = inferred(tmp_path)
    assert spec.landing_source.files == f"*{suffix}"
    assert kinds(spec) == {"id": "bigint", "city": "string"}
    assert (spec.landing_source.header, spec.landing_source.delimiter) == (True, ";")


def test_names_that_differ_in_case_between_files_are_read_in_any_case(tmp_path: Path) -> None:
    put(tmp_path / "orders/a.csv", "ID,Amount\n1,5\n")
    put(tmp_path / "orders/b.csv", "Id,Amount,Colour\n2,5.5,red\n")
    spec = inferred(tmp_path)
    assert (spec.source.field_names, kinds(spec)) == (
        "any_case", {"id": "bigint", "amount": "double", "colour": "string"}
    )  # fmt: skip
    assert "  colour: {type: string, from: Colour}  # 1 of the files lack it\n" in text_of(tmp_path)
    both = put(tmp_path / "one/orders/a.csv", "ID,Id\n1,2\n").parents[1]
    assert inferred(both).source.field_names == "exact"
    put(both / "orders/b.csv", "id\n3\n")
    assert inferred(both).source.field_names == "exact", "in any case, a.csv would be broken"


@pytest.mark.parametrize(
    ("folders", "path"),
    [
        (["date=2013-01-01", "date=2013-01-02"], "date={interval_start:%Y-%m-%d}"),
        (["20250701"], "{interval_start:%Y%m%d}"),
        (["2025/07/01", "2025/07/02/eu"], "{interval_start:%Y}/{interval_start:%m}/{interval_start:%d}"),
        (
            ["y=2025/m=11/d=7", "y=2025/m=11/d=17"],
            "y={interval_start:%Y}/m={interval_start.month}/d={interval_start.day}",
        ),
        (["2025-07-01", "2025-13-01"], "."),
        (["2025-07-01", "dt=2025-07-02"], "."),
        (["2025/07"], "."),
    ],
)
def test_folders_of_days_become_the_path_of_an_interval(tmp_path: Path, folders: list[str], path: str) -> None:
    for folder in folders:
        put(tmp_path / "orders" / folder / "a.csv", "id\n1\n")
    source = inferred(tmp_path).landing_source
    assert source.path == path
    if path != ".":
        start = datetime.combine(day_of(folders[0]), time(), UTC)
        interval = Interval(start=start, end=start + timedelta(days=1))
        assert folders[0].startswith(interval_folder(source, interval).removeprefix("orders/"))


def test_nothing_to_guess_from_is_not_ready_and_unreadable_files_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match=r"there is no folder .*/orders"):
        text_of(tmp_path)
    put(tmp_path / "orders/README", "")
    with pytest.raises(NotReadyError, match=r"orders holds no file that ends in \.csv"):
        text_of(tmp_path)
    put(tmp_path / "visits/a.avro", "id\n1\n")
    with pytest.raises(BadInputError, match=r"visits/a\.avro does not read as avro: not an Avro file"):
        text_of(tmp_path, "visits")
    put(tmp_path / "orders/a.parquet", "id\n1\n")
    with pytest.raises(BadInputError, match=r"orders/a\.parquet does not read as parquet: "):
        text_of(tmp_path)


MIXED = {
    "parquet": [
        parquet_of([{"id": 1, "v": {"a": 1}, "w": {"b": [1]}}]),
        parquet_of([{"id": 2, "v": 5, "w": {"b": 2}}]),
    ],
    "json": [b'{"id": 1, "v": {"a": 1}, "w": {"b": [1]}}', b'{"id": 2, "v": 5, "w": [2]}'],
    "avro": [
        avro_of({"id": "long", "v": {"type": "map", "values": "int"}, "w": "int"}, {"id": 1, "v": {}, "w": 1}),
        avro_of({"id": "long", "v": "long", "w": {"type": "array", "items": "int"}}, {"id": 2, "v": 5, "w": []}),
    ],
}


@pytest.mark.parametrize("kind", MIXED)
def test_a_field_that_has_parts_in_some_files_alone_is_text_with_a_remark(tmp_path: Path, kind: str) -> None:
    for number, content in enumerate(MIXED[kind]):
        put(tmp_path / f"orders/{number}.{kind}", content)
    assert kinds(inferred(tmp_path)) == {"id": "bigint", "v": "string", "w": "string"}
    assert text_of(tmp_path).count("  # of other types in other files: ") == 2


def test_a_parquet_column_of_nulls_has_the_type_of_other_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "v": pa.nulls(1)}), put(tmp_path / "orders/a.parquet", b""))
    put(tmp_path / "orders/b.parquet", parquet_of([{"id": 2, "v": {"a": 1}}]))
    assert kinds(inferred(tmp_path)) == {"id": "bigint", "v": "struct<a:bigint>"}


def test_json_that_is_nested_too_deep_is_named_before_it_ends_the_process(tmp_path: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    put(tmp_path / "orders/a.json", f'{{"id": 1}}\n{{"id": {deep}}}\n{{"id": 2, "text": "{"[" * 2000}"}}\n')
    put(tmp_path / "orders/b.json", f'[{{"id": "x", "v": \n{deep}}}]')
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as source:
        unread, rows = source.guess.unread, source.rows.count()
        assert dict(source.rows.types) == {"id": "bigint", "text": "string"}
    assert rows == 2
    assert [line.removeprefix(str(tmp_path)) for line in unread] == [
        "/orders/a.json, line 2: it is nested too deep",
        "/orders/b.json does not read as json: it is nested too deep; nothing in the file is a JSON object",
    ]
