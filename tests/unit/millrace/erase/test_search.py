"""One file is searched: every column of every type, every row, every spelling; against a reading by plain Python."""

from __future__ import annotations

import gzip
import io
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.erase.reach import Reach
from millrace.erase.search import FileSearch, Found, Keys, UnreadFileError, keys_of_type
from millrace.erase.subjects import MOST_BYTES, Subjects, read_subjects
from millrace.errors import BadInputError

SUBJECTS = Subjects("customer", ("C-17", 'o"neil@x.example', "São", "4711000"))
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("number", pa.int64()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("nested", pa.struct([("list", pa.list_(pa.string())), ("n", pa.int32())])),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("view", pa.string_view()),
        ("numbers", pa.list_(pa.decimal128(12, 2))),
    ]
)

words = st.sampled_from(
    ["C-17", "C-171", "xC-17", "C-17,", "customer_C-17", "of São, and", "sao", 'o"neil@x.example', "", "4711000"]
)
texts = st.none() | words | st.tuples(words, words).map(" ".join)
rows = st.fixed_dictionaries(
    {
        "key": texts,
        "number": st.none() | st.sampled_from([17, 4711000, 47110001]),
        "text": texts,
        "bytes": st.none() | words.map(str.encode),
        "nested": st.none() | st.fixed_dictionaries({"list": st.none() | st.lists(texts, max_size=3), "n": st.none()}),
        "view": texts,
        "numbers": st.none() | st.lists(st.sampled_from([17, 4711000]), max_size=2),
        "tags": st.none() | st.dictionaries(words, texts, max_size=2).map(lambda tags: list(tags.items())),
    }
)


def searched(
    content: bytes,
    keys: tuple[str, ...] = (),
    subjects: Subjects = SUBJECTS,
    *,
    encoding: str = "UTF-8",
    anywhere: bool = False,
) -> Found:
    return FileSearch(subjects, Keys(keys, anywhere=anywhere)).search("a", io.BytesIO(content), encoding)


def names(value: Any) -> bool:
    """Whether a text within a value has one of the subjects as a word."""
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        return any(_is_word(value, subject) for subject in SUBJECTS.values)
    if isinstance(value, dict):
        value = value.values()
    return value == 4711000 if isinstance(value, int | Decimal | None) else any(map(names, value))


def _is_whole(key: str | None) -> bool:
    """Whether a key is that of somebody else: alone, without signs that are between several."""
    return not key or not set(key) & set(' ,"')


def _is_word(text: str, word: str) -> bool:
    starts = [at for at in range(len(text)) if text.startswith(word, at)]
    ends = [(text[at - 1 : at], text[at + len(word) : at + len(word) + 1]) for at in starts]
    return any(not _in_word(before) and not _in_word(after) for before, after in ends)


def _in_word(letter: str) -> bool:
    return letter.isascii() and letter.isalnum()


@given(st.lists(rows, max_size=30))
def test_every_row_of_a_parquet_file_with_the_key_or_a_text_that_names_it_is_found(made: list[dict[str, Any]]) -> None:
    own = [row for row in made if row["key"] in SUBJECTS.values or row["number"] == 4711000]
    made = [{**row, "numbers": row["numbers"] and [Decimal(number) for number in row["numbers"]]} for row in made]
    others = [row for row in made if not (row["key"] in SUBJECTS.values or row["number"] == 4711000)]
    mentions = [
        row for row in others if any(names(row[name]) for name in row if name != "key" or not _is_whole(row[name]))
    ]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(made, SCHEMA), buffer, row_group_size=7)
    found = searched(buffer.getvalue(), ("KEY", "number"))
    assert found == Found(len(own), len(mentions))


@pytest.mark.parametrize(
    "text",
    [
        '{"who": "C-17"}',
        '{"who": "o\\"neil@x.example"}',
        r'{"who": "S\u00e3o"}',
        r'{"note": "of\nC-17"}',
        r'{"stats":"{\"max\":{\"who\":\"o\\\"neil@x.example\"}}"}',
        'id,who\n1,"o""neil@x.example"\n',
        "day=1/who=S%C3%A3o/a.parquet",
        "a=1&who=x%20C-17",
        "<td>o&quot;neil@x.example</td>",
        "\x1b[1mC-17\x1b[0m",
        "Sa\u0303o",
        "4711000",
        f"{'x' * (2**20 - 2)} C-17 {'x' * 2**20}",
    ],
)
def test_a_text_is_found_in_every_spelling_also_between_two_steps_in_packed_files_and_in_columns(text: str) -> None:
    content = text.encode()
    assert searched(content)
    assert searched(gzip.compress(content))
    assert searched(text.encode("utf-16"), encoding="UTF-16")
    buffer = io.BytesIO()
    pq.write_table(pa.table({"note": [text]}), buffer)
    assert searched(buffer.getvalue()) == Found(mentions=1)
    assert not searched(content, subjects=Subjects("customer", ("C-18",)))


