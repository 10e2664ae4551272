"""A table that a library cannot read, or whose values it does not know, takes no other table with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from polars.exceptions import PanicException

from millrace import certified, connect
from millrace.contracts.lake_path import LakePath
from millrace.errors import ExitCode, MillraceError
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.reading.certified_lake import ORDERS, orders, write_version

FAR = pa.array([6_617_830, -735_525, 19_723, None], pa.int32()).cast(pa.date32())
"""A day of the year 20089, one of 45 B.C., one of today's, and null."""
BROKEN = {
    "silver.torn": r"The log of .*torn cannot be read.*\n.*restore the missing or damaged files",
    "silver.panic": r"The log of .*panic/? cannot be read: delta-rs panicked: unwrap.*\ndelta-rs cannot hold a value",
    "silver.mapped": r"mapped cannot be read by its files alone: it has the feature columnMapping\n",
    "silver.late": r"The log of .*late cannot be read: .*\+294000.*\ndelta-rs cannot hold a value",
}
"""Table -> the cause, and the way out."""


@pytest.fixture
def paths(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> LakehousePaths:
    """A lakehouse with a sound table, some that no reader can open, and some with odd values."""
    paths = settings.paths
    for table in (ORDERS, *list(BROKEN)[:-1]):
        write_version(paths, orders("a", "b"), table=table)
    _rewrite(paths.table("silver.torn"), '{"', "{")
    _rewrite(paths.table("silver.mapped"), '"minReaderVersion":1', '"minReaderVersion":2')
    partitioned = pa.table({"n": [1], "at": pa.array([0], pa.timestamp("us", "UTC"))})
    write_version(paths, partitioned, table="silver.late", partition_by=["at"])
    _rewrite(paths.table("silver.late"), '"partitionValues":{"at":"1970', '"partitionValues":{"at":"+294000')
    listed = DeltaTable.get_add_actions

    def get_add_actions(delta: DeltaTable, flatten: bool = False) -> Any:
        if delta.table_uri.rstrip("/").endswith("panic"):
            raise PanicException("unwrap() on None")
        return listed(delta, flatten)

    monkeypatch.setattr(DeltaTable, "get_add_actions", get_add_actions)
    return paths


def _rewrite(path: LakePath, text: str, other: str) -> None:
    commits = list((Path(str(path)) / "_delta_log").glob("*.json"))
    changed = [commit for commit in commits if text in commit.read_text()]
    assert changed, text
    for commit in changed:
        commit.write_text(commit.read_text().replace(text, other))


def test_a_table_that_cannot_be_read_fails_alone_and_says_why(paths: LakehousePaths, lakehouse: Lakehouse) -> None:
    with connect(paths.root) as lake:
        assert lake.sql(f"SELECT name FROM {ORDERS}").fetchall() == [("a",), ("b",)]
        assert {table for (table,) in lake.sql("SHOW TABLES").fetchall()} == {ORDERS}
    shown = lakehouse("query", "SHOW ALL TABLES")
    assert (shown.exit_code, ORDERS in shown.stdout) == (ExitCode.OK, True)
    for table, message in BROKEN.items():
        with pytest.raises(MillraceError, match=message):
            certified(table, paths.root).arrow()
        asked, suggested = lakehouse("query", f"FROM {table}"), lakehouse("suggest", table)
        cause = asked.stderr.split("\n")[0]
        assert table.split(".")[1] in cause
        assert suggested.stderr.startswith(cause)
        assert 0 not in (asked.exit_code, suggested.exit_code)
    assert lakehouse("suggest", ORDERS).exit_code == ExitCode.OK
    assert lakehouse("views").stdout.count("CREATE OR REPLACE VIEW") >= 1


def test_a_wish_to_stop_is_no_error_of_a_table(paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    for wish in (KeyboardInterrupt, SystemExit):
        monkeypatch.setattr(DeltaTable, "get_add_actions", Mock(side_effect=wish))
        with pytest.raises(wish):
            connect(paths.root)


def test_values_that_python_does_not_know_are_read(paths: LakehousePaths, lakehouse: Lakehouse) -> None:
    write_version(paths, pa.table({"n": [1, 2, 3, 4], "day": FAR}), table="gold.far")
    asked = lakehouse("query", "SELECT n, day FROM gold.far WHERE day > '2024-01-01' OR day < '0001-01-01' ORDER BY n")
    assert asked.stdout == '"n","day"\n1,"20089-01-01"\n2,"0045-03-15 (BC)"\n'
    assert lakehouse("suggest", "gold.far").exit_code == ExitCode.OK
