"""The folder of views follows the certificates: with each move all its files, and with nothing else."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest
import sqlglot
from deltalake import DeltaTable

from millrace.control.gates.gates import Gates
from millrace.control.views import duckdb_file
from millrace.control.views import folder as view_folder
from millrace.control.views.duckdb_file import delta_extension
from millrace.control.views.folder import DUCKDB_FILE, INDEX, SCRIPTS
from millrace.control.views.scripts import View, duckdb_script
from millrace.paths import LakehousePaths
from tests.support.reading.certified_lake import ORDERS, orders, write_version

NAMES = f"SELECT string_agg(name ORDER BY n) FROM {ORDERS}"
FILES = {INDEX, DUCKDB_FILE, *(f"{engine}.sql" for engine in SCRIPTS)}


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    """A lakehouse with a folder of views that does not exist yet, and one certified version from before that."""
    write_version(LakehousePaths(tmp_path / "it's läke"), orders("early"), table="gold.order")
    return LakehousePaths(tmp_path / "it's läke", views=tmp_path / "new" / "views")


def names(database: duckdb.DuckDBPyConnection, sql: str = NAMES) -> str:
    row = database.sql(sql).fetchone()
    assert row is not None
    return str(row[0])


def reader(file: Path | str = ":memory:") -> duckdb.DuckDBPyConnection:
    config = {"allow_unsigned_extensions": "true"}
    database = duckdb.connect(file, read_only=file != ":memory:", config=config)
    database.load_extension(str(delta_extension()))
    return database


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def versions(paths: LakehousePaths) -> dict[str, int]:
    """Return the version of each table in the list of views."""
    assert paths.views is not None
    return {table: entry["version"] for table, entry in json.loads((paths.views / INDEX).read_text()).items()}


def test_the_views_move_with_the_certificate_and_not_with_a_refusal(paths: LakehousePaths) -> None:
    assert paths.views is not None
    write_version(paths, orders("a", "b"))
    first = contents(paths.views)
    assert first.keys() == FILES
    with reader(paths.views / DUCKDB_FILE) as opened, reader() as by_script:
        assert names(opened) == "a,b"
        assert names(opened, "SELECT name FROM gold.order") == "early", "a table from before the folder"
        by_script.execute((paths.views / "duckdb.sql").read_text())
        assert names(by_script) == "a,b"

        write_version(paths, orders("bad"), passed=False)
        assert contents(paths.views) == first

        write_version(paths, orders("c"))
        assert names(opened) == "a,b", "a reader keeps the file that it has opened"
        by_script.execute((paths.views / "duckdb.sql").read_text())
        assert names(by_script) == "c"
    with reader(paths.views / DUCKDB_FILE) as later:
        assert names(later) == "c"
    index = json.loads((paths.views / INDEX).read_text())
    assert index[ORDERS] == {"path": str(paths.table(ORDERS)), "version": 2, "certified_by_hand": None}
    assert {path.name for path in paths.views.iterdir()} <= FILES | {".lock"}
    DeltaTable(str(paths.table(ORDERS))).optimize.z_order(["n"])
    Gates(paths).publish(ORDERS)
    assert versions(paths)[ORDERS] == 3, "optimize has passed the certificate on"
    # Trino itself is not among the tests: this finds a wrong quote, and no wrong name.
    parsed = sqlglot.parse((paths.views / "trino.sql").read_text(), read="trino")
    assert [statement.key for statement in parsed if statement] == ["create"] * 6


def test_a_gate_records_its_result_though_the_views_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    paths = LakehousePaths(tmp_path / "lake", views=tmp_path / "file")
    with caplog.at_level(logging.WARNING):
        version = write_version(paths, orders("a"))
    assert Gates(paths).certified(ORDERS) == version
    assert "were not rewritten" in caplog.text


def test_a_damaged_list_is_written_again(paths: LakehousePaths) -> None:
    assert paths.views is not None
    write_version(paths, orders("a"))
    for content in ("[1]", '{"silver.orders": {"version": "x"}}', "\x00"):
        (paths.views / INDEX).write_text(content)
        version = write_version(paths, orders("b"))
        assert versions(paths) == {ORDERS: version, "gold.order": 0}


def test_gates_that_pass_at_once_lose_no_view(paths: LakehousePaths) -> None:
    assert paths.views is not None
    tables = [f"silver.t{number}" for number in range(4)]
    with ThreadPoolExecutor(len(tables)) as gates:
        for name in ("a", "b"):
            list(gates.map(lambda table, name=name: write_version(paths, orders(name), table=table), tables))
    assert versions(paths) == {"gold.order": 0, **dict.fromkeys(tables, 1)}
    with reader(paths.views / DUCKDB_FILE) as database:
        assert [names(database, f"SELECT name FROM {table}") for table in tables] == ["b"] * len(tables)


def test_a_damaged_table_keeps_no_other_view_back(paths: LakehousePaths, caplog: pytest.LogCaptureFixture) -> None:
    assert paths.views is not None
    write_version(paths, orders("a"))
    log = paths.table("gold.order") / "_delta_log" / f"{0:020}.json"
    sound = log.read_text()
    log.write_text("damaged")
    (paths.views / DUCKDB_FILE).unlink()
    write_version(paths, orders("b"))
    with reader(paths.views / DUCKDB_FILE) as opened:
        assert names(opened) == "b"
    assert "gold.order: DuckDB cannot open version 0" in caplog.text
    log.write_text(sound)
    write_version(paths, orders("c"))
    with reader(paths.views / DUCKDB_FILE) as opened:
        assert names(opened, "SELECT name FROM gold.order") == "early", "it is tried again"


def test_a_table_that_was_damaged_before_there_was_a_folder_keeps_no_view_back(
    paths: LakehousePaths, caplog: pytest.LogCaptureFixture
) -> None:
    assert paths.views is not None
    (paths.table("gold.order") / "_delta_log" / f"{0:020}.json").write_text("damaged")
    write_version(paths, orders("a"))
    assert versions(paths).keys() == {ORDERS}
    assert "gold.order: its view was not rewritten" in caplog.text


def test_duckdb_opens_only_the_table_whose_certificate_moved(
    paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert paths.views is not None
    opened: list[str] = []

    def record(views: list[View]) -> str:
        opened.extend(view.table for view in views)
        return duckdb_script(views)

    monkeypatch.setattr(duckdb_file, "duckdb_script", record)
    for name, tables in (("a", {ORDERS, "gold.order"}), ("b", {ORDERS})):
        write_version(paths, orders(name))
        assert set(opened) == tables
        opened.clear()
    view_folder.rewrite_views(paths.views, lambda _: {"gold.order": None})
    with reader(paths.views / DUCKDB_FILE) as database:
        assert database.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall() == [("orders",)]
        assert names(database) == "b"
    assert opened == []


def test_a_writer_that_died_takes_no_certificate_back(paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.views is not None
    write_version(paths, orders("a"))
    with monkeypatch.context() as dies:
        dies.setattr(view_folder, "update_duckdb_file", lambda *_: 1 / 0)
        write_version(paths, orders("b"))
    write_version(paths, orders("x"), table="silver.other")
    assert versions(paths)[ORDERS] == 1
    with reader(paths.views / DUCKDB_FILE) as opened:
        assert names(opened) == "b"


def test_views_of_a_bucket_have_no_duckdb_file_that_would_need_its_credentials(tmp_path: Path) -> None:
    view = View("silver.orders", "s3://lake/silver/orders", 3)
    assert view_folder.rewrite_views(tmp_path, lambda _: {view.table: view})
    assert {path.name for path in tmp_path.iterdir()} <= (FILES | {".lock"}) - {DUCKDB_FILE}


def test_without_duckdbs_extension_there_is_no_old_file(paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.views is not None
    write_version(paths, orders("a"))
    monkeypatch.setattr(view_folder, "delta_extension", lambda: None)
    write_version(paths, orders("b"))
    assert contents(paths.views).keys() == FILES - {DUCKDB_FILE}
