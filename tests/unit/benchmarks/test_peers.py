"""The commands of both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers import CHAIN, DELTA, Millrace, Naive, Place
from embedded.jars import locked_jars
from include.contracts.job.args import JobArgs
from include.settings import PROJECT
from include.spark_conf import ONE_COMPILER, SMALL_MACHINE

PLACE = Place(Path("/lake"), "/landing")


@pytest.fixture(autouse=True)
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "delta.jar").touch()
    monkeypatch.setenv("LAKEHOUSE_JARS", str(tmp_path))
    return tmp_path


def option(command: list[str], name: str) -> str:
    """The value of a Spark setting on a command line."""
    found = [part.removeprefix(f"{name}=") for part in command if part.startswith(f"{name}=")]
    assert len(found) == 1, f"{name} is stated {len(found)} times"
    return found[0]


@pytest.mark.parametrize(("table", "job"), zip(CHAIN, ("bronze_ingest", "silver_merge", "gold_aggregate"), strict=True))
def test_millrace_runs_the_job_of_the_layer(table: str, job: str) -> None:
    command = Millrace().writer(table, PLACE, "2013-01-01")
    application = str(PROJECT / "spark_jobs" / "jobs" / f"{job}.py")
    arguments = JobArgs.from_argv(command[command.index(application) + 1 :])
    assert (arguments.table, arguments.root, arguments.landing) == (table, Path("/lake"), "/landing")
    assert f"{arguments.interval.start:%Y-%m-%d} {arguments.interval.end:%Y-%m-%d}" == "2013-01-01 2013-01-02"


def test_an_option_can_be_left_out_of_millraces_jvm() -> None:
    key = "spark.driver.extraJavaOptions"
    with_it = option(Millrace().writer(CHAIN[0], PLACE, "2013-01-01"), key)
    options = f"{SMALL_MACHINE} {ONE_COMPILER}"
    without = option(Millrace(without=options).writer(CHAIN[0], PLACE, "2013-01-01"), key)
    assert options in with_it
    assert without == with_it.replace(options, "")


@pytest.mark.parametrize("table", CHAIN)
def test_n_runs_its_script_with_the_jars_that_millrace_locks(table: str) -> None:
    command = Naive(Path("/ivy")).writer(table, PLACE, "2013-01-01")
    script = PROJECT / "benchmarks" / "naive" / f"{table.split('.')[0]}.py"
    assert script.is_file()
    assert command[-4:] == [str(script), "/lake", "/landing", "2013-01-01"]
    assert command[command.index("--packages") + 1] == DELTA
    assert DELTA in {jar.coordinate for jar in locked_jars("delta")}


def test_a_script_of_n_can_be_named() -> None:
    named = Naive(Path("/ivy")).script("orders", PLACE, "2025-01-01")
    assert named[-4:] == [str(PROJECT / "benchmarks" / "naive" / "orders.py"), "/lake", "/landing", "2025-01-01"]
    assert named[:-4] == Naive(Path("/ivy")).submit()


def test_another_application_runs_in_a_session_of_millrace() -> None:
    ours = Millrace().writer(CHAIN[1], PLACE, "2013-01-01")
    other = Millrace().application(Path("/application.py"), "one", "two")
    assert other[-3:] == ["/application.py", "one", "two"]
    assert other[:-3] == ours[: len(other) - 3]


def test_n_has_no_setting_beyond_deltas_own() -> None:
    command = Naive(Path("/ivy")).submit()
    stated = {command[at + 1].split("=")[0] for at, part in enumerate(command) if part == "--conf"}
    assert stated == {"spark.jars.ivy", "spark.sql.extensions", "spark.sql.catalog.spark_catalog"}


def test_no_script_of_n_imports_millrace() -> None:
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


def test_a_commit_is_found_by_table_and_version() -> None:
    expected = "/lake/silver/flights/_delta_log/00000000000000000001.json"
    assert PLACE.commit("silver.flights", 1).as_posix() == expected
