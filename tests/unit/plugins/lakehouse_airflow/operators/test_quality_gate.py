"""The gate decides from the result of the written version, and announces a version once, if its own run made it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import Asset
from airflow.sdk.definitions.asset import AssetUniqueKey
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.context import OutletEventAccessor
from deltalake import write_deltalake

from lakehouse_airflow.assets import interval_asset, table_asset
from lakehouse_airflow.operators import quality_gate
from lakehouse_airflow.operators.gate_decision import findings_in
from lakehouse_airflow.operators.quality_gate import QualityGateOperator
from lakehouse_airflow.ui.links import CHECKED_KEY, FAILED_KEY
from millrace.contracts.job.args import CheckedVersion, Job, JobArgs
from millrace.contracts.job.report import CheckResult
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import ConflictError, Outcome
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_document, write_specs
from tests.support.ledger.small_lake import commit_batch, judge
from tests.unit.plugins.lakehouse_airflow.operators.conftest import DAY, House

MakeRun = Callable[..., dict[str, Any]]
ASSET, KEYED = table_asset("bronze.orders"), interval_asset("bronze.orders")
RUN = "scheduled__2013-01-06T00:00:00+00:00"
FORM = (
    "/lakehouse/trigger/gate_override?table=bronze.orders&version=1"
    "&task=shop%2Fscheduled__2013-01-06T00%3A00%3A00%2B00%3A00%2Forders_gate"
)

LINKS = {
    "Table": "/lakehouse/tables/bronze.orders",
    "Run": "/lakehouse/runs/shop/scheduled__2013-01-06T00%3A00%3A00%2B00%3A00",
    "Data Docs": "/lakehouse/data-docs/shop/scheduled__2013-01-06T00%3A00%3A00%2B00%3A00/bronze.orders",
    "Gate override": "",
}


@pytest.fixture
def earlier_events(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The versions that this very run has announced before, as Airflow's database would say."""
    versions: set[int] = set()
    monkeypatch.setattr(quality_gate, "is_announced", lambda context, asset, version, by_any_run: version in versions)
    return versions


OTHER = Asset("another_outlet")
OTHER_TABLE = [table_asset("silver.orders"), interval_asset("silver.orders")]


def gate(**given: Any) -> QualityGateOperator:
    outlets = [ASSET, KEYED, OTHER, *OTHER_TABLE]
    return QualityGateOperator(task_id="orders_gate", table="bronze.orders", outlets=outlets, **given)


def left(version: int | None, outcome: Outcome = Outcome.COMMITTED) -> dict[str, Any]:
    rows = {"read": 1, "applied": 1}
    return TaskResult(
        outcome=outcome, message="", table="bronze.orders", batch_seq=version, version=version, rows=rows
    ).to_xcom()


def events() -> dict[Any, Any]:
    return {asset: OutletEventAccessor(key=AssetUniqueKey.from_asset(asset)) for asset in (ASSET, KEYED)}


def passed_batch(house: House, run_id: str = RUN) -> int:
    house.deliver()
    winner = commit_batch(house.root, house.landing, house.spec, DAY, run_id)
    judge(house.root, house.spec, winner)
    return winner.version


@pytest.mark.usefixtures("earlier_events")
def test_a_passed_version_of_this_run_is_announced_with_interval_version_and_rows(
    house: House, run_of: MakeRun
) -> None:
    version = passed_batch(house)
    task, emitted = gate(), events()
    context = run_of(left=left(version), events=emitted)
    result = task.execute(context)
    assert (result["version"], result["certified_version"]) == (version, version)
    checked = {"table": "bronze.orders", "version": version, "suite_hash": house.spec.suite_hash}
    assert context["ti"].pushed == {CHECKED_KEY: checked}
    assert links_of(task) == LINKS
    assert task.outlets == [ASSET, KEYED, OTHER]
    assert (emitted[ASSET].partition_keys, emitted[KEYED].partition_keys) == (set(), {"2013-01-05T00:00:00"})
    assert (
        emitted[KEYED].extra
        == emitted[ASSET].extra
        == {
            "summary": f"bronze.orders version {version} for 2013-01-05: 1 row read, 1 row applied",
            "interval_start": "2013-01-05T00:00:00+00:00",
            "interval_end": "2013-01-06T00:00:00+00:00",
            "version": version,
            "rows": {"read": 1, "applied": 1},
            "batch_seq": version,
        }
    )


