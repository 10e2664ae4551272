"""Files of edited rows: each line has the id of its row and new values of columns."""

from __future__ import annotations

import pytest

from millrace.control.quarantine.edited_rows import edited_rows
from millrace.errors import BadInputError


def test_each_line_is_a_row_with_the_columns_that_have_values() -> None:
    text = '{"id": "r1", "record": {"amount": 7, "day": null}, "reasons": []}\n\n{"id": "r2", "record": {}}\n'
    assert [(row.id, row.columns) for row in edited_rows(text)] == [("r1", ("amount", "day")), ("r2", ())]


def test_a_wrong_line_is_refused_with_its_number() -> None:
    for line, message in {
        '{"id": "r1"': "line 2 is no JSON",
        '{"id": "r1"}': "line 2 is no edited row",
        '["r1"]': "line 2 is no edited row",
        '{"id": 7, "record": {}}': "line 2 is no edited row",
        '{"id": "r0", "record": {}}': "line 2 edits row r0, as an earlier line does",
    }.items():
        with pytest.raises(BadInputError, match=message):
            edited_rows(f'{{"id": "r0", "record": {{}}}}\n{line}\n')
