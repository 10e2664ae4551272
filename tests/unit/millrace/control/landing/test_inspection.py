"""The inspection of landing files: their columns, JSON that is one array, and the files that cannot be loaded."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from operator import add
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ByteSize

from millrace.contracts.spec.bronze_sources import FileLimits
from millrace.control.landing.formats import json_arrays
from millrace.control.landing.formats.json_arrays import is_array, require_array
from millrace.control.log.batch import JSON_ARRAY, MIXED_LINE_ENDS
from tests.support.deliveries import Deliver, orders_spec_of
from tests.support.documents.specs import bronze_spec
from tests.support.listing import inspected

COLUMNS = ("order_id", "amount", "day", "event_at", "event_seq")
LINES = b"".join(json.dumps({"order_id": str(number), "amount": number}).encode() + b"\n" for number in range(50))


def parquet(**columns: list[object]) -> bytes:
    stored = io.BytesIO()
    pq.write_table(pa.table(columns), stored)
    return stored.getvalue()


@pytest.mark.parametrize("file_format", ["json", "csv", "parquet", "avro"])
def test_an_empty_file_is_sound(deliver: Deliver, file_format: str) -> None:
    for name in ("empty", "empty.gz", "empty.zst"):
        found = inspected(deliver, orders_spec_of(file_format), name, b"")
        assert (found.size, found.defect, found.columns) == (0, "", ())
        assert found.checksum == hashlib.sha256(b"").hexdigest()
    if file_format in ("json", "csv"):
        assert inspected(deliver, orders_spec_of(file_format), "a.gz", gzip.compress(b"")).defect == ""


LINE_ENDS = ("\n", "\r\n", "\r")


@given(
    # A carriage return alone ends records where it ends the header; else it is text.
    ends=st.sampled_from(LINE_ENDS).flatmap(
        lambda first: st.lists(st.sampled_from(LINE_ENDS if first == "\r" else LINE_ENDS[:2]), max_size=3).map(
            lambda others: [first, *others]
        )
    ),
    within=st.lists(st.sampled_from(LINE_ENDS), max_size=3),
    is_ended=st.booleans(),
)
def test_the_record_ends_of_a_csv_file_are_distinguished_from_line_ends_within_values(
    tmp_path_factory: pytest.TempPathFactory, ends: list[str], within: list[str], is_ended: bool
) -> None:
    deliver = Deliver(tmp_path_factory.mktemp("landing"))
    header = ",".join([*COLUMNS[:-1], f'"{COLUMNS[-1]}"'])
    records = [header, *(f'"a{"b".join(within)}c",1,,,' for _ in ends)]
    between = [ends[0], *ends] if is_ended else [*ends, ""]
    found = inspected(deliver, orders_spec_of("csv"), "a.csv", "".join(map(add, records, between)).encode())
    if len(set(ends)) > 1:
        assert found.defect.startswith("its records end in several ways") if within else found.layout == MIXED_LINE_ENDS
    else:
        assert (found.layout, found.defect) == ("" if ends[0] == "\n" else ends[0], "")


@pytest.mark.parametrize(("ends", "layout"), [("\n", ""), ("\r\n", "\r\n")])
def test_a_carriage_return_within_a_value_is_text_quoted_or_not(deliver: Deliver, ends: str, layout: str) -> None:
    lines = [",".join(COLUMNS), "a\rb,1,,,", '"\r",2,,,', ""]
    found = inspected(deliver, orders_spec_of("csv"), "a.csv", ends.join(lines).encode())
    assert (found.layout, found.defect) == (layout, "")


def test_a_file_needs_the_fields_that_its_columns_read(deliver: Deliver) -> None:
    columns = {"order_id": {"from": "Order ID"}, "amount": {"required": True, "from": "Größe"}}
    source = {"landing": "orders", "files": "*", "format": "csv"}
    exact = bronze_spec(source=source, columns=columns)
    in_any_case = bronze_spec(source={**source, "field_names": "any_case"}, columns=columns)
    other_case = "amount,größe,Order ID\n1,2,3\n"
    assert inspected(deliver, exact, "a.csv", "order_id,Größe,Order ID\n1,2,3\n", ["amount"]).defect == ""
    found = inspected(deliver, exact, "a.csv", other_case, ["amount"])
    assert found.defect.startswith("has no column Größe; its columns are amount, größe, Order ID")
    assert inspected(deliver, in_any_case, "a.csv", other_case, ["amount"]).defect == ""
    found = inspected(deliver, in_any_case, "a.csv", "GRÖßE,größe,Order ID\n1,2,3\n")
    assert found.defect.startswith("the column amount could read GRÖßE and größe")


@pytest.mark.parametrize(("classification", "shown"), [("internal", "o1, 7"), ("restricted", "(restricted)")])
def test_the_first_line_of_a_csv_file_is_not_shown_if_it_may_have_restricted_values(
    deliver: Deliver, classification: str, shown: str
) -> None:
    columns = {"order_id": {}, "amount": {"classification": classification}}
    spec = bronze_spec(source={"landing": "orders", "files": "*", "format": "csv"}, columns=columns)
    defect = inspected(deliver, spec, "a.csv", "o1,7\no2,8\n").defect
    assert defect.startswith(f"has no column order_id, amount; its columns are {shown}: correct")


CSV = ",".join(COLUMNS).encode() + b"\n1,2,,,\n"
PARQUET = parquet(**{name: [1] for name in COLUMNS})
SEMICOLONS = b'event_seq;"order_id";day;amount;event_at;"a; more"\r\n1;2;;;;\r\n'
SOUND: list[tuple[str, dict[str, str], bytes, tuple[str, ...]]] = [
    ("a.json", {}, b"not json\n\n" + LINES, ()),
    ("a.csv", {"delimiter": ";"}, SEMICOLONS, ("event_seq", "order_id", "day", "amount", "event_at", "a; more")),
    ("a.csv", {}, ",".join([*COLUMNS, "", "amount", "x`y"]).encode(), (*COLUMNS, "column 6", "column 7", "x`y")),
    ("a.csv.gz", {}, gzip.compress(CSV, mtime=0), COLUMNS),
    ("a.parquet", {}, parquet(**{name: [1] for name in (*COLUMNS, "more")}), (*COLUMNS, "more")),
]


@pytest.mark.parametrize(("name", "source", "content", "columns"), SOUND)
def test_the_columns_of_a_file_are_those_of_its_header_or_schema_in_order_and_of_json_there_are_none(
    deliver: Deliver, name: str, source: dict[str, str], content: bytes, columns: tuple[str, ...]
) -> None:
    found = inspected(deliver, orders_spec_of(name.split(".")[1], **source), name, content)
    assert (found.defect, found.columns) == ("", columns)


TWO_CASES = "Spark cannot read both of its columns Amount and amount; have one of them renamed"
NOT_SOUND = [
    ("json", CSV, "a.data holds neither JSON lines nor an array; the spec's source.format is json"),
    ("json", b"\x00\xff" * 999, "a.data holds neither JSON lines nor an array; the spec's source.format is json"),
    ("csv", PARQUET, "Parquet data under the name a.data; the spec's source.format is csv"),
    ("csv", LINES, "has no column order_id, amount, day, event_at, event_seq; its columns are {"),
    (
        "csv",
        b"order_id;amount\no1;1\n",
        "has no column order_id, amount, day, event_at, event_seq; its columns are "
        "order_id;amount: correct the file or the spec; if its delimiter is ';', state source.delimiter",
    ),
    ("csv", b"\x00\xff" * 99_999, "not UTF-8 text (invalid start byte); correct source.encoding"),
    ("avro", CSV, "a.data is not an Avro file; the spec's source.format is avro"),
    ("parquet", CSV, "a.data is not a Parquet file; the spec's source.format is parquet"),
    ("parquet", b"PA", "a.data is not a Parquet file; the spec's source.format is parquet"),
    ("parquet", PARQUET[:-20], "not a sound Parquet file ("),
    ("parquet", PARQUET[:4] + bytes(40), "not a sound Parquet file ("),
    ("parquet", PARQUET[:-60] + b"\xff" * 52 + PARQUET[-8:], "not a sound Parquet file ("),
    ("parquet", PARQUET[:-8] + b"\xff\xff\xff\x7fPAR1", "not a sound Parquet file ("),
    ("parquet", parquet(order_id=["1"], Amount=[1], amount=[2]), TWO_CASES),
]


@pytest.mark.parametrize(("file_format", "content", "defect"), NOT_SOUND)
def test_a_damaged_file_and_one_of_another_format_is_refused(
    deliver: Deliver, file_format: str, content: bytes, defect: str
) -> None:
    found = inspected(deliver, orders_spec_of(file_format), "a.data", content)
    assert found.defect.startswith(defect)
    assert found.checksum == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_file_may_lack_a_column_that_is_not_needed(deliver: Deliver, file_format: str) -> None:
    there = [name for name in COLUMNS if name not in ("amount", "day")]
    content = ",".join(there).encode() + b"\n" if file_format == "csv" else parquet(**{name: [1] for name in there})
    spec = orders_spec_of(file_format)
    assert inspected(deliver, spec, "a.data", content).defect == ""
    assert inspected(deliver, spec, "a.data", content, {"day", "order_id"}).defect == (
        "has no column day; its columns are order_id, event_at, event_seq: correct the file or the spec"
    )


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
RECORDS = st.lists(VALUES, max_size=5)
INDENTS = st.sampled_from([None, 0, 2, "\t"])


class Trickle(io.TextIOBase):
    """A text that is read a few characters at a time, as from a slow disk."""

    def __init__(self, text: str, size: int) -> None:
        self._text = io.StringIO(text)
        self._size = size

    def read(self, most: int | None = -1) -> str:
        return self._text.read(self._size)


RECORD = 1 << 20


def problem_of(text: str, size: int = 3, limit: int = RECORD) -> str:
    """Return why a text is no array; empty for a sound array."""
    try:
        require_array(Trickle(text, size), FileLimits(record=ByteSize(limit)))
    except ValueError as error:
        return str(error)
    return ""


@given(records=RECORDS, indent=INDENTS, is_ascii=st.booleans(), size=st.integers(1, 20), data=st.data())
def test_every_complete_array_is_sound_and_none_that_is_cut(
    records: list[Any], indent: int | str | None, is_ascii: bool, size: int, data: st.DataObject
) -> None:
    text = json.dumps(records, indent=indent, ensure_ascii=is_ascii)
    assert is_array(Trickle(text, size))
    assert problem_of(f"\n {text}\n ", size) == ""
    kept = data.draw(st.integers(1, len(text) - 1))
    assert problem_of(text[:kept], size).startswith("not a sound JSON array (element ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[{"a": 1} {"a": 2}]', "element 1: then comes '{' instead of , or ]"),
        ('[{"a": 1}, {"a" 2}, {"a": 3}, "and so on, and so on"]', "element 2: Expecting ':' delimiter"),
        ('[{"a": 1},]', "element 2: Expecting value"),
        ('[,{"a": 1}]', "element 1: Expecting value"),
        ('[{"a": 01}, 2, 3, "and so on, and so on"]', "element 1: Expecting ',' delimiter"),
        ('[{"a": 1}]\n{"a": 2}\n', "element 1: more text follows the array; it begins with ["),
        ("[1]]", "element 1: more text follows the array"),
        ("[", "element 1: the file ends within"),
        ("[" * 99_999, "element 1: maximum recursion depth exceeded"),
    ],
)
def test_a_malformed_array_is_refused_with_the_place_where_it_breaks(text: str, problem: str) -> None:
    found = problem_of(text, 1000)
    assert found.startswith(f"not a sound JSON array ({problem}")
    assert found.endswith("have it delivered again")


def test_numbers_may_have_any_length() -> None:
    assert problem_of(f'[{{"a": {"7" * 99_999}}}, {"1" * 99_999}.5]', 1000) == ""


def test_an_array_that_is_too_large_for_a_task_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_arrays, "MAX_ARRAY_CHARS", 1 << 20)
    largest = f'["{"x" * ((1 << 20) - 4)}"]'
    assert problem_of(largest, 1 << 16) == ""
    problem = problem_of(f"{largest} ", 1 << 16)
    assert problem.startswith("an array of more than 1 MiB, which is too large for a task; have it delivered as JSON")


@pytest.mark.parametrize("size", [1 << 15, 1 << 18])
def test_a_record_of_an_array_over_the_limit_is_found_before_it_is_whole_in_memory(size: int) -> None:
    limit = 1 << 17
    largest = f'{{"a": "{"x" * (limit - 9)}"}}'
    assert problem_of(f"[1, {largest}, {largest}]", size, limit) == ""
    for record in (largest.replace("x", "xx", 1), "7" * (limit + 1), f"[{'[],' * limit}[]]"):
        problem = problem_of(f"[1, {record}, 2]", size, limit)
        assert problem.startswith(
            "it has a record of more than 128.0 KiB, and source.limits.record is 128.0 KiB; correct"
        )


@pytest.mark.parametrize(
    ("content", "layout", "defect"),
    [
        (b'[{"order_id": "1"}]', JSON_ARRAY, ""),
        (b'\xef\xbb\xbf\n[\n {"order_id": "1"}]\n', JSON_ARRAY, ""),
        (b"\n" * 9999 + b'[\n{"order_id": "1"\n}]', JSON_ARRAY, ""),
        (b"[]", JSON_ARRAY, ""),
        (b'{"order_id": [1]}\n', "", ""),
        (b"  \n", "", ""),
        (b'[{"order_id": "\xff"}]', "", "not UTF-8 text (invalid start byte) within a JSON array"),
        ('[{"order_id": "1"}]'.encode("utf-16"), "", "a.json holds neither JSON lines nor an array"),
        ('[{"order_id": "1"}]'.encode("utf-16-le"), "", "not a sound JSON array (element 1: Expecting value)"),
        (b'[{"order_id": "1"},\n', "", "not a sound JSON array (element 2: the file ends within"),
    ],
)
def test_a_file_is_an_array_by_its_first_character(deliver: Deliver, content: bytes, layout: str, defect: str) -> None:
    found = inspected(deliver, orders_spec_of("json"), "a.json", content)
    assert found.layout == layout
    assert found.defect.startswith(defect)
    assert bool(found.defect) == bool(defect)
