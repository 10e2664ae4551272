"""`lakehouse views`: scripts and files for other engines."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from millrace.control.views.duckdb_file import delta_extension
from millrace.control.views.folder import INDEX
from millrace.errors import ExitCode
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.reading.certified_lake import orders, write_version


@pytest.fixture(autouse=True)
def paths(settings: Settings) -> LakehousePaths:
    """A certified table, and one that is not."""
    paths = settings.paths
    write_version(paths, orders("a", "b"))
    write_version(paths, orders("bad"), table="gold.sales", passed=False)
    return paths


def test_a_script_for_each_engine_has_the_certified_tables_alone(lakehouse: Lakehouse, paths: LakehousePaths) -> None:
    script = lakehouse("views").stdout
    with duckdb.connect() as database:
        database.load_extension(str(delta_extension()))
        database.execute(script)
        assert database.sql("SELECT count(*) FROM silver.orders").fetchall() == [(2,)]
    spark, trino = (lakehouse("views", "--engine", engine).stdout for engine in ("spark", "trino"))
    assert f"delta.`{paths.table('silver.orders')}` VERSION AS OF 0;" in spark
    assert 'silver_all_versions."orders" FOR VERSION AS OF 0;' in trino
    assert "gold" not in script + spark + trino


def test_a_folder_is_written_and_says_how_it_stays_up_to_date(lakehouse: Lakehouse, tmp_path: Path) -> None:
    folder = tmp_path / "views"
    first, again = (lakehouse("views", "--write", str(folder)).stdout for _ in range(2))
    assert first.startswith(
        "wrote certified.json, duckdb.sql, lakehouse.duckdb, spark.sql, trino.sql\nSet LAKEHOUSE_VIEWS="
    )
    assert again.startswith("up to date: certified.json")
    (tmp_path / "file").write_text("no folder")
    failed = lakehouse("views", "--write", str(tmp_path / "file"))
    assert (failed.exit_code, "cannot be written" in failed.stderr) == (ExitCode.WRONG_USAGE, True)


def test_a_damaged_table_is_named_and_stops_none(lakehouse: Lakehouse, paths: LakehousePaths, tmp_path: Path) -> None:
    write_version(paths, orders("c"), table="gold.sales")
    folder = ("views", "--write", str(tmp_path / "views"))
    assert lakehouse(*folder).exit_code == ExitCode.OK
    for commit in (paths.table("gold.sales") / "_delta_log").glob("*.json"):
        commit.write_text("damaged")
    write_version(paths, orders("d"))
    written, printed = lakehouse(*folder), lakehouse("views")
    assert (written.exit_code, printed.exit_code) == (ExitCode.FAILED, ExitCode.FAILED)
    assert all(result.stderr.startswith("gold.sales: its view is not written: ") for result in (written, printed))
    versions = {
        table: entry["version"] for table, entry in json.loads((tmp_path / "views" / INDEX).read_text()).items()
    }
    assert versions == {"gold.sales": 1, "silver.orders": 1}, "the damaged one keeps its view"
    assert ("silver" in printed.stdout, "gold" in printed.stdout) == (True, False)