def test_short_numbers_are_found_in_their_fields_and_columns_alone() -> None:
    subjects = Subjects("customer", ("17",))
    assert subjects.short == ("17",)
    as_field = json.dumps({"Buyer": 17, "n": 1, "stats": json.dumps({"buyer": 17})}).encode()
    assert searched(as_field, ("who.buyer",), subjects)
    assert not searched(as_field, ("n",), subjects)
    assert searched(b"id,buyer\n17,x\n", subjects=subjects, anywhere=True), "a CSV file, whose columns have no names"
    columns = {"buyer": [17, 171], "n": [1, 17], "who": [{"id": 17}, None], "first": [1.0, 17.0]}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    assert searched(buffer.getvalue(), ("buyer",), subjects) == Found(rows=1)
    assert searched(buffer.getvalue(), ("who.id",), subjects) == Found(rows=1)
    computed = FileSearch(subjects, Keys(("buyer",), ("first",)))
    assert computed.search("a", io.BytesIO(buffer.getvalue())) == Found(rows=1, mentions=1)


@pytest.mark.parametrize("word", ["12e5", "1_2", "\uff11\uff12", "Infinity"])
def test_a_key_that_is_no_plain_number_is_nobody_in_a_column_of_numbers(word: str) -> None:
    subjects, numbers = Subjects("customer", (word,)), [1200000, 12]
    assert keys_of_type(subjects, pa.int64()) == []
    buffer = io.BytesIO()
    pq.write_table(pa.table({"buyer": numbers, "name": [word, "x"]}), buffer)
    assert searched(buffer.getvalue(), ("buyer",), subjects) == Found(mentions=1)


def test_only_refused_rows_with_the_key_in_its_field_are_those_of_a_subject() -> None:
    reach = Reach(("client",), ("who.id",), received=("buyer",), numbers=("phone",))
    rows = {
        "row_id": ["own", "received", "rescued", "of a friend", "longer", "dashed", "no record", "other field"],
        "record": [
            '{"client":"ann@x.org"}',
            "{}",
            '{"_rescued":"{\\"who.id\\":\\"C-17\\"}"}',
            '{"client":"D-1","note":"of C-17"}',
            '{"client":"mary.ann@x.org"}',
            '{"client":"C-17-4"}',
            "C-17;broken",
            '{"buyer":"C-17"}',
        ],
        "received": ["{}", '{"buyer":"C-17"}', *["{}"] * 6],
    }
    search = FileSearch(Subjects("customer", ("ann@x.org", "C-17")), Keys.of_quarantine(reach))
    is_row, is_named = search.in_rows(pa.record_batch(rows))
    found = dict(zip(rows["row_id"], zip(is_row.tolist(), is_named.tolist(), strict=True), strict=True))
    own, mention, nobody = (True, True), (False, True), (False, False)
    assert found == {
        "own": own,
        "received": own,
        "rescued": own,
        "of a friend": mention,
        "longer": nobody,
        "dashed": nobody,
        "no record": mention,
        "other field": mention,
    }


