"""DAGs in Airflow's task runner: events, refusals and their alerts, retries, and no child outlives its task."""

from __future__ import annotations

import asyncore
import json
import os
import signal
import smtpd
import threading
from collections.abc import Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from millrace.paths import LakehousePaths
from tests.support.airflow.shop_runs import DAY, HANGS, LOSES_ONCE, REFUSED, REPLAYS, Airflow, Case, new_airflow
from tests.support.documents.specs import Document, bronze_document
from tests.support.ledger.quarantine_rows import quarantine, refused

TABLE = "bronze.orders"
FILES = {"bronze.orders.files": ["success", 1]}
NOTHING_NEW = "raise SystemExit('nothing is new, and yet a driver was started')"
CASES = {
    "first": Case("one", LOSES_ONCE, DAY, "2013-02-01"),
    "cleared": Case("one", NOTHING_NEW, DAY, "2013-02-01"),
    "second": Case("one", NOTHING_NEW, DAY, "2013-02-02"),
    "refused": Case("two", REFUSED, DAY, "2013-02-03"),
    "chat is down": Case("two", "", {}, "2013-02-04", dag="alerts"),
    "chat is up": Case("two", "", {}, "2013-02-05", dag="alerts"),
    "nothing to tell": Case("two", "", {}, "2013-02-06", dag="alerts"),
    "no day": Case("three", NOTHING_NEW, {}, "2013-02-07"),
    "mapped": Case("four", LOSES_ONCE, {"day": "2013-01-07"}, "2013-02-08", dag="mapped"),
    "replay": Case(
        "five", REPLAYS, {"table": TABLE, "ids": "r2", "why": "the till", "dry_run": False}, "2013-02-09", dag="replay"
    ),
    "timeout": Case("six", HANGS, DAY, "2013-02-10", dag="impatient"),
    "killed": Case("seven", HANGS, DAY, "2013-02-11", dag="without_retries"),
}


class MailServer(smtpd.SMTPServer):
    """A server that keeps all mails."""

    def __init__(self) -> None:
        self._sockets: dict[int, Any] = {}
        self.mails: list[EmailMessage] = []
        super().__init__(("127.0.0.1", 0), None, map=self._sockets)
        self.port: int = self.socket.getsockname()[1]
        self._thread = threading.Thread(target=asyncore.loop, kwargs={"timeout": 0.1, "map": self._sockets})

    def process_message(self, peer: Any, mailfrom: str, rcpttos: list[str], data: bytes, **_: Any) -> None:
        """Keep a mail."""
        self.mails.append(message_from_bytes(data, policy=default))

    def __enter__(self) -> MailServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncore.close_all(self._sockets)
        self._thread.join(30)


def _orders() -> Document:
    """The spec of the table, which looks for late files every second."""
    document = bronze_document()
    return {**document, "source": {**document["source"], "wait": {"poke_interval": "1 seconds"}}}


@pytest.fixture(scope="module")
def mail() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


