"""Values that fit no column are counted by field, from the data files of their batch."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from include.contracts.job.findings import Findings, RescuedValues, merge_findings
from include.control.log.batch import Winner
from spark_jobs.layers.bronze.rescued_fields import rescued_fields
from tests.support.ledger.delta_tables import intent_of
from tests.support.texts import texts

ROWS = st.lists(st.tuples(st.booleans(), st.none() | st.dictionaries(texts(), texts(), min_size=1)), min_size=1)


@settings(max_examples=25)
@given(st.lists(ROWS, max_size=3), st.dictionaries(texts(), st.just("int")))
def test_every_field_of_the_batchs_own_rows_is_counted(
    files: list[list[tuple[bool, dict[str, str] | None]]], kinds: dict[str, str]
) -> None:
    winner = Winner(intent_of("mine"), 1)
    with TemporaryDirectory() as folder:
        paths = [_written(Path(folder) / f"{number}.parquet", rows, winner) for number, rows in enumerate(files)]
        found, repeated = rescued_fields(paths, winner, kinds)
    assert not repeated
    mine = [values for rows in files for is_mine, values in rows if is_mine and values]
    assert {one.field: one.rows for one in found} == Counter(field for values in mine for field in values)
    for one in found:
        assert one.type == kinds.get(one.field, "")
        assert set(one.samples) <= {values[one.field] for values in mine if one.field in values}
        assert one.samples


def test_a_note_names_each_column_that_does_not_fit_and_all_fields_without_a_column() -> None:
    number = RescuedValues(field="flight_number", type="int", rows=1, samples=("abc\u2028",))
    colour = RescuedValues(field="colour", rows=1200, samples=("red",))
    both = merge_findings([Findings(rescued=(number, colour)), Findings(rescued=(number, colour))])
    assert both.lines("bronze.flights") == (
        "bronze.flights: 2 rows have a value of flight_number that is no int: null there, kept in _rescued: "
        r"'abc\u2028'",
        "bronze.flights: rows have fields that no column is declared for, kept in _rescued: 'colour' in 2,400",
    )


def test_two_fields_for_one_column_are_no_values_of_another_type(tmp_path: Path) -> None:
    winner = Winner(intent_of("mine"), 1)
    values: list[dict[str, str]] = [
        {"AMOUNT": "1", "Amount": "2", "Colour": "red", "colour": "blue"},
        {"AMOUNT": "3", "Amount": "4"},
        {"amount": "many"},
    ]
    path = _written(tmp_path / "a.parquet", [(True, each) for each in values], winner)
    rescued, repeated = rescued_fields([path], winner, {"amount": "int"}, any_case=True)
    assert [(each.field, each.type, each.rows) for each in rescued] == [
        ("Colour", "", 1), ("amount", "int", 1), ("colour", "", 1)
    ]  # fmt: skip
    assert [(each.fields, each.rows, each.samples) for each in repeated] == [(("AMOUNT", "Amount"), 2, ("1", "2"))]
    found = Findings(rescued=rescued, repeated=repeated)
    assert merge_findings([found, found]).lines("bronze.orders")[-1] == (
        "bronze.orders: 4 rows have several fields for one column, AMOUNT and Amount: null there, all kept in "
        "_rescued: '1', '2'\nWrite field_names: exact, with a column for each of them, or have the source write one of "
        "them."
    )


def _written(path: Path, rows: list[tuple[bool, dict[str, str] | None]], winner: Winner) -> Path:
    columns = {
        "_rescued": pa.array([json.dumps(values) if values else None for _, values in rows], pa.string()),
        "_batch_token": [winner.token if is_mine else "another" for is_mine, _ in rows],
    }
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path
