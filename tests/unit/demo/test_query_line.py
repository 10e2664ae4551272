from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from demo.query import QueryError, query_line, run_line


def test_the_printed_line_runs_as_it_is_and_reads_the_version_that_it_names(tmp_path: Path) -> None:
    table = tmp_path / "gold" / "sums"
    for rows in ([11, 22], [33]):
        write_deltalake(str(table), pa.table({"amount": rows}), mode="append")

    first = run_line(query_line(table, 0, "ORDER BY amount LIMIT 5"))
    second = run_line(query_line(table, 1, "ORDER BY amount LIMIT 5"))

    assert "11" in first
    assert "22" in first
    assert "33" not in first
    assert "33" in second


def test_a_line_that_does_not_work_says_why(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="does not work"):
        run_line(query_line(tmp_path / "none", 0, ""))
