"""`lakehouse gate`: the results of a gate, and overrides of refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from millrace.catalog import load_catalog
from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.errors import ExitCode
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import silver_document, write_specs
from tests.support.ledger.delta_tables import append, create_table

ORDERS = "silver.orders"
RULE = {"expect_table_row_count_to_be_between": {"max_value": 3}, "action": "fail", "reason": "three at most"}
WRONG_USAGE = 2


@pytest.fixture
def gates(settings: Settings) -> Gates:
    """A table of which version 1 passed, and version 2 was refused."""
    tables = write_specs(settings.tables, silver_document(expectations=[RULE]))
    paths = settings.paths
    table_id, spec = create_table(paths.table(ORDERS)), load_catalog(tables).spec(ORDERS)
    gates = Gates(paths)
    for passed in (True, False):
        gates.record(verdict(spec, table_id, append(paths.table(ORDERS)), passed=passed))
    return gates


def verdict(spec: AnySpec, table_id: str, version: int, *, passed: bool) -> GateResult:
    common = {"table": ORDERS, "table_id": table_id, "version": version, "suite_hash": spec.suite_hash}
    rule = spec.table_rules[0]
    check = CheckResult(rule=rule.rule, action="fail", passed=passed, observed=4, expected={"max_value": 3})
    refused = "" if passed else f"{ORDERS} version {version} refused: 4 rows"
    return GateResult(**common, passed=passed, checks=(check,), refused=refused)


@pytest.mark.usefixtures("gates")
def test_it_lists_the_results_and_names_the_override_command(lakehouse: Lakehouse) -> None:
    output = lakehouse("gate", "show", ORDERS).stdout
    first, second = (line.split() for line in output.splitlines() if line.split()[:1] in (["1"], ["2"]))
    assert (first[0], first[3:6]) == ("1", ["passed", "the", "rules"])
    assert (second[0], second[3]) == ("2", "refused")
    assert "expect_table_row_count_to_be_between(max_value=3)" in second
    assert "Readers use version 1." in output
    assert "silver.orders version 2 refused: 4 rows" in output
    assert "lakehouse gate override silver.orders --version 2 --reason" in output


@pytest.mark.usefixtures("gates")
def test_it_writes_the_data_docs_of_the_newest_result(lakehouse: Lakehouse) -> None:
    answer = lakehouse("gate", "docs", ORDERS)
    assert answer.exit_code == 0, answer.stderr
    page = Path(answer.stdout.strip())
    assert (page.is_absolute(), page.name) == (True, f"{ORDERS}.html")
    text = page.read_text()
    assert f"version 2 of {ORDERS}" in text
    assert "Must have less than or equal to" in text, "the rule, in the words of Great Expectations"
    unchecked = lakehouse("gate", "docs", "bronze.orders")
    assert (unchecked.exit_code, "its gate has checked no version" in unchecked.stderr) == (ExitCode.NOT_READY, True)


def test_a_person_overrides_a_refusal_once_and_each_place_says_that_it_is_certified_by_hand(
    lakehouse: Lakehouse, gates: Gates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    answer = lakehouse("gate", "override", ORDERS, "--version", "2", "--reason", "a holiday")
    assert answer.exit_code == 0, answer.stderr
    rule = "expect_table_row_count_to_be_between(max_value=3)"
    assert f"readers use version 2 from now on, though it failed {rule}" in answer.stdout
    assert gates.certified(ORDERS) == 2
    [line] = [line for line in lakehouse("gate", "show", ORDERS).stdout.splitlines() if "certified by hand" in line]
    assert "ann (nobody else was asked)" in line
    assert "a holiday" in line
    [line] = [line for line in lakehouse("tables").stdout.splitlines() if ORDERS in line]
    assert ("certified by hand by ann (nobody else was asked)" in line, "not certified" in line) == (True, False)
    numbers = lakehouse("metrics").stdout
    assert re.search(f'millrace_table_certified_by_hand{{.*table="{ORDERS}"}} 1.0\n', numbers)
    assert lakehouse("views", "--write", str(tmp_path / "views")).exit_code == 0
    index = json.loads((tmp_path / "views" / "certified.json").read_text())
    assert re.fullmatch(r"by ann \(nobody else was asked\) at .* UTC: a holiday", index[ORDERS]["certified_by_hand"])
    again = lakehouse("gate", "override", ORDERS, "--version", "2", "--reason", "a holiday")
    assert (again.exit_code, "version 2 was certified by hand by" in again.stderr) == (ExitCode.BAD_INPUT, True)
    assert sum(1 for recorded in gates.results(ORDERS) if recorded.result.override) == 1


def test_version_and_reason_are_required(lakehouse: Lakehouse, gates: Gates) -> None:
    for arguments in (("--version", "2"), ("--reason", "a holiday")):
        assert lakehouse("gate", "override", ORDERS, *arguments).exit_code == WRONG_USAGE
    assert gates.certified(ORDERS) == 1
