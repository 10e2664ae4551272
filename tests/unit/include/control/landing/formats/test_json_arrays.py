"""JSON files that are one array: distinguished from lines, and refused unless they are complete."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.control.landing.formats import json_arrays
from include.control.landing.formats.json_arrays import is_array, require_array
from include.control.log.batch import JSON_ARRAY
from tests.support.deliveries import Deliver, orders_spec_of
from tests.support.listing import inspected

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


def problem_of(text: str, size: int = 3) -> str:
    """Return why a text is no array; empty for a sound array."""
    try:
        require_array(Trickle(text, size))
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


@pytest.mark.parametrize("text", ['{"a": [1]}', "", "  \n", '"["', "x["])
def test_other_text_is_no_array(text: str) -> None:
    assert not is_array(io.StringIO(text))


@pytest.mark.parametrize(
    ("content", "layout", "defect"),
    [
        (b'[{"order_id": "1"}]', JSON_ARRAY, ""),
        (b'\xef\xbb\xbf\n[\n {"order_id": "1"}]\n', JSON_ARRAY, ""),
        (b"\n" * 9999 + b'[\n{"order_id": "1"\n}]', JSON_ARRAY, ""),
        (b"[]", JSON_ARRAY, ""),
        (b'{"order_id": [1]}\n', "", ""),
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
