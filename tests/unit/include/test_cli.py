"""The `lakehouse` command, as a person or a script uses it; no Spark is started here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import Result
from deltalake import DeltaTable, write_deltalake
from rich.console import Console
from typer.testing import CliRunner

from include.cli import app
from include.cli_reports import ending, failure_lines, report_table, worst
from include.cli_selection import parse_intervals
from include.cli_views import problem_table
from include.contracts.interval import Interval
from include.contracts.job_report import CheckResult, FileRows, JobReport, RowFates
from include.control.batch import FileFact, Stream, Winner
from include.control.gates import GateResult, Gates
from include.control.ledger import Ledger
from include.errors import ExitCode, Outcome
from include.paths import LakehousePaths
from include.settings import PROJECT
from include.specs.problem import SpecProblem
from include.specs.schema import SCHEMA_FILE, schema_text
from tests.support.delta_tables import intent_of
from tests.support.specs import bronze_document, gold_document, silver_document, write_specs

DAY = Interval(start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 2, tzinfo=UTC))
Lakehouse = Callable[..., Result]


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """The environment of an installation of its own: the sound domain `shop`, nothing landed, no tables."""
    write_specs(tmp_path / "tables", bronze_document(), silver_document(), gold_document())
    (tmp_path / "landing").mkdir()
    return {f"LAKEHOUSE_{name.upper()}": str(tmp_path / name) for name in ("root", "landing", "tables", "jars")}


@pytest.fixture
def lakehouse(place: Mapping[str, str]) -> Lakehouse:
    """The command, run in this process."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), env=dict(place))

    return run


def land_orders(place: Mapping[str, str], day: str = "2013-01-01") -> None:
    """Deliver one file of two orders for `day`."""
    folder = Path(place["LAKEHOUSE_LANDING"]) / "orders" / f"date={day}"
    folder.mkdir(parents=True)
    lines = [f'{{"order_id": "{number}", "amount": 5, "day": "{day}"}}' for number in (1, 2)]
    (folder / "orders.json").write_text("\n".join(lines) + "\n")


def report_of(table: str, outcome: Outcome = Outcome.COMMITTED, **said: Any) -> JobReport:
    """A report with a message that a person could read."""
    said = {"message": f"{table}: {outcome.value}", **said}
    return JobReport(job="j", table=table, outcome=outcome, interval=DAY, run_id="cli", **said)


def _line_of(key: str, file: Path) -> int:
    return next(number for number, line in enumerate(file.read_text().split("\n"), 1) if line.startswith(f"{key}:"))