@pytest.mark.parametrize("maker", [RUN, "another run"])
def test_what_a_writer_found_done_is_announced_once_if_its_own_run_had_made_it(
    house: House, run_of: MakeRun, earlier_events: set[int], maker: str
) -> None:
    version, task = passed_batch(house, run_id=maker), gate()
    task.execute(run_of(left=left(version, Outcome.NO_OP), events=events()))
    assert task.outlets == ([ASSET, KEYED, OTHER] if maker == RUN else [OTHER]), "only those of the table are withheld"
    earlier_events.add(version)
    cleared = gate()
    cleared.execute(run_of(left=left(version), events=events()))
    assert cleared.outlets == [OTHER]


def test_where_there_is_no_version_nothing_is_checked_and_only_table_and_run_are_linked(
    house: House, run_of: MakeRun
) -> None:
    result = gate().execute(run_of(left=None))
    assert result["message"] == "bronze.orders has no version yet that could be checked"
    task, context = gate(), run_of(left=left(None, Outcome.NO_OP))
    assert task.execute(context)["outcome"] == "no_op"
    assert (task.outlets, context["ti"].pushed) == ([OTHER], {})
    assert [name for name, path in links_of(task).items() if path] == ["Table", "Run"]


def test_a_refused_version_names_expectation_table_version_and_what_readers_see(
    house: House, run_of: MakeRun, capfd: pytest.CaptureFixture[str]
) -> None:
    passed_batch(house)
    house.deliver("b.json")
    winner = commit_batch(house.root, house.landing, house.spec, DAY, RUN)
    judge(house.root, house.spec, winner, passed=False)
    task, context = gate(), run_of(left=left(winner.version))
    with pytest.raises(AirflowFailException) as refused:
        task.execute(context)
    pushed = context["ti"].pushed
    assert (pushed[FAILED_KEY]["outcome"], pushed[FAILED_KEY]["version"], pushed[CHECKED_KEY]["version"]) == (
        "gate_failed", 2, 2
    )  # fmt: skip
    assert links_of(task) == {**LINKS, "Gate override": FORM.replace("version=1", "version=2")}
    assert str(refused.value).startswith(
        "bronze.orders version 2 refused: expect_table_row_count_to_be_between() observed 0; readers stay on version 1"
    )
    expected = "failed (fail): expect_table_row_count_to_be_between(min_value=1), observed 0: no empty days"
    assert expected in capfd.readouterr().out
    with pytest.raises(AirflowFailException, match=r"`LAKEHOUSE_TABLES=\S+ lakehouse gate override bronze.orders"):
        gate(specs=str(house.folder / "tables")).execute(run_of(left=None))


def test_a_refused_version_below_the_certified_one_says_which_task_to_clear(house: House, run_of: MakeRun) -> None:
    house.deliver()
    judge(house.root, house.spec, commit_batch(house.root, house.landing, house.spec, DAY, RUN), passed=False)
    house.deliver("b.json")
    judge(house.root, house.spec, commit_batch(house.root, house.landing, house.spec, DAY, "another run"))
    task = gate()
    with pytest.raises(AirflowFailException) as failed:
        task.execute(run_of(left=left(1)))
    assert str(failed.value) == (
        "bronze.orders: version 1 was refused, but readers use version 2 by now, which contains its batches\n"
        "To continue this run, clear the task that writes the table, with the tasks after it."
    )
    assert not task.may_be_overridden


