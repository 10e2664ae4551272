"""The commands of both sides, and N's scripts."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from benchmarks.naive import bronze, gold, silver
from benchmarks.peers import CHAIN, DELTA, Millrace, Naive, Place
from embedded.jars import locked_jars
from include.catalog import load_catalog
from include.contracts.job.args import JobArgs
from include.contracts.spec.table_spec import BronzeSpec, GoldSpec
from include.settings import PROJECT

PLACE = Place(Path("/lake"), "/landing")


@pytest.fixture(autouse=True)
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "delta.jar").touch()
    monkeypatch.setenv("LAKEHOUSE_JARS", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("table", "job"), zip(CHAIN, ("bronze_ingest", "silver_merge", "gold_aggregate"), strict=True))
def test_both_sides_write_the_same_day_of_the_same_table_with_the_same_jars(table: str, job: str) -> None:
    ours = Millrace().writer(table, PLACE, "2013-01-01")
    arguments = JobArgs.from_argv(ours[ours.index(str(PROJECT / "spark_jobs" / "jobs" / f"{job}.py")) + 1 :])
    assert (arguments.table, arguments.root, arguments.landing) == (table, Path("/lake"), "/landing")
    assert f"{arguments.interval.start:%Y-%m-%d} {arguments.interval.end:%Y-%m-%d}" == "2013-01-01 2013-01-02"
    theirs = Naive(Path("/ivy")).writer(table, PLACE, "2013-01-01")
    script = PROJECT / "benchmarks" / "naive" / f"{table.split('.')[0]}.py"
    assert theirs[-4:] == [str(script), "/lake", "/landing", "2013-01-01"]
    assert theirs[theirs.index("--packages") + 1] == DELTA
    assert DELTA in {jar.coordinate for jar in locked_jars("delta")}


def test_n_has_no_setting_beyond_deltas_own_and_imports_nothing_of_millrace() -> None:
    command = Naive(Path("/ivy")).submit()
    stated = {command[at + 1].split("=")[0] for at, part in enumerate(command) if part == "--conf"}
    assert stated == {"spark.jars.ivy", "spark.sql.extensions", "spark.sql.catalog.spark_catalog"}
    scripts = sorted((PROJECT / "benchmarks" / "naive").glob("*.py"))
    assert len(scripts) == 5
    for script in scripts:
        imports = [line for line in script.read_text().splitlines() if line.startswith(("import ", "from "))]
        named = {line.split()[1].split(".")[0] for line in imports}
        assert named <= {"__future__", "sys", "pyspark", "delta"}, script


def test_neither_side_uses_a_warm_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    assert "SPARK_REMOTE" not in Millrace().environment()
    assert "SPARK_REMOTE" not in Naive(Path("/ivy")).environment()


def test_n_reads_and_groups_by_the_columns_of_the_specs() -> None:
    catalog = load_catalog(PROJECT / "include" / "tables")
    read, grouped = catalog.spec("bronze.flight_events"), catalog.spec("gold.route_performance_daily")
    assert isinstance(read, BronzeSpec)
    assert isinstance(grouped, GoldSpec)
    stated = dict(part.split() for part in bronze.SCHEMA.strip().split(","))
    assert stated == {name: column.type for name, column in read.columns.items()}
    assert {*grouped.measures, *grouped.group_by} <= set(gold.load.__code__.co_consts)


def test_n_prefers_the_later_event_by_time_then_by_sequence() -> None:
    for s, t in (((1, 1), (1, 1)), ((1, 2), (1, 1)), ((1, 1), (1, 2)), ((2, 1), (1, 2)), ((1, 2), (2, 1))):
        rows = f"(VALUES {s}) s(event_at, event_seq), (VALUES {t}) t(event_at, event_seq)"
        assert duckdb.sql(f"SELECT {silver.NEWER} FROM {rows}").fetchall() == [(s > t,)]