class TestHelp:
    def test_it_names_every_command_and_the_exit_codes(self, lakehouse: Lakehouse) -> None:
        answer = lakehouse("--help")
        assert answer.exit_code == 0
        for word in ("check", "plan", "run", "tables", "schema", "LAKEHOUSE_ROOT", "14 gate failed"):
            assert word in answer.stdout

    def test_the_command_alone_shows_it_too(self, lakehouse: Lakehouse) -> None:
        assert "Usage: lakehouse" in lakehouse().output

    def test_help_loads_nothing_heavy(self) -> None:
        heavy = "{'pydantic', 'deltalake', 'pyspark', 'yaml'}"
        code = f"import sys, include.cli; sys.exit(','.join({heavy} & set(sys.modules)))"
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=False)
        assert ended.stderr.strip() == ""

    def test_it_is_installed_as_a_command(self) -> None:
        command = Path(sys.executable).parent / "lakehouse"
        ended = subprocess.run([command, "check"], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert "silver.flights" in ended.stdout


class TestCheck:
    def test_sound_specs_are_listed_by_layer(self, lakehouse: Lakehouse) -> None:
        answer = lakehouse("check")
        assert answer.exit_code == 0
        lines = [line.split()[0] for line in answer.stdout.splitlines() if "." in line]
        assert lines[:3] == ["bronze.orders", "silver.orders", "gold.revenue_daily"]
        assert "every spec is fine" in answer.stdout

    def test_all_problems_go_to_stderr_a_line_each(self, lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
        folder = write_specs(Path(place["LAKEHOUSE_TABLES"]), silver_document(kees=1), gold_document(refresh_by="dya"))
        answer = lakehouse("check")
        assert answer.exit_code == ExitCode.BAD_SPEC
        assert answer.stdout == ""
        head, *lines = answer.stderr.strip().split("\n")
        assert head.startswith("2 problems in 2 table specs")
        files = (folder / "gold/shop/revenue_daily.yaml", folder / "silver/shop/orders.yaml")
        places = [f"{file}:{_line_of(word, file)}" for file, word in zip(files, ("refresh_by", "kees"), strict=True)]
        assert [line.strip().split(": ")[0] for line in lines] == places

    def test_another_folder_may_be_named(self, lakehouse: Lakehouse, tmp_path: Path) -> None:
        write_specs(tmp_path / "other", bronze_document("bronze.other"))
        assert "bronze.other" in lakehouse("check", "--tables", str(tmp_path / "other")).stdout

    @pytest.mark.parametrize("make", [True, False])
    def test_a_folder_without_specs_is_a_wrong_folder(self, lakehouse: Lakehouse, tmp_path: Path, make: bool) -> None:
        if make:
            (tmp_path / "none").mkdir()
        answer = lakehouse("check", "--tables", str(tmp_path / "none"))
        assert answer.exit_code == ExitCode.BAD_SPEC
        assert str(tmp_path / "none") in answer.stderr

    def test_a_terminal_gets_the_problems_as_a_table_by_file(self) -> None:
        file = Path("tables/silver/shop/orders.yaml")
        problems = [
            SpecProblem(file, 2, "kees", ["a"], "unknown key", "did you mean 'keys'?"),
            SpecProblem(file, 9, "source", None, "the key is missing", ""),
        ]
        out = Console(file=StringIO(), width=100)
        out.print(problem_table(problems))
        assert isinstance(out.file, StringIO)
        shown = out.file.getvalue()
        assert shown.count(str(file)) == 1
        assert "unknown key: ['a']" in shown
        assert "did you mean 'keys'?" in shown


class TestIntervals:
    @pytest.mark.parametrize(
        ("text", "to", "expected"),
        [
            ("2013-01-01", None, ["[2013-01-01T00:00:00Z, 2013-01-02T00:00:00Z)"]),
            ("2013-01-01", "2013-01-01", ["[2013-01-01T00:00:00Z, 2013-01-02T00:00:00Z)"]),
            (
                "2012-12-31",
                "2013-01-01",
                ["[2012-12-31T00:00:00Z, 2013-01-01T00:00:00Z)", "[2013-01-01T00:00:00Z, 2013-01-02T00:00:00Z)"],
            ),
            ("2013-01-01/2013-01-03", None, ["[2013-01-01T00:00:00Z, 2013-01-03T00:00:00Z)"]),
            ("2013-01-01T06:00Z/2013-01-01T12:00Z", None, ["[2013-01-01T06:00:00Z, 2013-01-01T12:00:00Z)"]),
            ("2013-01-01T00:00-05:00/2013-01-02T00:00-05:00", None, ["[2013-01-01T05:00:00Z, 2013-01-02T05:00:00Z)"]),
        ],
    )
    def test_days_and_instants_are_understood(self, text: str, to: str | None, expected: list[str]) -> None:
        assert [str(one) for one in parse_intervals(text, to)] == expected

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--interval", "yesterday"], "write a day as 2013-01-01"),
            (["--interval", "2013-02-30"], "write a day as 2013-01-01"),
            (["--interval", "2013-01-02", "--to", "2013-01-01"], "is before"),
            (["--interval", "2013-01-01T00:00Z/2013-01-02T00:00Z", "--to", "2013-01-03"], "write a day"),
            (["--interval", "2013-01-01T00:00/2013-01-02T00:00"], "has no time zone"),
            (["--interval", "2013-01-02/2013-01-01"], "must end after it starts"),
            ([], "Missing option"),
        ],
    )
    def test_anything_else_is_wrong_usage_that_says_what_to_type(
        self, lakehouse: Lakehouse, options: list[str], said: str
    ) -> None:
        answer = lakehouse("plan", *options)
        assert answer.exit_code == 2
        assert said in " ".join(answer.stderr.replace("│", " ").split())


