"""The rows of landing files and their values that fit no column are counted from the data files of a batch."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.job.findings import FileWithoutColumns, Findings, RescuedValues, merge_findings
from millrace.contracts.job.report import FileRows
from millrace.contracts.spec.record_fields import field_text
from millrace.control.log.batch import FileFact, Winner
from millrace_spark.layers.bronze.file_rows import lacking_files, rows_of_files
from millrace_spark.layers.bronze.rescued_fields import rescued_fields
from millrace_spark.transforms.record_parts import RecordColumns, record_columns
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import intent_of
from tests.support.texts import texts

ROWS = st.lists(st.tuples(st.sampled_from(["a.json", "b.json", "day=1/c.json"]), st.sampled_from([None, "{}"])))
"""Data files, as (landing file, rescued text) of each row."""


def write(path: Path, rows: list[tuple[str, str | None]], **options: object) -> Path:
    columns = {"_source_file": [name for name, _ in rows], "_rescued": [value for _, value in rows]}
    schema = pa.schema([("_source_file", pa.string()), ("_rescued", pa.string())])
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns, schema=schema), path, **options)
    return path


@settings(max_examples=40)
@given(
    first=ROWS, second=ROWS, rows_a_group=st.integers(1, 5), has_statistics=st.booleans(), has_dictionary=st.booleans()
)
def test_rows_are_counted_whatever_their_row_groups(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[str, str | None]],
    second: list[tuple[str, str | None]],
    rows_a_group: int,
    has_statistics: bool,
    has_dictionary: bool,
) -> None:
    options = {
        "row_group_size": rows_a_group, "write_statistics": has_statistics, "use_dictionary": has_dictionary
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("table")
    added = [
        write(folder / f"_interval=1/{number}.parquet", rows, **options) for number, rows in enumerate((first, second))
    ]
    rows = [*first, *second]
    written, rescued = Counter(name for name, _ in rows), Counter(name for name, value in rows if value)
    found = rows_of_files(written, added, {}, {})
    assert found == {
        name: FileRows(read=count, written=count, rescued=rescued[name]) for name, count in written.items()
    }


def test_refused_records_count_as_read(tmp_path: Path) -> None:
    added = [write(tmp_path / "0.parquet", [("a.json", None)])]
    found = rows_of_files(["a.json", "empty.json"], added, {"a.json": 2}, {"a.json": 3})
    assert found["a.json"] == FileRows(read=6, written=1, quarantined=2, dropped=3)
    assert found["empty.json"] == FileRows()


def test_a_file_that_lacks_fields_of_declared_columns_is_reported_with_its_rows() -> None:
    spec = bronze_spec(columns={"id": {}, "colour": {"from": "Colour"}})
    whole, old = FileFact("a.csv", 9, 1, columns=("id", "Colour")), FileFact("old.csv", 9, 1, columns=("id",))
    lines = FileFact("a.json", 9, 1)  # JSON lines name their fields one by one
    rows = {file.path: FileRows(read=3, written=3) for file in (whole, old, lines)}
    found = lacking_files([whole, old, lines], rows, spec)
    assert found == (FileWithoutColumns(path="old.csv", columns=("Colour",), rows=3),)


def columns_of(kinds: dict[str, str]) -> RecordColumns:
    """A column of this type for each field."""
    names = {f"column_{at}": field for at, field in enumerate(kinds)}
    return RecordColumns({name: kinds[field] for name, field in names.items()}, names)


NAMES = texts().filter(bool)
VALUES = st.dictionaries(NAMES.map(field_text), texts(), min_size=1)
RESCUED_ROWS = st.lists(st.tuples(st.booleans(), st.none() | VALUES), min_size=1)


@settings(max_examples=25)
@given(st.lists(RESCUED_ROWS, max_size=3), st.dictionaries(NAMES, st.just("int")))
def test_every_field_of_the_batchs_own_rows_is_counted(
    files: list[list[tuple[bool, dict[str, str] | None]]], kinds: dict[str, str]
) -> None:
    winner = Winner(intent_of("mine"), 1)
    with TemporaryDirectory() as folder:
        paths = [_written(Path(folder) / f"{number}.parquet", rows, winner) for number, rows in enumerate(files)]
        found, repeated = rescued_fields(paths, winner, columns_of(kinds))
    assert not repeated
    mine = [values for rows in files for is_mine, values in rows if is_mine and values]
    assert {one.field: one.rows for one in found} == Counter(field for values in mine for field in values)
    for one in found:
        assert one.type == {field_text(field): kind for field, kind in kinds.items()}.get(one.field, "")
        assert set(one.samples) <= {values[one.field] for values in mine if one.field in values}
        assert one.samples


def test_a_lost_part_of_a_value_is_told_from_a_part_that_nobody_declared(tmp_path: Path) -> None:
    winner = Winner(intent_of("mine"), 1)
    rows = [
        {"items[0].price": "12,50", "items[3].price": "x", "items[0].colour": "red"},
        {"`a[1]`": "y", "`b.c`": "z", "stock.Oslo.`a.b`[1]": "u", "stock.Bergen.c[0]": "v"},
    ]
    path = _written(tmp_path / "a.parquet", [(True, row) for row in rows], winner)
    kinds = {"items": "array<struct<price:decimal(10,2)>>", "b.c": "int", "stock": "map<string,map<string,array<int>>>"}
    columns = columns_of(kinds)
    rescued, _ = rescued_fields([path], winner, columns)
    assert [(each.field, each.type, each.rows) for each in rescued] == [
        ("`a[1]`", "", 1), ("`b.c`", "int", 1), ("items[].colour", "", 1), ("items[].price", "decimal(10,2)", 1),
        ("stock[][][]", "int", 1),
    ]  # fmt: skip


def test_a_note_says_which_value_fits_a_date_or_time() -> None:
    spec = bronze_spec(
        columns={
            "changed": {"type": "timestamp", "epoch": "ms"},
            "day": {"type": "date"},
            "paid": {"type": "date", "format": "dd.MM.yyyy"},
            "due": {"type": "date", "epoch": "days", "from": "terms.due"},
        }
    )
    fits = map(record_columns(spec).fit_of, ("changed", "day", "paid", "terms.due"))
    assert list(fits) == [
        "timestamp as a number of ms since 1970",
        "date or midnight in UTC",
        "date",
        "date as a number of days since 1970",
    ]


def test_a_note_names_each_column_that_does_not_fit_and_all_fields_without_a_column() -> None:
    number = RescuedValues(field="flight_number", type="int", rows=1, samples=("abc\u2028",))
    price = RescuedValues(field="items[].price", type="int", rows=1, samples=("x",))
    assert Findings(rescued=(price,)).lines("bronze.flights") == (
        "bronze.flights: 1 row has a value of items[].price that is no int, or not the last of its name: not stored, "
        "kept in _rescued: 'x'",
    )
    colour = RescuedValues(field="colour", rows=1200, samples=("red",))
    both = merge_findings([Findings(rescued=(number, colour)), Findings(rescued=(number, colour))])
    assert both.lines("bronze.flights") == (
        "bronze.flights: 2 rows have a value of flight_number that is no int: null there, kept in _rescued: "
        r"'abc\u2028'",
        "bronze.flights: rows have fields that no column is declared for, kept in _rescued: 'colour' in 2,400",
    )


@pytest.mark.parametrize("name", ["amount", "AMOUNT"])
def test_an_earlier_value_of_a_repeated_field_is_told_from_one_that_does_not_fit(tmp_path: Path, name: str) -> None:
    winner, path = Winner(intent_of("mine"), 1), tmp_path / "a.parquet"
    values = {name: "1"}, {name: "1"}, {"amount": "x"}, {name: "7", "colour": "red"}
    texts = [*map(json.dumps, values), None]
    columns = {"_rescued": texts, "_batch_token": [winner.token] * 5, "column_0": pa.array([2, 3, None, 8, 9])}
    pq.write_table(pa.table(columns), path)
    rescued, _ = rescued_fields([path], winner, columns_of({"amount": "int"}), any_case=name != "amount")
    assert [(each.field, each.rows, each.earlier) for each in rescued] == [("amount", 4, 3), ("colour", 1, 0)]
    found = Findings(rescued=rescued)
    misfit, several, _ = merge_findings([found, found]).lines("bronze.orders")
    assert misfit.startswith(
        "bronze.orders: 2 rows have a value of amount that is no int: null there, kept in _rescued"
    )
    assert several == (
        "bronze.orders: 6 rows have amount several times: the last value counts, _rescued has the others: '1', 'x', '7'"
    )


def test_two_fields_for_one_column_are_no_values_of_another_type(tmp_path: Path) -> None:
    winner = Winner(intent_of("mine"), 1)
    values: list[dict[str, str]] = [
        {"AMOUNT": "1", "Amount": "2", "Colour": "red", "colour": "blue"},
        {"AMOUNT": "3", "Amount": "4"},
        {"amount": "many"},
    ]
    path = _written(tmp_path / "a.parquet", [(True, each) for each in values], winner)
    rescued, repeated = rescued_fields([path], winner, columns_of({"amount": "int"}), any_case=True)
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
