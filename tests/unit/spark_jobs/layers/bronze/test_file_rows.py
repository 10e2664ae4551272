"""The rows of each landing file are counted from the data files of its batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.contracts.job.findings import FileWithoutColumns
from include.contracts.job.report import FileRows
from include.control.log.batch import FileFact
from spark_jobs.layers.bronze.file_rows import lacking_files, rows_of_files
from tests.support.documents.specs import bronze_spec

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
