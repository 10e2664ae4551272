"""JSON lines preserve all values, with any characters."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.control.storage.json_lines import json_lines
from tests.support.texts import texts


@settings(max_examples=40)
@given(st.lists(st.dictionaries(texts(), texts())), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_json_lines_preserve_every_value(values: list[dict[str, str]], end: str) -> None:
    text = "".join(f"{json.dumps(value, ensure_ascii=False)}{end}" for value in values)
    lines = list(json_lines(text))
    assert [line.value for line in lines] == values
    assert [json.loads(text.split("\n")[line.number - 1]) for line in lines] == values


def test_the_error_names_a_line_that_is_no_json() -> None:
    with pytest.raises(ValueError, match="line 3 is no JSON: Expecting value at column 6"):
        list(json_lines('{"a": "\u0085"}\n\n{"a":}\n'))
