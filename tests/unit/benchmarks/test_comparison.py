"""What is compared, measured and made into figures, and the commands of both sides."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from benchmarks.comparison import COLUMNS, DifferentRowsError, require_same_digest, require_same_rows
from benchmarks.cost import Cost, FailedRunError, measure
from benchmarks.machine import JavaTrap
from benchmarks.peers import CHAIN, DELTA, Millrace, Naive, Place
from benchmarks.rounds import Ratio, Side, cpu_ratio, interleaved, wall_ratio
from embedded.clone import CLONE
from millrace.catalog import load_catalog
from millrace.contracts.job.args import JobArgs
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.jars.maven_jars import locked_jars
from millrace.spark_location import data_plane, spark_home
from tests.support.documents.specs import SHIPPED

GOLD = "gold.route_performance_daily"
Routes = list[tuple[str, float | None]]


def gold_table(folder: Path, routes: Routes, **more: object) -> Path:
    """A gold table: destination and one measure differ, every other column is the same in every row."""
    names = [*COLUMNS[GOLD], *more]
    rows = [dict.fromkeys(names, 1) | {"dest": dest, "pct_delayed_15": late} for dest, late in routes]
    kinds = {"dest": pa.string(), "pct_delayed_15": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in names])
    write_deltalake(str(folder), pa.Table.from_pylist(rows, schema))
    return folder


def digest(*relations: str) -> int:
    """Compare the digests of relations, each given by its rows; return how many rows each has."""
    return require_same_digest(("id", "said"), {str(n): f"({rows}) t(id, said)" for n, rows in enumerate(relations)})


def test_equal_rows_in_another_order_are_the_same_whatever_else_one_side_has(tmp_path: Path) -> None:
    one = gold_table(tmp_path / "one", [("BOS", 0.5), ("SFO", None)], _batch_seq=7)
    other = gold_table(tmp_path / "other", [("SFO", None), ("BOS", 0.5)])
    assert require_same_rows(GOLD, one, other) == 2
    assert digest("VALUES (1, 'a'), (2, NULL)", "VALUES (2, NULL), (1, 'a')") == 2


def test_different_rows_are_refused_from_either_side_and_empty_tables_prove_nothing(tmp_path: Path) -> None:
    right = gold_table(tmp_path / "right", [("BOS", 0.5), ("SFO", 0.2)])
    one_less = gold_table(tmp_path / "one less", [("BOS", 0.5)])
    one_twice = gold_table(tmp_path / "one twice", [("BOS", 0.5), ("SFO", 0.2), ("SFO", 0.2)])
    for pair in ((one_less, right), (one_twice, right)):
        with pytest.raises(DifferentRowsError, match=GOLD):
            require_same_rows(GOLD, *pair)
    for rows in ("(1, 'a'), (2, 'b')", "(1, 'a'), (2, NULL), (2, NULL)"):
        with pytest.raises(DifferentRowsError, match="do not have the same rows"):
            digest("VALUES (1, 'a'), (2, NULL)", f"VALUES {rows}")
    with pytest.raises(DifferentRowsError, match="both tables are empty"):
        require_same_rows(GOLD, gold_table(tmp_path / "empty", []), gold_table(tmp_path / "other empty", []))
    with pytest.raises(DifferentRowsError, match="all are empty"):
        digest(*["SELECT 1, 2 WHERE false"] * 2)


def test_every_column_of_the_spec_is_compared() -> None:
    catalog = load_catalog(SHIPPED)
    for table, columns in COLUMNS.items():
        spec = catalog.spec(table)
        assert columns == ((*spec.group_by, *spec.measures) if isinstance(spec, GoldSpec) else tuple(spec.columns))


SPIN = "import time; end = time.process_time() + {s}\nwhile time.process_time() < end: pass\n"


def test_a_process_is_charged_for_its_children_until_the_awaited_file_and_to_its_end(tmp_path: Path) -> None:
    awaited, child = tmp_path / "commit", SPIN.format(s=0.2)
    run_child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    work = f"{run_child}\nopen({str(awaited)!r}, 'w').close()\n{SPIN.format(s=0.4)}"
    measured = measure([sys.executable, "-c", work], os.environ, tmp_path / "log", awaited)
    assert 0.2 <= measured.until.cpu_s < measured.whole.cpu_s - 0.2
    assert measured.until.wall_s < measured.whole.wall_s
    assert measured.whole.cpu_s < 2
    assert measured.whole.peak_mb > 1


def test_a_run_that_fails_or_does_not_commit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FailedRunError, match="did not appear"):
        measure(["true"], os.environ, tmp_path / "log", tmp_path / "commit")
    with pytest.raises(FailedRunError, match=r"exit code 3 .*\n.*no such table"):
        measure(["sh", "-c", "echo no such table >&2; exit 3"], os.environ, tmp_path / "log")


def test_an_interrupted_measurement_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def interrupt(pid: int, options: int) -> None:
        started.append(pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "wait4", interrupt)
    with pytest.raises(KeyboardInterrupt):
        measure(["sleep", "60"], os.environ, tmp_path / "log")
    assert started
    assert not psutil.pid_exists(started[0])


def side(*cpu_s: float) -> Side:
    return Side(tuple(Cost(wall_s=10 * cpu, cpu_s=cpu) for cpu in cpu_s))


def test_the_sides_run_in_turn_and_the_first_round_is_thrown_away() -> None:
    ran: list[str] = []

    def run_of(name: str) -> Callable[[int], Cost]:
        def run(number: int) -> Cost:
            ran.append(f"{name}{number}")
            return Cost(1, 100 if number == 0 else number)

        return run

    sides = interleaved({"A": run_of("A"), "B": run_of("B")}, 2, lambda *_: None)
    assert ran == ["A0", "B0", "A1", "B1", "A2", "B2"]
    assert [cost.cpu_s for cost in sides["A"].costs] == [1, 2]


def test_a_side_is_quoted_by_its_median_and_each_round_is_set_against_its_own() -> None:
    assert (side(1, 9, 2).cpu_s, side(1, 9, 2).wall_s) == (2, 20)
    # A machine that is twice as slow in the second round slows both sides: the ratio holds.
    assert cpu_ratio(side(1, 2), side(2, 4)) == Ratio(median=0.5, least=0.5, greatest=0.5)
    assert wall_ratio(side(1, 3), side(2, 2)) == Ratio(median=1.0, least=0.5, greatest=1.5)


def test_java_springs_the_trap_and_nothing_else_does(tmp_path: Path) -> None:
    trap = JavaTrap(tmp_path / "trap")
    submit = [str(spark_home() / "bin" / "spark-submit"), "--version"]
    for command, springs in ((["true"], False), (["/bin/sh", "-c", "java -version"], True), (submit, True)):
        subprocess.run(command, env=trap.environment(os.environ), check=False, timeout=60)
        assert trap.was_sprung is springs, command


PLACE = Place(Path("/lake"), "/landing")


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "delta.jar").touch()
    monkeypatch.setenv("LAKEHOUSE_JARS", str(tmp_path))


@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize(("table", "job"), zip(CHAIN, ("bronze_ingest", "silver_merge", "gold_aggregate"), strict=True))
def test_both_sides_write_the_same_day_of_the_same_table_with_the_same_jars(table: str, job: str) -> None:
    ours = Millrace().writer(table, PLACE, "2013-01-01")
    arguments = JobArgs.from_argv(ours[ours.index(str(data_plane() / "jobs" / f"{job}.py")) + 1 :])
    assert (arguments.table, arguments.root, arguments.landing) == (table, Path("/lake"), "/landing")
    assert f"{arguments.interval.start:%Y-%m-%d} {arguments.interval.end:%Y-%m-%d}" == "2013-01-01 2013-01-02"
    theirs = Naive(Path("/ivy")).writer(table, PLACE, "2013-01-01")
    script = CLONE / "benchmarks" / "naive" / f"{table.split('.')[0]}.py"
    assert theirs[-4:] == [str(script), "/lake", "/landing", "2013-01-01"]
    assert theirs[theirs.index("--packages") + 1] == DELTA
    assert DELTA in {jar.coordinate for jar in locked_jars("delta")}


@pytest.mark.usefixtures("jars")
def test_n_has_no_setting_beyond_deltas_own_and_imports_nothing_of_millrace() -> None:
    command = Naive(Path("/ivy")).submit()
    stated = {command[at + 1].split("=")[0] for at, part in enumerate(command) if part == "--conf"}
    assert stated == {"spark.jars.ivy", "spark.sql.extensions", "spark.sql.catalog.spark_catalog"}
    scripts = sorted((CLONE / "benchmarks" / "naive").glob("*.py"))
    assert len(scripts) == 5
    for script in scripts:
        imports = [line for line in script.read_text().splitlines() if line.startswith(("import ", "from "))]
        named = {line.split()[1].split(".")[0] for line in imports}
        assert named <= {"__future__", "sys", "pyspark", "delta"}, script


@pytest.mark.usefixtures("jars")
def test_neither_side_uses_a_warm_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    assert "SPARK_REMOTE" not in Millrace().environment()
    assert "SPARK_REMOTE" not in Naive(Path("/ivy")).environment()
