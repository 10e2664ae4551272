"""Files of edited rows: each line names its row, and says what its columns become."""

from __future__ import annotations

import pytest

from include.control.quarantine.edited_rows import edited_rows
from include.errors import BadInputError


def test_each_line_is_a_row_with_the_columns_that_it_states() -> None:
    text = '{"id": "r1", "record": {"amount": 7, "day": null}, "reasons": []}\n\n{"id": "r2", "record": {}}\n'
    assert [(row.id, row.columns) for row in edited_rows(text)] == [("r1", ("amount", "day")), ("r2", ())]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "r1"', "line 2 is no JSON"),
        ('{"id": "r1"}', "line 2 is no edited row"),
        ('["r1"]', "line 2 is no edited row"),
        ('{"id": 7, "record": {}}', "line 2 is no edited row"),
        ('{"id": "r0", "record": {}}', "row r0, as an earlier line is"),
    ],
)
def test_what_is_no_edited_row_is_refused_with_its_line(line: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        edited_rows(f'{{"id": "r0", "record": {{}}}}\n{line}\n')