class TestPlan:
    def test_bronze_says_its_files_and_the_layers_above_wait_for_it(
        self, lakehouse: Lakehouse, place: Mapping[str, str]
    ) -> None:
        land_orders(place)
        answer = lakehouse("plan", "--domain", "shop", "--interval", "2013-01-01")
        assert answer.exit_code == 0, answer.stderr
        assert "1 new of 1 files" in answer.stdout
        assert "reads what bronze.orders will bring" in answer.stdout
        assert "reads what silver.orders will bring" in answer.stdout

    def test_it_writes_nothing(self, lakehouse: Lakehouse, place: Mapping[str, str], tmp_path: Path) -> None:
        land_orders(place)
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        assert lakehouse("plan", "--interval", "2013-01-01").exit_code == 0
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before

    def test_a_source_that_has_not_come_is_said_of_each_table(self, lakehouse: Lakehouse) -> None:
        answer = lakehouse("plan", "--interval", "2013-01-01")
        assert answer.exit_code == ExitCode.NOT_READY
        assert answer.stdout.count("cannot run: ") == 3
        assert "orders/date=2013-01-01" in answer.stdout

    def test_each_day_of_a_range_is_planned(self, lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
        land_orders(place)
        answer = lakehouse("plan", "--interval", "2013-01-01", "--to", "2013-01-02")
        assert answer.exit_code == ExitCode.NOT_READY
        assert answer.stdout.count("shop [2013-01-0") == 2

    def test_single_tables_may_be_named(self, lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
        land_orders(place)
        answer = lakehouse("plan", "--interval", "2013-01-01", "--table", "bronze.orders")
        assert answer.exit_code == 0
        assert "silver.orders" not in answer.stdout

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--table", "silver.order"], "did you mean 'silver.orders'?"),
            (["--domain", "shops"], "did you mean 'shop'?"),
        ],
    )
    def test_a_name_that_does_not_exist_gets_the_closest_one(
        self, lakehouse: Lakehouse, options: list[str], said: str
    ) -> None:
        answer = lakehouse("plan", "--interval", "2013-01-01", *options)
        assert answer.exit_code == ExitCode.BAD_SPEC
        assert said in answer.stderr

    def test_one_of_several_domains_must_be_named(self, lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
        write_specs(Path(place["LAKEHOUSE_TABLES"]), bronze_document("bronze.trips"), domain="travel")
        answer = lakehouse("plan", "--interval", "2013-01-01")
        assert answer.exit_code == ExitCode.BAD_SPEC
        assert "--domain: shop, travel" in answer.stderr


class TestTables:
    def test_tables_that_were_never_built_are_listed_as_such(self, lakehouse: Lakehouse) -> None:
        answer = lakehouse("tables")
        assert answer.exit_code == 0
        assert answer.stdout.count("not built yet") == 3

    def test_rows_versions_and_quarantine_come_from_the_tables(
        self, lakehouse: Lakehouse, place: Mapping[str, str]
    ) -> None:
        paths = LakehousePaths(Path(place["LAKEHOUSE_ROOT"]))
        for rows in (1200, 34):
            write_deltalake(paths.table("silver.orders"), pa.table({"amount": range(rows)}), mode="append")
        write_deltalake(paths.quarantine("silver.orders"), pa.table({"amount": range(7)}))
        table_id = str(DeltaTable(str(paths.table("silver.orders"))).metadata().id)
        Gates(paths).record(
            GateResult(table="silver.orders", table_id=table_id, version=0, suite_hash="x", passed=True)
        )
        answer = lakehouse("tables")
        assert answer.exit_code == 0, answer.stderr
        words = next(line for line in answer.stdout.splitlines() if "silver.orders" in line).split()
        assert words[1] == "1,234"
        assert words[4:] == ["1", "0", "7", "newest", "version", "is", "not", "certified"]


class TestFiles:
    @pytest.fixture
    def paths(self, place: Mapping[str, str]) -> LakehousePaths:
        """A bronze table whose first batch loaded one file and met a broken one."""
        paths = LakehousePaths(Path(place["LAKEHOUSE_ROOT"]))
        write_deltalake(paths.table("bronze.orders"), pa.table({"amount": [1]}))
        table_id = str(DeltaTable(str(paths.table("bronze.orders"))).metadata().id)
        ledger, intent = Ledger(paths), intent_of(table_id, 1, stream=Stream("bronze.orders"))
        ledger.record_intent(intent, [FileFact(path="orders/a.json", size=1200, mtime_ns=1)])
        ledger.record_committed([Winner(intent, 4)])
        ledger.record_closed(
            Winner(intent, 4), RowFates(), {"orders/a.json": FileRows(read=34, written=31, quarantined=3)}
        )
        broken = FileFact(path="orders/b.json", size=7, mtime_ns=1, defect="truncated gzip: [it] ends")
        ledger.record_failed("bronze.orders", table_id, intent.interval_start, [broken])
        return paths

    def test_each_file_has_its_batch_and_the_fates_of_its_rows(
        self, lakehouse: Lakehouse, paths: LakehousePaths
    ) -> None:
        assert paths.ops("files").exists()
        answer = lakehouse("files", "bronze.orders")
        assert answer.exit_code == 0, answer.stderr
        words = next(line for line in answer.stdout.splitlines() if "orders/a.json" in line).split()
        assert (words[1], words[4:]) == ("loaded", ["1.2", "kB", "1", "1", "4", "34", "31", "0", "3"])
        assert "truncated gzip: [it] ends" in answer.stdout
        assert "2 files: 1 loaded, 1 failed" in answer.stdout

    def test_files_can_be_chosen_by_status_and_interval(self, lakehouse: Lakehouse, paths: LakehousePaths) -> None:
        assert paths.ops("files").exists()
        assert "1 files: 1 failed" in lakehouse("files", "bronze.orders", "--status", "failed").stdout
        assert "2 files:" in lakehouse("files", "bronze.orders", "--interval", "2013-01-01").stdout
        assert "0 files" in lakehouse("files", "bronze.orders", "--interval", "2013-01-02").stdout

    def test_a_table_that_was_never_built_has_no_files(self, lakehouse: Lakehouse) -> None:
        answer = lakehouse("files", "bronze.orders")
        assert (answer.exit_code, "0 files" in answer.stdout) == (0, True)

    def test_a_table_that_loads_no_files_is_refused(self, lakehouse: Lakehouse) -> None:
        answer = lakehouse("files", "silver.orders")
        assert answer.exit_code == ExitCode.BAD_SPEC
        assert "silver.orders loads no files, it reads bronze.orders" in answer.stderr


class TestSchema:
    def test_the_schema_file_is_current(self) -> None:
        assert SCHEMA_FILE.read_text() == schema_text(), "run `lakehouse schema --write`"

    def test_it_is_printed_as_it_is_kept(self, lakehouse: Lakehouse) -> None:
        assert lakehouse("schema").stdout == schema_text()


class TestReports:
    def test_the_worst_ending_is_the_exit_code(self) -> None:
        assert worst([]) is ExitCode.OK
        assert worst(ExitCode) is ExitCode.FAILED
        assert worst([ExitCode.NOT_READY, ExitCode.BAD_INPUT, ExitCode.CONFLICT]) is ExitCode.BAD_INPUT

    def test_a_committed_version_that_its_gate_refused_is_a_failed_gate(self) -> None:
        refused = CheckResult(rule="r(a)", action="fail", passed=False, reason="why", observed=3, unexpected_rows=1200)
        warned = CheckResult(rule="w(a)", action="warn", passed=False)
        assert ending(report_of("silver.a", checks=(warned,))) is ExitCode.OK
        assert ending(report_of("silver.a", checks=(warned, refused))) is ExitCode.GATE_FAILED
        assert list(failure_lines([report_of("silver.a", checks=(warned, refused))]))[1:] == [
            "silver.a: refused by r(a): why (observed 3, 1,200 rows)"
        ]

    def test_failures_name_the_cause_and_not_the_tables_that_waited_for_it(self) -> None:
        reports = [
            report_of("bronze.a", Outcome.BAD_INPUT, message="bronze.a: broken file", error_class="BadInputError"),
            report_of("silver.a", Outcome.NOT_READY),
            report_of("bronze.b", Outcome.NOT_READY, message="no folder", error_class="NotReadyError"),
        ]
        assert list(failure_lines(reports)) == ["bronze.a: broken file", "bronze.b: no folder"]

    def test_a_stack_trace_stays_in_the_log(self) -> None:
        message = "silver.a: Py4JJavaError: it broke\n: org.X: why\n\tat org.Y(Z.scala:1)\n\tat org.Z"
        failed = report_of("silver.a", Outcome.FAILED, message=message)
        assert list(failure_lines([failed])) == ["silver.a: Py4JJavaError: it broke\n: org.X: why"]

    def test_every_table_has_its_line_whether_it_ran_or_not(self) -> None:
        report = report_of("a.x", rows=RowFates(read=1234, applied=1234), version=3, certified_version=3)
        again = report.model_copy(update={"table": "a.y", "outcome": Outcome.NO_OP})
        out = Console(file=StringIO(), width=160)
        out.print(report_table([report, again], ["a.x", "a.y", "a.z"]))
        assert isinstance(out.file, StringIO)
        ran, had_nothing_new, did_not_run = (line.split() for line in out.file.getvalue().splitlines()[3:6])
        assert ran == ["a.x", "committed", "1,234", "1,234", "0", "0", "0", "0", "3", "3", "0.0"]
        assert had_nothing_new == ["a.y", "no", "op", *"------", "3", "3", "0.0"]
        assert did_not_run[:3] == ["a.z", "not", "run"]


@pytest.fixture
def open_port() -> Iterator[int]:
    """A port that answers, though no Spark is behind it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


class TestRun:
    """The driver is a real process; no Spark is behind the address that it is sent to."""

    @staticmethod
    def run(place: Mapping[str, str], remote: str) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).parent / "lakehouse", "run", "--interval", "2013-01-01"]
        environment = {**os.environ, **place, "SPARK_REMOTE": remote}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    def test_a_source_that_has_not_come_ends_with_its_exit_code_and_the_log(
        self, place: Mapping[str, str], open_port: int
    ) -> None:
        ended = self.run(place, f"sc://127.0.0.1:{open_port}")
        assert ended.returncode == ExitCode.NOT_READY, ended.stdout + ended.stderr
        failures, log = ended.stderr.strip().split("\ndriver log: ")
        assert "orders/date=2013-01-01" in failures
        assert "silver.orders" not in failures
        assert Path(log).is_relative_to(place["LAKEHOUSE_ROOT"])
        assert Path(log).exists()
        for table in ("bronze.orders", "silver.orders", "gold.revenue_daily"):
            assert ended.stdout.count(table) == 2

    def test_a_server_that_is_down_is_said_at_once(self, place: Mapping[str, str]) -> None:
        ended = self.run(place, "sc://127.0.0.1:1")
        assert ended.returncode == ExitCode.SPARK_UNAVAILABLE, ended.stdout + ended.stderr
        assert "no Spark Connect server answers at 127.0.0.1:1" in ended.stderr

    def test_without_jars_there_is_no_spark_to_start(self, place: Mapping[str, str]) -> None:
        ended = self.run(place, "")
        assert ended.returncode == ExitCode.SPARK_UNAVAILABLE
        assert "run `make setup`" in ended.stderr
