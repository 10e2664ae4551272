"""One file is searched: every column of every type, every row, every spelling; against a reading by plain Python."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.erase.search import Found, UnreadFileError, search_file
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
    ]
)

words = st.sampled_from(["C-17", "C-171", "xC-17", "C-17,", "of São, and", "sao", 'o"neil@x.example', "", "4711000"])
texts = st.none() | words | st.tuples(words, words).map(" ".join)
rows = st.fixed_dictionaries(
    {
        "key": texts,
        "number": st.none() | st.sampled_from([17, 4711000, 47110001]),
        "text": texts,
        "bytes": st.none() | words.map(str.encode),
        "nested": st.none() | st.fixed_dictionaries({"list": st.none() | st.lists(texts, max_size=3), "n": st.none()}),
        "view": texts,
        "tags": st.none() | st.dictionaries(words, texts, max_size=2).map(lambda tags: list(tags.items())),
    }
)


def names(value: Any) -> bool:
    """Whether a text within a value has one of the subjects as a word."""
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        return any(_is_word(value, subject) for subject in SUBJECTS.values)
    if isinstance(value, dict):
        value = value.values()
    return not isinstance(value, int | None) and any(map(names, value))


def _is_word(text: str, word: str) -> bool:
    starts = [at for at in range(len(text)) if text.startswith(word, at)]
    ends = [(text[at - 1 : at], text[at + len(word) : at + len(word) + 1]) for at in starts]
    return any(not _in_word(before) and not _in_word(after) for before, after in ends)


def _in_word(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter == "_")


@given(st.lists(rows, max_size=30))
def test_every_row_of_a_parquet_file_with_the_key_or_a_text_that_names_it_is_found(made: list[dict[str, Any]]) -> None:
    own = [row for row in made if row["key"] in SUBJECTS.values or row["number"] == 4711000]
    mentions = [row for row in made if row not in own and any(map(names, row.values()))]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(made, SCHEMA), buffer, row_group_size=7)
    found = search_file("a.parquet", io.BytesIO(buffer.getvalue()), SUBJECTS, ("key", "number"))
    assert found == Found(len(own), len(mentions))


@pytest.mark.parametrize(
    "text",
    [
        '{"who": "C-17"}',
        '{"who": "o\\"neil@x.example"}',
        '{"who": "S\\u00e3o"}',
        'id,who\n1,"o""neil@x.example"\n',
        "day=1/who=S%C3%A3o/a.parquet",
        "<td>o&quot;neil@x.example</td>",
        "4711000",
        f"{'x' * (2**20 - 2)} C-17 {'x' * 2**20}",
    ],
)
def test_a_text_is_found_in_every_spelling_also_between_two_steps_and_in_a_packed_file(text: str) -> None:
    content = text.encode()
    assert search_file("a.log", io.BytesIO(content), SUBJECTS, ())
    assert search_file("a.json.gz", io.BytesIO(gzip.compress(content)), SUBJECTS, ())
    assert not search_file("a.log", io.BytesIO(content.replace(b"C-17", b"C-18")), Subjects("customer", ("C-17",)), ())


def test_short_numbers_are_found_in_their_fields_and_columns_alone() -> None:
    subjects = Subjects("customer", ("17",))
    assert subjects.short == ("17",)
    as_field = json.dumps({"buyer": 17, "n": 1}).encode()
    assert search_file("a.json", io.BytesIO(as_field), subjects, ("buyer",))
    assert not search_file("a.json", io.BytesIO(as_field), subjects, ("n",))
    buffer = io.BytesIO()
    pq.write_table(pa.table({"buyer": [17, 171], "n": [1, 17]}), buffer)
    assert search_file("a.parquet", buffer, subjects, ("buyer",)) == Found(rows=1)


def test_avro_records_are_searched_and_a_damaged_file_is_named() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": each, "type": "string"} for each in ("id", "note")]}
    buffer = io.BytesIO()
    fastavro.writer(
        buffer, schema, [{"id": "C-17", "note": ""}, {"id": "x", "note": "of C-17."}, {"id": "y", "note": ""}]
    )
    content = buffer.getvalue()
    assert search_file("a.avro", io.BytesIO(content), SUBJECTS, ("id",)) == Found(1, 1)
    for name in ("a.avro", "a.parquet", "a.json.gz"):
        with pytest.raises(UnreadFileError):
            search_file(name, io.BytesIO(content[:-5] if name == "a.avro" else b"broken"), SUBJECTS, ("id",))


def test_a_file_of_subjects_has_one_key_in_each_line() -> None:
    assert read_subjects("customer", ["a b\n", "\n", "c\r\n", "a b"]).values == ("a b", "c")
    for lines, cause in (([], "no subject"), (map(str, range(2000)), "2,000"), (["x" * MOST_BYTES + "y"], "subject 1")):
        with pytest.raises(BadInputError, match=cause):
            read_subjects("customer", lines)
