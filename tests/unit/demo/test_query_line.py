from __future__ import annotations

from pathlib import Path

import pytest

from demo.query import query_line, run_line
from include.paths import LakehousePaths
from tests.support.reading.certified_lake import orders, write_version


def test_the_printed_line_runs_as_it_is_and_reads_the_certified_version(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paths = LakehousePaths(tmp_path / "it's $HOME")
    write_version(paths, orders("a", "b"))
    write_version(paths, orders("refused"), passed=False)
    run_line(query_line(paths.root, "SELECT name, 'in \"$HOME\"' AS place FROM silver.orders"))
    assert capfd.readouterr().out.splitlines()[1:] == ['"a","in ""$HOME"""', '"b","in ""$HOME"""']
