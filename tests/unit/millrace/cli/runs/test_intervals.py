"""`lakehouse run` up to its driver; no Spark is started here."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import Result

from millrace.errors import ExitCode
from tests.support.cli import Lakehouse
from tests.support.deliveries import Deliver
from tests.support.documents.specs import bronze_spec, silver_document, write_specs
from tests.support.ledger.delta_tables import day
from tests.support.ledger.small_lake import commit_batch, judge

NOTHING_NEW = "nothing is new, so no Spark was started"
NO_SERVER = "sc://127.0.0.1:1"
Run = Callable[..., Result]


@pytest.fixture
def run(lakehouse: Lakehouse, place: dict[str, str]) -> Run:
    """The command; the driver is a real process, and no Spark is behind the address that it is sent to."""

    def run(*more: str, remote: str = NO_SERVER) -> Result:
        place["SPARK_REMOTE"] = remote
        return lakehouse("run", "--interval", "2013-01-01", *more)

    return run


def deliver_and_load(place: Mapping[str, str], *, passed: bool = True) -> None:
    """Deliver a file of `bronze.orders`, load it by an earlier run, and let its gate pass or refuse it."""
    root, landing, spec = Path(place["LAKEHOUSE_ROOT"]), Path(place["LAKEHOUSE_LANDING"]), bronze_spec()
    Deliver(landing)("a.json")
    judge(root, spec, commit_batch(root, landing, spec, day(), "an earlier run"), passed=passed)


def test_a_missing_source_ends_with_its_exit_code_and_the_log(run: Run, place: Mapping[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # it answers, though no Spark is behind it
        ended = run(remote=f"sc://127.0.0.1:{server.getsockname()[1]}")
    assert ended.exit_code == ExitCode.NOT_READY, ended.output
    failures, log = ended.stderr.strip().split("\ndriver log: ")
    assert "orders/date=2013-01-01" in failures
    assert "silver.orders" not in failures
    assert Path(log).is_relative_to(place["LAKEHOUSE_ROOT"])
    assert Path(log).exists()
    assert Path(log).parents[1].name == "reports", "one folder for the run, and below it one for each day"
    for table in ("bronze.orders", "silver.orders", "gold.revenue_daily"):
        assert len([line for line in ended.stdout.splitlines() if line.split()[:1] == [table]]) == 2
    assert ended.stdout.count("waits for bronze.orders") == 2
    assert ended.stdout.count("waits for silver.orders") == 2


def test_a_refused_batch_needs_spark_and_a_server_that_is_down_is_named(run: Run, place: Mapping[str, str]) -> None:
    deliver_and_load(place, passed=False)
    ended = run("--table", "bronze.orders")
    assert ended.exit_code == ExitCode.SPARK_UNAVAILABLE, ended.output
    assert "No Spark Connect server answers at 127.0.0.1:1" in ended.stderr
    assert NOTHING_NEW not in ended.stdout


def test_a_wrong_spec_starts_no_spark_for_valid_tables_without_new_data(run: Run, place: Mapping[str, str]) -> None:
    deliver_and_load(place)
    write_specs(Path(place["LAKEHOUSE_TABLES"]), silver_document(keyz=["order_id"]))
    ended = run("--to", "2013-01-01")
    assert ended.exit_code == ExitCode.BAD_SPEC, ended.output
    assert NOTHING_NEW in ended.stdout
    assert "keyz: unknown key" in ended.stderr
    assert "waits for silver.orders" in ended.stdout


def test_an_airflow_that_does_not_answer_fails_no_run_and_is_named_in_one_line(run: Run, place: dict[str, str]) -> None:
    deliver_and_load(place)
    place["LAKEHOUSE_AIRFLOW"] = json.dumps({"url": "http://127.0.0.1:1", "login": "millrace", "password": "s3cret"})
    ended = run("--table", "bronze.orders")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert NOTHING_NEW in ended.stdout
    assert ended.stderr == (
        "Airflow at http://127.0.0.1:1 was not told of all certified versions ([Errno 111] Connection refused); "
        "the next `lakehouse run` of these tables tells it\n"
    )
    assert "s3cret" not in ended.stdout + ended.stderr