@pytest.fixture(scope="module")
def airflow(mail: MailServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    smtp = {"conn_type": "smtp", "host": "127.0.0.1", "port": mail.port}
    variables = {
        "AIRFLOW__API__BASE_URL": "https://airflow.example.org/team",
        "AIRFLOW_CONN_SMTP_DEFAULT": json.dumps({**smtp, "extra": {"disable_ssl": True, "disable_tls": True}}),
    }
    with new_airflow(tmp_path_factory.mktemp("shop"), _orders(), **variables) as airflow:
        yield airflow


@pytest.fixture(scope="module")
def runs(airflow: Airflow) -> dict[str, Any]:
    """Run all cases in one process: importing Airflow is most of their cost."""
    lake = LakehousePaths(airflow.folder / "lakes" / CASES["replay"].lake)
    quarantine(lake, TABLE, refused(1, "too low"), refused(2, "too low", of_day=5))
    started = airflow.start(CASES)
    airflow.wait_until_hanging("timeout", started)
    airflow.wait_until_hanging("killed", started)
    # What the supervisor sends to a task that was marked failed or cleared in the UI.
    os.kill(started.pid, signal.SIGTERM)
    return airflow.results(started)


def messages(airflow: Airflow, notifier: str) -> list[list[str]]:
    file = Path(f"{airflow.folder}/lakes/{CASES['refused'].lake}-{notifier}")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_conflict_is_retried_and_the_event_has_interval_version_and_rows(runs: dict[str, Any]) -> None:
    run = runs["first"]
    assert run["tasks"] == {**FILES, TABLE: ["success", 2], "bronze.orders_gate": ["success", 1]}
    expected = {
        "summary": "bronze.orders version 1 for 2013-01-05: certified",
        "interval_start": "2013-01-05T00:00:00+00:00",
        "interval_end": "2013-01-06T00:00:00+00:00",
        "version": 1,
        "rows": {},
        "batch_seq": 1,
    }
    [[name, extra], by_interval] = sorted(run["events"])
    assert by_interval == [f"{TABLE} by interval", extra]
    assert (name, {key: extra[key] for key in expected}) == (TABLE, expected)
    logged = ("lost to others", "bronze.orders for 2013-01-05 (UTC)", "2013-01-05: bronze.orders version 1 passed")
    assert [line for line in logged if line not in run["log"]] == []


def test_a_run_with_nothing_new_starts_no_driver_and_announces_nothing(runs: dict[str, Any]) -> None:
    assert runs["second"]["tasks"] == {**FILES, TABLE: ["success", 1], "bronze.orders_gate": ["success", 1]}
    assert runs["second"]["results"][TABLE]["outcome"] == "no_op"
    assert runs["second"]["events"] == []
    assert runs["cleared"]["results"][TABLE]["version"] == 1
    assert runs["cleared"]["events"] == runs["first"]["events"], "a cleared run does not emit its event again"


def test_a_refused_version_fails_the_gate_once_and_is_not_announced(runs: dict[str, Any]) -> None:
    run = runs["refused"]
    assert run["tasks"] == {**FILES, TABLE: ["success", 1], "bronze.orders_gate": ["failed", 1]}
    assert run["events"] == []
    line = "2013-01-05: bronze.orders version 1 refused: expect_table_row_count_to_be_between() observed 0"
    assert line in run["log"]
    for name in ("first", "refused"):
        assert runs[name]["assets"] == [
            [TABLE, "millrace://bronze/orders", "bronze"],
            [f"{TABLE} by interval", "millrace://bronze/orders/intervals", "bronze"],
        ], "with and without an event"


def test_a_refusal_is_told_at_once_and_to_a_notifier_that_was_down_by_the_dag(
    airflow: Airflow, runs: dict[str, Any], mail: MailServer
) -> None:
    told = [runs[name]["tasks"]["tell"][0] for name in ("chat is down", "chat is up", "nothing to tell")]
    assert told == ["failed", "success", "success"]
    # Nobody is told twice, and only the callback, in the DAG shop, has told the pager.
    for notifier, dag_id in (("Pager", "shop"), ("Chat", "lakehouse_alerts")):
        [[subject, body, dag, key]] = messages(airflow, notifier)
        assert (subject, dag, len(key)) == ("bronze.orders: refused", dag_id, 16)
        assert "bronze.orders version 1 refused: expect_table_row_count_to_be_between(min_value=1) observed 0" in body
        assert '<a href="https://airflow.example.org/team/lakehouse/tables/bronze.orders">' in body
    for name in ("refused", "chat is down"):
        assert "Chat (OSError) failed" in runs[name]["log"]
    assert "nothing new needs a person" in runs["nothing to tell"]["log"]
    [message] = mail.mails
    assert message["subject"] == "bronze.orders: refused"
    assert "bronze.orders version 1 refused" in message.get_body().get_content()  # type: ignore[union-attr]


def test_a_mapped_task_of_a_hand_written_dag_waits_for_late_files_and_then_retries_a_conflict(
    runs: dict[str, Any],
) -> None:
    run = runs["mapped"]
    logged = (
        "no landing folder",
        "Waits for the files in the triggerer until",
        "lost to others",
        "2013-01-07: bronze.orders version 1 passed; readers use version 1",
    )
    assert [line for line in logged if line not in run["log"]] == []
    assert {task: state for task, (state, _) in run["tasks"].items()} == dict.fromkeys(
        ("source", "load.write", "load.gate", "again", "files"), "success"
    )
    assert run["tasks"]["load.write"][1] == 2, "the wait is no try, and the conflict is one"
    [[name, extra]] = run["events"]
    assert (name, extra["version"], extra["interval_start"]) == (TABLE, 1, "2013-01-07T00:00:00+00:00")


def test_a_manual_run_without_a_day_fails_once_and_says_what_to_type(runs: dict[str, Any]) -> None:
    assert runs["no day"]["tasks"] == {
        "bronze.orders.files": ["failed", 1],
        TABLE: ["upstream_failed", 0],
        "bronze.orders_gate": ["upstream_failed", 0],
    }
    assert "Which day is this run for?" in runs["no day"]["log"]


def test_the_form_of_a_replay_reaches_the_job_and_the_new_version_is_announced(runs: dict[str, Any]) -> None:
    run = runs["replay"]
    assert run["tasks"] == {"approve": ["success", 1], "replay": ["success", 1]}, run["log"][-3000:]
    assert run["results"]["replay"]["message"] == "r2 because the till"
    [[name, extra]] = run["events"]
    assert (name, extra["version"], extra["interval_start"]) == (TABLE, 2, "2013-01-05T00:00:00+00:00")


def test_a_task_that_is_killed_or_takes_too_long_leaves_no_child_and_says_so(
    airflow: Airflow, runs: dict[str, Any]
) -> None:
    for name, line in (("timeout", "AirflowTaskTimeout"), ("killed", "the driver of bronze_ingest was stopped")):
        assert runs[name]["tasks"][TABLE] == ["failed", 1]
        assert line in runs[name]["log"]
        assert airflow.children(name) == []