@pytest.mark.parametrize("upstream", [None, "text", {"table": "bronze.returns", "version": 9}])
def test_without_a_writer_upstream_it_decides_about_the_last_batch_and_announces_it_once(
    house: House, run_of: MakeRun, earlier_events: set[int], upstream: Any
) -> None:
    version = passed_batch(house, run_id="lakehouse run")
    task, emitted = gate(), events()
    assert task.execute(run_of(left=upstream, events=emitted))["version"] == version
    assert (task.outlets, emitted[ASSET].extra["version"]) == ([ASSET, KEYED, OTHER], version)
    earlier_events.add(version)
    task.execute(run_of(left=upstream, events=events()))
    assert task.outlets == [OTHER]


@pytest.mark.usefixtures("warm_server", "earlier_events")
def test_a_table_of_another_tool_is_checked_by_the_spec_of_its_own_folder(
    house: House, run_of: MakeRun, tmp_path: Path
) -> None:
    write_deltalake(str(LakehousePaths(house.root).table("bronze.partners")), pa.table({"order_id": ["1"]}))
    specs = write_specs(tmp_path / "others", bronze_document("bronze.partners"))
    house.job("report(Outcome.NO_OP, 'passed', version=0, certified_version=0)", Job.QUALITY_GATE)
    asset = table_asset("bronze.partners")
    task = QualityGateOperator(task_id="gate", table="bronze.partners", specs=str(specs), outlets=[asset])
    emitted = {asset: SimpleNamespace(extra={})}
    result = task.execute(run_of(left=None, events=emitted))
    assert (result["certified_version"], emitted[asset].extra["version"]) == (0, 0)
    assert (result["version"], JobArgs.from_argv(task.application_args).tables) == (0, specs)
    assert links_of(task)["Table"] == ""


@pytest.mark.usefixtures("warm_server")
def test_a_version_is_checked_again_by_the_rules_of_a_changed_spec(house: House, run_of: MakeRun) -> None:
    house.deliver()
    winner = commit_batch(house.root, house.landing, house.spec, DAY, RUN)
    other_rules = house.spec.model_copy(update={"expectations": ()})
    judge(house.root, other_rules, winner)
    house.job("report(Outcome.GATE_FAILED, 'version 1 refused: expect_x()', version=1); sys.exit(14)", Job.QUALITY_GATE)
    with pytest.raises(AirflowFailException, match=r"^version 1 refused: expect_x\(\)"):
        gate().execute(run_of(left=left(winner.version)))
    house.job("report(Outcome.CONFLICT, 'lost'); sys.exit(13)", Job.QUALITY_GATE)
    with pytest.raises(ConflictError, match="lost"):
        gate().execute(run_of(left=left(winner.version)))


def links_of(task: QualityGateOperator) -> dict[str, str]:
    """Return the links of the ended task: name -> path."""
    key = SimpleNamespace(dag_id="shop", run_id=RUN, task_id="orders_gate", map_index=-1)
    return {link.name: link.get_link(task, ti_key=key) for link in task.operator_extra_links}


def test_links_hold_below_a_path_of_airflows_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://tools.example.org/airflow/")
    task = gate()
    task.checked, task.may_be_overridden = CheckedVersion(table="bronze.orders", version=1, suite_hash="s"), True
    links = links_of(task)
    assert links["Gate override"] == f"/airflow{FORM}"
    assert links["Data Docs"].startswith("/airflow/lakehouse/data-docs/shop/")


def test_the_severity_of_a_finding_is_its_log_level() -> None:
    failed = {"rule": "expect_column_to_exist(wings)", "action": "warn", "passed": False, "reason": "it flies"}
    checks = [CheckResult(**failed, severity=severity) for severity in ("critical", "warning", "info", "")]
    checks.append(CheckResult(rule="expect_a()", action="fail", passed=True, not_judged="1 of 7 versions are known"))
    checks.append(CheckResult(rule="expect_a()", action="fail", passed=True))
    findings = list(findings_in(checks))
    levels = [logging.getLevelName(level) for level, _ in findings]
    assert levels == ["ERROR", "WARNING", "INFO", "ERROR", "WARNING"]
    assert findings[0][1] == "failed (warn): expect_column_to_exist(wings), failed: it flies"
    assert findings[-1][1] == "not checked (fail): expect_a(): 1 of 7 versions are known"
