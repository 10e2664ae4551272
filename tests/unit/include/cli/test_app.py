"""The `lakehouse` command, as a person or a script uses it; no Spark is started here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from rich.console import Console

from include.cli.views import problem_table
from include.control.gates.gates import Gates
from include.control.gates.result import GateResult
from include.errors import ExitCode
from include.paths import LakehousePaths
from include.settings import PROJECT
from include.specs.problem import SpecProblem
from include.specs.schema import SCHEMA_FILE, schema_text
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, gold_document, query_document, silver_document, write_specs
from tests.support.ledger.delta_tables import commit_file
from tests.support.ledger.quarantine_rows import quarantine, refused


def _line_of(key: str, file: Path) -> int:
    return next(number for number, line in enumerate(file.read_text().split("\n"), 1) if line.startswith(f"{key}:"))


class TestHelp:
    def test_it_names_every_command_and_the_exit_codes(self, lakehouse: Lakehouse) -> None:
        answer = lakehouse("--help")
        assert answer.exit_code == 0
        for word in ("check", "plan", "run", "tables", "files", "replay", "schema", "LAKEHOUSE_ROOT", "14 gate failed"):
            assert word in answer.stdout

    def test_the_command_without_arguments_shows_help(self, lakehouse: Lakehouse) -> None:
        assert "Usage: lakehouse" in lakehouse().output

    def test_help_loads_nothing_heavy(self) -> None:
        heavy = "{'pydantic', 'deltalake', 'pyspark', 'yaml'}"
        code = f"import sys, include.cli.app; sys.exit(','.join({heavy} & set(sys.modules)))"
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

    def test_tables_that_are_not_built_are_not_maintained_and_start_no_spark(self, lakehouse: Lakehouse) -> None:
        answer = lakehouse("maintain")
        assert (answer.exit_code, answer.stdout.count("not built yet")) == (0, 3)

    def test_a_table_whose_spec_is_wrong_is_not_maintained_and_that_is_an_error(
        self, lakehouse: Lakehouse, place: Mapping[str, str]
    ) -> None:
        folder = write_specs(Path(place["LAKEHOUSE_TABLES"]), silver_document(kees=1))
        answer = lakehouse("maintain", "--table", "silver.orders")
        assert (answer.exit_code, answer.stdout) == (ExitCode.BAD_SPEC, "")
        cause, where = answer.stderr.strip().split("\n")
        assert cause == "silver.orders: its spec is wrong"
        assert f"{folder / 'silver/shop/orders.yaml'}:{_line_of('kees', folder / 'silver/shop/orders.yaml')}" in where
        whole = lakehouse("maintain")
        assert (whole.exit_code, whole.stdout.count("not built yet")) == (ExitCode.BAD_SPEC, 2)

    @pytest.mark.parametrize("command", [["tables"], ["conflicts"], ["quarantine", "list"], ["files", "bronze.orders"]])
    def test_a_missing_root_is_named(self, lakehouse: Lakehouse, place: Mapping[str, str], command: list[str]) -> None:
        assert f"There is no folder {place['LAKEHOUSE_ROOT']}" in lakehouse(*command).stdout
        Path(place["LAKEHOUSE_ROOT"]).mkdir()
        assert "There is no folder" not in lakehouse(*command).stdout

    def test_all_problems_go_to_stderr_one_per_line(self, lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
        folder = write_specs(Path(place["LAKEHOUSE_TABLES"]), silver_document(kees=1), gold_document(refresh_by="dya"))
        answer = lakehouse("check")
        assert answer.exit_code == ExitCode.BAD_SPEC
        assert answer.stdout == ""
        head, *lines = answer.stderr.strip().split("\n")
        assert head.startswith("2 problems in 2 table specs")
        files = (folder / "gold/shop/revenue_daily.yaml", folder / "silver/shop/orders.yaml")
        places = [f"{file}:{_line_of(word, file)}" for file, word in zip(files, ("refresh_by", "kees"), strict=True)]
        assert [line.strip().split(": ")[0] for line in lines] == places

    def test_a_row_of_a_query_is_what_the_query_says(self, lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
        query = query_document("gold.orders_of_day", query="SELECT day, order_id FROM o", refresh_by="day")
        write_specs(Path(place["LAKEHOUSE_TABLES"]), bronze_document(), silver_document(), query)
        answer = lakehouse("check")
        assert answer.exit_code == 0, answer.stderr
        rows = {line.split()[0]: line for line in answer.stdout.splitlines() if line.strip()}
        assert "as its query says" in rows["gold.orders_of_day"]
        assert "as received" in rows["bronze.orders"]

    def test_a_program_gets_all_problems_as_json(self, lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
        folder = write_specs(Path(place["LAKEHOUSE_TABLES"]), silver_document(kees={"a": [1, None]}))
        answer = lakehouse("check", "--json")
        assert answer.exit_code == ExitCode.BAD_SPEC
        file = folder / "silver/shop/orders.yaml"
        assert json.loads(answer.stdout) == [
            {
                "file": str(file),
                "line": _line_of("kees", file),
                "key": "kees",
                "value": {"a": [1, None]},
                "message": "unknown key",
                "fix": "did you mean 'keys'?",
            }
        ]
        assert answer.stderr.startswith("1 problem in 1 table spec")

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

    def test_a_damaged_table_is_named_and_stops_no_other(self, lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
        paths = LakehousePaths(Path(place["LAKEHOUSE_ROOT"]))
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


class TestSchema:
    def test_the_schema_file_is_current(self) -> None:
        assert SCHEMA_FILE.read_text() == schema_text(), "run `lakehouse schema --write`"

    def test_the_printed_schema_is_that_of_the_file(self, lakehouse: Lakehouse) -> None:
        assert lakehouse("schema").stdout == schema_text()


class TestOneWrongSpec:
    """Commands about valid tables end as usual, and name the wrong spec once."""

    @pytest.fixture
    def wrong(self, place: Mapping[str, str]) -> Path:
        """A wrong silver spec in another domain than the valid specs."""
        folder = write_specs(Path(place["LAKEHOUSE_TABLES"]), bronze_document("bronze.stock"), domain="store")
        without_keys = silver_document("silver.stock", source="bronze.stock")
        del without_keys["keys"]
        write_specs(folder, {**without_keys, "keyz": ["id"]}, domain="store")
        return folder / "silver/store/stock.yaml"

    @pytest.mark.parametrize(
        "command",
        [
            "tables",
            "gate show silver.orders",
            "gate show silver.stock",
            "quarantine list",
            "quarantine show silver.stock",
            "conflicts",
            "files bronze.stock",
        ],
    )
    def test_commands_that_need_no_spec_show_their_results(
        self, lakehouse: Lakehouse, wrong: Path, command: str
    ) -> None:
        answer = lakehouse(*command.split())
        assert answer.exit_code == ExitCode.OK, answer.output
        assert str(wrong) not in answer.stdout
        assert answer.stderr.count(str(wrong)) == 1
        assert "keyz: unknown key" in answer.stderr, "not that keys is missing, which follows from it"

    def test_the_list_of_tables_marks_the_table_with_the_wrong_spec(self, lakehouse: Lakehouse, wrong: Path) -> None:
        [line] = [line for line in lakehouse("tables").stdout.splitlines() if "silver.stock" in line]
        assert "its spec is wrong" in line

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            (("--domain", "shop"), ExitCode.NOT_READY),
            (("--domain", "store"), ExitCode.BAD_SPEC),
            (("--domain", "store", "--table", "bronze.stock"), ExitCode.NOT_READY),
        ],
    )
    def test_the_exit_code_of_a_plan_depends_only_on_its_own_tables(
        self, lakehouse: Lakehouse, wrong: Path, options: tuple[str, ...], code: ExitCode
    ) -> None:
        answer = lakehouse("plan", "--interval", "2013-01-01", *options)
        assert answer.exit_code == code, answer.output
        assert answer.output.count("keyz:") == 1
        assert answer.output.count("bronze.") > 0

    def test_a_command_about_its_table_fails_and_names_it_once(self, lakehouse: Lakehouse, wrong: Path) -> None:
        answer = lakehouse("files", "silver.stock")
        assert (answer.exit_code, answer.output.count("keyz:")) == (ExitCode.BAD_SPEC, 1)
