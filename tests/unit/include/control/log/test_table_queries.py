"""SQL queries on a Delta table through delta-rs."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from include.control.log.table_queries import identifiers, query, text_literals, timestamp_literal
from include.settings import PROJECT
from tests.support import texts as drawn

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)


@settings(max_examples=15)
@given(st.lists(drawn.texts(), min_size=1, unique=True), drawn.texts(without="\0", min_size=1))
def test_texts_and_names_may_contain_any_character(
    tmp_path_factory: pytest.TempPathFactory, values: list[str], name: str
) -> None:
    table = DeltaTable(_written(tmp_path_factory, pa.table({name: values})))
    texts = values[: len(values) // 2 + 1]
    column = identifiers([name])
    rows = query(table, f"SELECT {column} FROM stored WHERE {column} IN ({text_literals(texts)})")
    assert sorted(row[name] for row in rows) == sorted(texts)


def test_times_are_compared_with_microseconds(tmp_path_factory: pytest.TempPathFactory) -> None:
    at = [NOON, NOON + timedelta(microseconds=1)]
    table = DeltaTable(_written(tmp_path_factory, pa.table({"at": pa.array(at, pa.timestamp("us", tz="UTC"))})))
    assert query(table, f"SELECT at FROM stored WHERE at < {timestamp_literal(at[1])}") == [{"at": NOON}]
    assert query(table, f"SELECT at FROM stored WHERE at = {timestamp_literal(at[1])}") == [{"at": at[1]}]


def test_a_process_ends_cleanly_after_a_query(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An Arrow dataset aborted every second process."""
    stored = pa.table({"n": list(range(2_000)), "text": ["x" * 2_000] * 2_000})
    script = (
        "import sys; from deltalake import DeltaTable; from include.control.log.table_queries import query; "
        "assert len(query(DeltaTable(sys.argv[1]), 'SELECT * FROM stored')) == 2000"
    )
    command = [sys.executable, "-c", script, _written(tmp_path_factory, stored)]

    def ends(_: int) -> tuple[int, str]:
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stderr

    with ThreadPoolExecutor(2) as several:
        assert set(several.map(ends, range(3))) == {(0, "")}


def _written(folders: pytest.TempPathFactory, rows: pa.Table) -> str:
    folder: Path = folders.mktemp("table")
    write_deltalake(str(folder), rows)
    return str(folder)
