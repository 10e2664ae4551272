"""The `lakehouse` command, as a person or a script uses it; no Spark is started here."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from rich.console import Console

from embedded.clone import CLONE, DEMO
from millrace.cli.views import problem_table
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.errors import ExitCode
from millrace.paths import SCHEMA_FILE
from millrace.settings import Settings
from millrace.specs.problem import SpecProblem
from millrace.specs.schema import schema_text
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, gold_document, query_document, silver_document, write_specs
from tests.support.ledger.delta_tables import commit_file
from tests.support.ledger.quarantine_rows import quarantine, refused


def _line_of(key: str, file: Path) -> int:
    return next(number for number, line in enumerate(file.read_text().split("\n"), 1) if line.startswith(f"{key}:"))


EMPTY = {
    "tables": "not built yet",
    "conflicts": "No run had to wait or retry because of another run.\n",
    "quarantine list": "No row is in quarantine.",
    "files bronze.orders": "0 files",
}
"""Command -> what it says of a lakehouse without tables."""

UNKNOWN = {
    "diff gold.revenu_daily": "gold.revenue_daily",
    "gate show silver.order": "silver.orders",
    "gate override silver.order --version 2 --reason so": "silver.orders",
    "conflicts --table silver.others": "silver.orders",
    "quarantine show silver.ordres": "silver.orders",
    "plan --interval 2013-01-01 --table silver.order": "did you mean 'silver.orders'?",
    "plan --interval 2013-01-01 --domain shops": "did you mean 'shop'?",
}
"""Command with a name that does not exist -> the closest name."""


class TestNames:
    @pytest.mark.parametrize(("command", "closest"), UNKNOWN.items())
    def test_an_unknown_name_is_wrong_usage_with_a_hint(self, lakehouse: Lakehouse, command: str, closest: str) -> None:
        answer = lakehouse(*command.split())
        assert (answer.exit_code, closest in answer.stderr) == (ExitCode.WRONG_USAGE, True), answer.stderr

    def test_an_empty_lakehouse_has_nothing_to_show_and_a_missing_root_is_named(
        self, lakehouse: Lakehouse, settings: Settings
    ) -> None:
        missing = f"There is no folder {settings.root}"
        for command, text in EMPTY.items():
            answer = lakehouse(*command.split())
            assert (answer.exit_code, text in answer.stdout, missing in answer.stdout) == (0, True, True), command
        settings.root.mkdir()
        for command, text in EMPTY.items():
            answer = lakehouse(*command.split())
            assert (text in answer.stdout, missing in answer.stdout) == (True, False), command
        assert "No version is certified." in lakehouse("gate", "show", "silver.orders").stdout
        shown = lakehouse("quarantine", "show", "silver.orders").stdout
        assert "No row of silver.orders in quarantine is of this kind" in shown


def test_help_loads_nothing_heavy() -> None:
    heavy = "{'pydantic', 'deltalake', 'pyspark', 'yaml'}"
    code = f"import sys, millrace.cli.app; sys.exit(','.join({heavy} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=CLONE, check=False)
    assert ended.stderr.strip() == ""


@pytest.mark.parametrize(
    ("modules", "extras"),
    [
        ("millrace.cli.runs.intervals, millrace.cli.runs.table_plans, millrace.reading.certified",
         "{'airflow', 'pyspark', 'confluent_kafka', 'polars'}"),
        ("millrace_spark.layers.bronze.bronze", "{'airflow', 'confluent_kafka'}"),
    ],
)  # fmt: skip
def test_what_needs_no_extra_loads_none(modules: str, extras: str) -> None:
    code = f"import sys, {modules}; sys.exit(','.join({extras} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stderr.strip() == ""


class TestCheck:
    def test_a_table_whose_spec_is_wrong_is_not_maintained_and_that_is_an_error(
        self, lakehouse: Lakehouse, settings: Settings
    ) -> None:
        folder = write_specs(settings.tables, silver_document(kees=1))
        answer = lakehouse("maintain", "--table", "silver.orders")
        assert (answer.exit_code, answer.stdout) == (ExitCode.BAD_SPEC, "")
        cause, where = answer.stderr.strip().split("\n")
        assert cause == "silver.orders: its spec is wrong"
        assert f"{folder / 'silver/shop/orders.yaml'}:{_line_of('kees', folder / 'silver/shop/orders.yaml')}" in where
        whole = lakehouse("maintain")
        assert (whole.exit_code, whole.stdout.count("not built yet")) == (ExitCode.BAD_SPEC, 2)
        others = lakehouse("maintain", "--table", "bronze.orders", "--table", "gold.revenue_daily")
        assert (others.exit_code, others.stdout.count("not built yet")) == (ExitCode.OK, 2), "no Spark is started"

    def test_all_problems_go_to_stderr_one_per_line_or_as_json(self, lakehouse: Lakehouse, settings: Settings) -> None:
        documents = gold_document(refresh_by="dya"), silver_document(kees={"a": [1, None]})
        folder = write_specs(settings.tables, *documents)
        gold, silver = (folder / "gold/shop/revenue_daily.yaml", folder / "silver/shop/orders.yaml")
        answer = lakehouse("check")
        assert (answer.exit_code, answer.stdout) == (ExitCode.BAD_SPEC, "")
        head, *lines = answer.stderr.strip().split("\n")
        assert head.startswith("2 problems in 2 table specs")
        places = [f"{gold}:{_line_of('refresh_by', gold)}", f"{silver}:{_line_of('kees', silver)}"]
        assert [line.strip().split(": ")[0] for line in lines] == places
        answer = lakehouse("check", "--json")
        assert (answer.exit_code, answer.stderr.startswith("2 problems")) == (ExitCode.BAD_SPEC, True)
        value = {"key": "kees", "value": {"a": [1, None]}, "message": "unknown key", "fix": "did you mean 'keys'?"}
        assert json.loads(answer.stdout)[1] == {"file": str(silver), "line": _line_of("kees", silver), **value}

    def test_sound_specs_are_listed_by_layer_with_what_a_row_is(self, lakehouse: Lakehouse, tmp_path: Path) -> None:
        query = query_document("gold.orders_of_day", query="SELECT day, order_id FROM o", refresh_by="day")
        other = write_specs(tmp_path / "other", bronze_document(), silver_document(), query)
        answer = lakehouse("check", "--tables", str(other))
        assert answer.exit_code == 0, answer.stderr
        rows = {line.split()[0]: line for line in answer.stdout.splitlines() if "." in line}
        assert list(rows)[:3] == ["bronze.orders", "silver.orders", "gold.orders_of_day"]
        assert "as its query says" in rows["gold.orders_of_day"]
        assert "as received" in rows["bronze.orders"]
        assert "every spec is fine" in answer.stdout

    def test_a_folder_without_specs_is_a_wrong_folder(self, lakehouse: Lakehouse, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        for folder in (tmp_path / "none", tmp_path / "empty"):
            answer = lakehouse("check", "--tables", str(folder))
            assert (answer.exit_code, str(folder) in answer.stderr) == (ExitCode.BAD_SPEC, True)

    def test_a_terminal_gets_the_problems_as_a_table_by_file(self) -> None:
        file = Path("tables/silver/shop/orders.yaml")
        problems = [
            SpecProblem(file, 2, "kees", ["a"], "unknown key", "did you mean 'keys'?"),
            SpecProblem(file, 9, "source", None, "the key is missing", ""),
        ]
        out = StringIO()
        Console(file=out, width=100).print(problem_table(problems))
        shown = out.getvalue()
        assert shown.count(str(file)) == 1
        assert "unknown key: ['a']" in shown
        assert "did you mean 'keys'?" in shown


class TestTables:
    def test_rows_versions_and_quarantine_come_from_the_tables(self, lakehouse: Lakehouse, settings: Settings) -> None:
        paths = settings.paths
        for rows in (1200, 34):
            write_deltalake(paths.table("silver.orders"), pa.table({"amount": range(rows)}), mode="append")
        rescued = ["{}", None, "{}"]
        write_deltalake(paths.table("bronze.orders"), pa.table({"amount": range(3), "_rescued": rescued}))
        quarantine(paths, "silver.orders", *(refused(number, "too low") for number in range(7)))
        table_id = str(DeltaTable(str(paths.table("silver.orders"))).metadata().id)
        Gates(paths).record(
            GateResult(table="silver.orders", table_id=table_id, version=0, suite_hash="x", passed=True)
        )
        answer = lakehouse("tables")
        assert answer.exit_code == 0, answer.stderr
        words = next(line for line in answer.stdout.splitlines() if "silver.orders" in line).split()
        assert words[1] == "1,234"
        assert words[4:] == ["1", "0", "7", "-", "-", "newest", "version", "is", "not", "certified"]
        words = next(line for line in answer.stdout.splitlines() if "bronze.orders" in line).split()
        assert words[4:8] == ["0", "-", "0", "2"]

    def test_a_damaged_table_is_named_and_stops_no_other(self, lakehouse: Lakehouse, settings: Settings) -> None:
        paths = settings.paths
        for table in ("bronze.orders", "silver.orders"):
            write_deltalake(paths.table(table), pa.table({"amount": range(7)}))
        quarantine(paths, "bronze.orders", refused(1, "too low"))
        commit_file(paths.table("bronze.orders"), 0).write_text("{")
        for command in (["tables"], ["quarantine", "list"]):
            answer = lakehouse(*command)
            assert answer.exit_code == 1
            assert "bronze/orders" in "".join(answer.stdout.split())
            assert "Do not write" in " ".join(answer.stdout.split())
        listed = lakehouse("tables").stdout.splitlines()
        assert next(line for line in listed if "silver.orders" in line).split()[1] == "7"
        assert any("bronze.orders" in line for line in listed)


def test_the_schema_file_is_current_and_is_printed(lakehouse: Lakehouse) -> None:
    shipped = DEMO / SCHEMA_FILE
    assert lakehouse("schema").stdout == shipped.read_text() == schema_text(), "run `lakehouse schema --write`"


class TestOneWrongSpec:
    """Commands about valid tables end as usual, and name the wrong spec once."""

    @pytest.fixture
    def wrong(self, settings: Settings) -> Path:
        """A wrong silver spec in another domain than the valid specs."""
        folder = write_specs(settings.tables, bronze_document("bronze.stock"), domain="store")
        without_keys = silver_document("silver.stock", source="bronze.stock")
        del without_keys["keys"]
        write_specs(folder, {**without_keys, "keyz": ["id"]}, domain="store")
        return folder / "silver/store/stock.yaml"

    def test_only_commands_that_need_the_spec_fail_and_each_names_it(self, lakehouse: Lakehouse, wrong: Path) -> None:
        for command in (
            "gate show silver.orders",
            "gate show silver.stock",
            "quarantine list",
            "quarantine show silver.stock",
            "conflicts",
            "files bronze.stock",
            "tables",
        ):
            answer = lakehouse(*command.split())
            assert answer.exit_code == ExitCode.OK, answer.output
            assert str(wrong) not in answer.stdout
            assert answer.stderr.count(str(wrong)) == 1
            assert "keyz: unknown key" in answer.stderr, "not that keys is missing, which follows from it"
        [line] = [line for line in answer.stdout.splitlines() if "silver.stock" in line]
        assert "its spec is wrong" in line
        answer = lakehouse("files", "silver.stock")
        assert (answer.exit_code, answer.output.count("keyz:")) == (ExitCode.BAD_SPEC, 1)

    def test_the_exit_code_of_a_plan_depends_only_on_its_own_tables(self, lakehouse: Lakehouse, wrong: Path) -> None:
        for options, code in (
            ("--domain shop", ExitCode.NOT_READY),
            ("--domain store", ExitCode.BAD_SPEC),
            ("--domain store --table bronze.stock", ExitCode.NOT_READY),
        ):
            answer = lakehouse("plan", "--interval", "2013-01-01", *options.split())
            assert wrong.exists()
            assert (answer.exit_code, answer.output.count("keyz:")) == (code, 1), answer.output
            assert answer.output.count("bronze.") > 0
