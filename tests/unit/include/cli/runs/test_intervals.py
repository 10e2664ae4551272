"""`lakehouse run` up to its driver; no Spark is started here."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from include.errors import ExitCode
from tests.support.deliveries import Deliver
from tests.support.documents.specs import bronze_spec, silver_document, write_specs
from tests.support.ledger.delta_tables import day
from tests.support.ledger.small_lake import commit_batch, judge


@pytest.fixture
def open_port() -> Iterator[int]:
    """A port that answers, though no Spark is behind it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


class TestRun:
    """The driver is a real process; no Spark is behind the address that it is sent to."""

    @staticmethod
    def run(place: Mapping[str, str], remote: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).parent / "lakehouse", "run", "--interval", "2013-01-01", *more]
        environment = {**os.environ, **place, "SPARK_REMOTE": remote}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    def test_a_missing_source_ends_with_its_exit_code_and_the_log(
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
            assert len([line for line in ended.stdout.splitlines() if line.split()[:1] == [table]]) == 2
        assert ended.stdout.count("waits for bronze.orders") == 2
        assert ended.stdout.count("waits for silver.orders") == 2

    @pytest.mark.parametrize("passed", [True, False])
    def test_no_spark_is_started_only_if_all_is_done_and_certified(
        self, place: Mapping[str, str], passed: bool
    ) -> None:
        root, landing, spec = Path(place["LAKEHOUSE_ROOT"]), Path(place["LAKEHOUSE_LANDING"]), bronze_spec()
        Deliver(landing)("a.json")
        judge(root, spec, commit_batch(root, landing, spec, day(), "an earlier run"), passed=passed)
        ended = self.run(place, "sc://127.0.0.1:1", "--table", "bronze.orders")
        assert ended.returncode == (ExitCode.OK if passed else ExitCode.SPARK_UNAVAILABLE), ended.stdout + ended.stderr
        assert ("nothing is new, so no Spark was started" in ended.stdout) == passed

    def test_a_server_that_is_down_is_named_at_once(self, place: Mapping[str, str]) -> None:
        ended = self.run(place, "sc://127.0.0.1:1")
        assert ended.returncode == ExitCode.SPARK_UNAVAILABLE, ended.stdout + ended.stderr
        assert "No Spark Connect server answers at 127.0.0.1:1" in ended.stderr

    def test_without_jars_there_is_no_spark_to_start(self, place: Mapping[str, str]) -> None:
        ended = self.run(place, "")
        assert ended.returncode == ExitCode.SPARK_UNAVAILABLE
        assert "run `make setup`" in ended.stderr

    def test_a_wrong_spec_starts_no_spark_for_valid_tables_without_new_data(self, place: Mapping[str, str]) -> None:
        root, landing, spec = Path(place["LAKEHOUSE_ROOT"]), Path(place["LAKEHOUSE_LANDING"]), bronze_spec()
        Deliver(landing)("a.json")
        judge(root, spec, commit_batch(root, landing, spec, day(), "an earlier run"))
        write_specs(Path(place["LAKEHOUSE_TABLES"]), silver_document(keyz=["order_id"]))
        ended = self.run(place, "sc://127.0.0.1:1", "--to", "2013-01-01")
        assert ended.returncode == ExitCode.BAD_SPEC, ended.stdout + ended.stderr
        assert "nothing is new, so no Spark was started" in ended.stdout
        assert "keyz: unknown key" in ended.stderr
        assert "waits for silver.orders" in ended.stdout

    def test_an_airflow_that_does_not_answer_fails_no_run_and_is_named_in_one_line(
        self, place: Mapping[str, str]
    ) -> None:
        root, landing, spec = Path(place["LAKEHOUSE_ROOT"]), Path(place["LAKEHOUSE_LANDING"]), bronze_spec()
        Deliver(landing)("a.json")
        judge(root, spec, commit_batch(root, landing, spec, day(), "an earlier run"))
        airflow = json.dumps({"url": "http://127.0.0.1:1", "login": "millrace", "password": "s3cret"})
        ended = self.run({**place, "LAKEHOUSE_AIRFLOW": airflow}, "sc://127.0.0.1:1", "--table", "bronze.orders")
        assert ended.returncode == ExitCode.OK, ended.stdout + ended.stderr
        assert "nothing is new, so no Spark was started" in ended.stdout
        assert ended.stderr == (
            "Airflow at http://127.0.0.1:1 was not told of all certified versions ([Errno 111] Connection refused); "
            "the next `lakehouse run` of these tables tells it\n"
        )
        assert "s3cret" not in ended.stdout + ended.stderr