def test_a_number_is_found_in_a_text_that_a_cast_has_made_of_it_and_no_other_text() -> None:
    buffer, subjects = io.BytesIO(), Subjects("customer", ("17", "12345678"))
    made = pa.table({"buyer": ["17.00", "17", "1.2345678E7", "17.50", "117", None]})
    pq.write_table(made, buffer)
    cast = FileSearch(subjects, Keys(("buyer",), numbers=("buyer",)))
    assert cast.search("a", io.BytesIO(buffer.getvalue())) == Found(rows=3)
    assert cast.texts_of_keys(made["buyer"].chunk(0), "buyer") == ["17.00", "17", "1.2345678E7"]
    assert searched(buffer.getvalue(), ("buyer",), subjects) == Found(rows=1), "of texts the very key counts"


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ('{"buyer":"C-17-4"}', False),
        ('{"buyer":"C-17"}', True),
        ('{"buyer":"C-17-4","note":"C-17"}', True),
        ('{"note":"C-17-4"}', True),
        ('{"buyer":"C-17-4;C-17"}', True),
        ('{"buyer":"C-17 "}', True),
        (r'{"stats":"{\"minValues\":{\"buyer\":\"C-17-4\"}}"}', False),
        (r'{"stats":"{\"minValues\":{\"buyer\":\"C-17\"}}"}', True),
        ('{"path":"buyer=C-17-4/a.parquet"}', False),
        ('{"path":"buyer=C%2D17/a.parquet"}', True),
        (f'{{"max":{{"buyer":"{("C-18-" + "x" * 40)[:32]}\uf8ff"}}}}', True),
        (f'{{"note":"{"x" * (2**20 - 20)}"}}\n{{"buyer":"C-17-4"}}\n{"x" * 2**20}', False),
    ],
)
def test_the_key_of_another_that_has_this_one_in_it_names_nobody(text: str, is_found: bool) -> None:
    subjects = Subjects("customer", ("C-17", "C-18-" + "x" * 40))
    assert bool(searched(text.encode(), ("buyer",), subjects)) == is_found
    column = io.BytesIO()
    pq.write_table(pa.table({"text": [text]}), column)
    assert searched(column.getvalue(), ("buyer",), subjects) == Found(mentions=int(is_found))


def test_keys_are_found_in_dictionaries_bytes_of_fixed_size_and_the_names_of_folders() -> None:
    uuid = UUID("5b0e7c62-9d0a-4f0e-8f5e-0c2f3a1b4d5e")
    subjects = Subjects("customer", ("C-17", str(uuid), "17.50"))
    columns = {
        "word": pa.array(["x", "C-17"]).dictionary_encode(),
        "id": pa.array([uuid.bytes, b"x" * 16], pa.binary(16)),
        "pair": pa.array([["a", "b"], ["c", "C-17"]], pa.list_(pa.string(), 2)),
    }
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    assert searched(buffer.getvalue(), ("word", "id"), subjects) == Found(rows=2)
    assert searched(buffer.getvalue(), ("pair",), subjects) == Found(rows=1, mentions=1)
    for path in ("who=C-17/a.parquet", "who=17.5/a", "exports of C-17/a.parquet"):
        in_path = FileSearch(subjects, Keys(("who",), numbers=("who",)))
        assert in_path.search(path, io.BytesIO(b"nothing")) == Found(mentions=1), path
    assert not FileSearch(subjects, Keys(("who",))).search("who=C-171/a", io.BytesIO(b"nothing"))


def test_a_thousand_long_keys_are_not_too_many_for_one_search() -> None:
    subjects = Subjects("customer", tuple(f"{number:04d}{'x' * 1000}" for number in range(1000)))
    buffer = io.BytesIO()
    pq.write_table(pa.table({"note": [subjects.values[-1], "y"]}), buffer)
    assert searched(buffer.getvalue(), subjects=subjects) == Found(mentions=1)


def test_avro_records_are_searched_and_a_damaged_file_is_named() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": each, "type": "string"} for each in ("id", "note")]}
    buffer = io.BytesIO()
    fastavro.writer(
        buffer, schema, [{"id": "C-17", "note": ""}, {"id": "x", "note": "of C-17."}, {"id": "y", "note": ""}]
    )
    content = buffer.getvalue()
    assert searched(content, ("id",)) == Found(1, 1)
    for damaged in (content[:-5], b"PAR1 broken", gzip.compress(b"x")[:-4]):
        with pytest.raises(UnreadFileError):
            searched(damaged, ("id",))


def test_a_file_of_subjects_has_one_key_in_each_line() -> None:
    assert read_subjects("customer", b"\xef\xbb\xbfa b\n\nc\r\na b").values == ("a b", "c")
    too_long, many = b"x" * MOST_BYTES + b"y", "\n".join(map(str, range(2000))).encode()
    refused = {
        b"\n": "no subject",
        many: "2,000",
        too_long: "line 1",
        b"a\nb \n": "line 2",
        b"\xff": "no text in UTF-8",
    }
    for content, cause in refused.items():
        with pytest.raises(BadInputError, match=cause):
            read_subjects("customer", content)


def test_no_text_that_is_hidden_has_a_key() -> None:
    text = "who=S%C3%A3o/a, C-17, xC-17 and 4711000"
    assert SUBJECTS.hide(text) == "who=(key)/a, (key), xC-17 and (key)"
