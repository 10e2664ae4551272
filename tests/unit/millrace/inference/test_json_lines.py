"""JSON files give every record's fields; what is no record is named, and spellings are told apart."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.control.landing.on_disk import LocalLanding
from millrace.inference.first_spec import guessed_source
from tests.support.documents.inferred_specs import inferred, kinds, put, text_of


def test_json_lines_give_every_field_with_its_type_also_nested(tmp_path: Path) -> None:
    lines = '{"id": 1, "by": {"name": "x"}, "lines": [{"n": 1, "to": [{"x": 1.5}]}], "odd": [{"Full name": "x"}]}\n'
    lines += '{"id": -2, "at": "2013-01-01T08:00:00Z", "Odd name": 1}\n'
    put(tmp_path / "orders/a.json.gz", gzip.compress(lines.encode()))
    spec = inferred(tmp_path)
    assert kinds(spec) == {
        "id": "bigint", "by": "struct<name:string>", "lines": "array<struct<n:bigint,to:array<struct<x:double>>>>",
        "odd": "array<string>", "at": "timestamp", "odd_name": "bigint",
    }  # fmt: skip
    assert (spec.landing_source.files, spec.landing_source.path) == ("*.json.gz", ".")
    assert "  odd_name: {type: bigint, from: Odd name}\n" in text_of(tmp_path)


@pytest.mark.parametrize("name", ["a.json", "a.json.zst", "a.ndjson.gz"])
def test_json_arrays_give_the_same_as_json_lines(tmp_path: Path, name: str) -> None:
    text = b'[\n {"id": 1, "by": {"name": "x"}},\n {"id": -2, "at": "2013-01-01T08:00:00Z"}\n]'
    packings = {"zst": zstandard.compress, "gz": gzip.compress}
    put(tmp_path / "orders" / name, packings.get(name.rpartition(".")[2], bytes)(text))
    spec = inferred(tmp_path)
    assert kinds(spec) == {"id": "bigint", "by": "struct<name:string>", "at": "timestamp"}
    assert (spec.landing_source.format, spec.landing_source.files) == ("json", f"*{name[1:]}")


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".gz", b'{"id": 2}'),
        (".gz", gzip.compress(b'{"id": 2}')[:-9]),
        (".gz", gzip.compress(b"")[:10] + b"\xff" * 20),
        (".zst", b'{"id": 2}'),
        (".zst", zstandard.compress(b'{"id": 2}')[:4] + b"\xff" * 20),
    ],
    ids=["gz: no gzip", "gz: cut", "gz: damaged", "zst: no zstd", "zst: damaged"],
)
@pytest.mark.parametrize(("kind", "sound"), [("json", b'{"id": 1}'), ("csv", b"id\n1\n")], ids=["json", "csv"])
def test_a_file_that_cannot_be_unpacked_is_named_and_the_others_are_read(
    tmp_path: Path, kind: str, sound: bytes, suffix: str, content: bytes
) -> None:
    put(tmp_path / f"orders/broken.{kind}{suffix}", content)
    put(tmp_path / f"orders/sound.{kind}{suffix}", {".gz": gzip.compress, ".zst": zstandard.compress}[suffix](sound))
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as source:
        assert (dict(source.rows.types), source.rows.count()) == ({"id": "bigint"}, 1)
        (unread,) = source.guess.unread
    assert f"broken.{kind}{suffix} does not read as {kind}: " in unread


@pytest.mark.parametrize("packed", [bytes, gzip.compress, zstandard.compress], ids=["", ".gz", ".zst"])
@given(
    lines=st.lists(
        st.one_of(
            st.integers().map(lambda number: (json.dumps({"id": number}), 1)),
            st.sampled_from([('{"id": 1, "id": 2}', 1), ('{"id": 1} {"id": 2}\t{"id": 3}', 3)]),
            st.sampled_from(['{"id": 1', "no", "[1, 2]", "17", '{"id": 1} x', '{"id": 1}[2]', "\ufeff{}"]).map(
                lambda text: (text, 0)
            ),
        ),
        max_size=8,
    )
)
@settings(max_examples=20, deadline=None)
def test_json_lines_that_are_no_records_are_left_out_each_by_its_number(
    packed: Callable[[bytes], bytes], lines: list[tuple[str, int]]
) -> None:
    lines = [('{"id": 5, "at": "2013-01-01"}', 1), *lines]
    suffix = {bytes: "", gzip.compress: ".gz", zstandard.compress: ".zst"}[packed]
    with TemporaryDirectory() as folder:
        text = "".join(f"{line}\n" for line, _ in lines)
        put(Path(folder) / f"orders/a.json{suffix}", packed(text.encode()))
        with guessed_source(LocalLanding(folder), "orders") as source:
            assert set(source.rows.types) == {"id", "at"}
            assert source.rows.count() == sum(records for _, records in lines)
            unread = source.guess.unread
    wrong = [number for number, (_, records) in enumerate(lines, 1) if not records]
    assert [re.search(r"line (\d+): (?!.*line \d)", each)[1] for each in unread] == list(map(str, wrong))


@pytest.mark.parametrize(
    "files",
    [
        ['{"Order ID": 1, "Qty": 2}\n{"ORDER ID": 2, "qty": 3, "line_1": "x", "line": "y"}\n'],
        ['{"Order ID": 1, "line": "y", "Qty": 1}\n', '{"line_1": "x", "qty": 1, "ORDER ID": 2}\n'],
    ],
    ids=["of one file", "of two files"],
)
def test_fields_that_differ_in_case_are_one_column(tmp_path: Path, files: list[str]) -> None:
    for number, text in enumerate(files):
        put(tmp_path / f"orders/{number}.json", text)
    spec = inferred(tmp_path)
    columns = {"order_id": "bigint", "qty": "bigint", "line_1": "string", "line": "string"}
    assert (spec.source.field_names, kinds(spec)) == ("any_case", columns)
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as source:
        assert source.rows.columns()["order_id"].nulls == 0


BOTH = {"Order ID": 1, "order id": 2}


@pytest.mark.parametrize(
    "files",
    [
        [[BOTH]],
        [[{"order id": 3}], [BOTH]],
        [[{"Order ID": 3}], [{"order id": 4}], [BOTH], [{"order id": 5}]],
    ],
    ids=["in one record", "in the second file", "in one of many files"],
)
@pytest.mark.parametrize("is_array", [False, True], ids=["lines", "array"])
def test_two_spellings_in_one_record_are_two_fields_with_exact_names(
    tmp_path: Path, files: list[list[dict[str, int]]], is_array: bool
) -> None:
    for number, records in enumerate(files):
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        put(tmp_path / f"orders/{number}.json", json.dumps(records) if is_array else lines)
    spec = inferred(tmp_path)
    assert spec.source.field_names == "exact"
    assert {column.expression: column.type for column in spec.columns.values()} == dict.fromkeys(BOTH, "bigint")
    expected = {field: sum(field in record for records in files for record in records) for field in BOTH}
    with guessed_source(LocalLanding(str(tmp_path)), "orders") as source:
        rows, facts = source.rows.count(), source.rows.columns()
        assert {source.names[name]: rows - each.nulls for name, each in facts.items()} == expected


@pytest.mark.parametrize(
    "lines",
    [
        ['{"id": 1, "by": {"Name": "x", "name": "y"}}'],
        ['{"id": 1, "by": {"to": [{"Name": "x"}, {"name": "y"}]}}'],
        ['{"id": 1, "by": {"Name": "x"}}', '{"id": 2, "by": {"name": "y"}}'],
    ],
    ids=["in one object", "in two elements", "in two records"],
)
@pytest.mark.parametrize("in_files", [1, 2])
def test_an_object_with_names_that_differ_only_in_case_is_text(tmp_path: Path, lines: list[str], in_files: int) -> None:
    for number in range(in_files):
        put(tmp_path / f"orders/{number}.json", "".join(f"{line}\n" for line in lines[number::in_files] or lines))
    spec = inferred(tmp_path)
    assert (spec.source.field_names, kinds(spec)) == ("exact", {"id": "bigint", "by": "string"})
