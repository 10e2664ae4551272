"""Alerts in Airflow's task runner: a refusal is told at once, and no notifier is told twice or left out."""

from __future__ import annotations

import asyncore
import json
import re
import smtpd
import socket
import threading
from collections.abc import Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from include.overview.attention import Kind
from include.settings import PROJECT
from tests.support.airflow.airflow_home import create_airflow_home
from tests.support.airflow.dag_parse import parse_dags
from tests.support.airflow.shop_runs import DAY, REFUSED, Airflow, Case
from tests.support.documents.specs import bronze_document, write_specs

NOTIFIERS = """
import json, os
from datetime import UTC, datetime
from pathlib import Path

from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk import BaseNotifier

from lakehouse_airflow.alerts.refusal import RefusalAlert
from lakehouse_airflow.factory import build_alerts_dag, build_domain_dag


class Pager(BaseNotifier):
    template_fields = ("subject", "body")

    def __init__(self):
        super().__init__()
        self.subject, self.body = "{{ alert.title }}", ["{{ alert.html }}", "{{ dag.dag_id }}"]

    def notify(self, context):
        with Path(f"{os.environ['LAKEHOUSE_ROOT']}-{type(self).__name__}").open("a") as file:
            file.write(json.dumps([self.subject, *self.body, context["alert"].key]) + "\\n")


class Chat(Pager):
    def notify(self, context):
        broken = Path(os.environ["LAKEHOUSE_ROOT"] + "-was-down")
        if "two" in broken.name and not broken.exists():
            broken.touch()
            raise OSError("cannot reach https://chat.example/s3cret")
        super().notify(context)


MAIL = {"subject": "{{ alert.title }}", "html_content": "{{ alert.html }}"}
NOTIFIERS = [Pager(), Chat(), SmtpNotifier(to="data@example.org", from_email="airflow@example.org", **MAIL)]
"""
ALERTS = "dag = build_alerts_dag(notifiers=NOTIFIERS, owner='platform', start_date=datetime(2013, 1, 1, tzinfo=UTC))"
SHOP = """
dag = build_domain_dag(
    "shop", schedule="0 0 * * *", start_date=datetime(2013, 1, 1, tzinfo=UTC), owner="sales",
    default_args={"on_failure_callback": RefusalAlert(NOTIFIERS)},
)
"""


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


@pytest.fixture(scope="module")
def mail() -> Iterator[MailServer]:
    """A mail server."""
    with MailServer() as server:
        yield server


@pytest.fixture(scope="module")
def airflow(mail: MailServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    folder = tmp_path_factory.mktemp("alerts")
    (folder / "dags").mkdir()
    landing = folder / "landing" / "orders" / "date=2013-01-05"
    landing.mkdir(parents=True)
    (landing / "a.json").write_text('{"order_id": "1"}\n')
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = {"conn_type": "spark", "host": "sc://127.0.0.1", "port": server.getsockname()[1]}
        environment = {
            **create_airflow_home(folder / "airflow", folder / "dags"),
            "PYTHONPATH": str(PROJECT),
            "AIRFLOW__API__BASE_URL": "https://airflow.example.org/team",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection),
            "AIRFLOW_CONN_SMTP_DEFAULT": json.dumps(
                {
                    "conn_type": "smtp",
                    "host": "127.0.0.1",
                    "port": mail.port,
                    "extra": {"disable_ssl": True, "disable_tls": True},
                }
            ),
            "LAKEHOUSE_LANDING": str(folder / "landing"),
            "LAKEHOUSE_TABLES": str(write_specs(folder / "tables", bronze_document())),
        }
        (folder / "dags" / "alerts.py").write_text(NOTIFIERS + ALERTS)
        (folder / "dags" / "alerted.py").write_text(NOTIFIERS + SHOP)
        yield Airflow(folder, environment)


@pytest.fixture(scope="module")
def runs(airflow: Airflow) -> dict[str, Any]:
    """Run all cases in one process, one after another."""
    cases = {
        "refused": Case("one", REFUSED, DAY, "2013-02-01T00:00:00+00:00", dag="alerted"),
        "after the callback": Case("one", "", {}, "2013-02-02T00:00:00+00:00", dag="alerts"),
        "refused without a callback": Case("two", REFUSED, DAY, "2013-02-03T00:00:00+00:00"),
        "chat is down": Case("two", "", {}, "2013-02-04T00:00:00+00:00", dag="alerts"),
        "chat is up": Case("two", "", {}, "2013-02-05T00:00:00+00:00", dag="alerts"),
        "nothing new": Case("two", "", {}, "2013-02-06T00:00:00+00:00", dag="alerts"),
    }
    return airflow.results(airflow.start(cases, retries=0))


def messages(airflow: Airflow, lake: str, notifier: str) -> list[list[str]]:
    file = Path(f"{airflow.folder}/lakes/{lake}-{notifier}")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_refused_version_is_told_at_once_and_not_again_by_the_dag(airflow: Airflow, runs: dict[str, Any]) -> None:
    assert runs["refused"]["tasks"]["bronze.orders_gate"][0] == "failed"
    assert runs["after the callback"]["tasks"] == {"tell": ["success", 1]}
    for notifier in ("Pager", "Chat"):
        [[subject, body, dag, key]] = messages(airflow, "one", notifier)
        assert (subject, dag, len(key)) == ("bronze.orders: refused", "shop", 16)
        assert "bronze.orders version 1 refused: expect_table_row_count_to_be_between(min_value=1) observed 0" in body
        assert '<a href="https://airflow.example.org/team/lakehouse/tables/bronze.orders">' in body


@pytest.mark.usefixtures("runs")
def test_the_notifier_of_a_provider_sends_each_message_with_its_own_texts(mail: MailServer) -> None:
    assert [message["subject"] for message in mail.mails] == ["bronze.orders: refused"] * 2, "one for each lakehouse"
    body = mail.mails[0].get_body().get_content()
    assert "bronze.orders version 1 refused" in body
    assert '<a href="https://airflow.example.org/team/lakehouse/tables/bronze.orders">' in body


def test_a_notifier_that_was_down_is_told_by_the_next_run_and_the_other_one_not_again(
    airflow: Airflow, runs: dict[str, Any]
) -> None:
    states = [runs[name]["tasks"]["tell"][0] for name in ("chat is down", "chat is up", "nothing new")]
    assert states == ["failed", "success", "success"]
    assert [len(messages(airflow, "two", notifier)) for notifier in ("Pager", "Chat")] == [1, 1]
    assert messages(airflow, "two", "Chat")[0][0] == "bronze.orders: refused"
    assert "Chat (OSError) failed" in runs["chat is down"]["log"]
    assert "nothing new needs a person" in runs["nothing new"]["log"]


def test_the_dag_of_the_guide_is_parsed_without_a_reader_of_tables_and_without_a_call(tmp_path: Path) -> None:
    guide = (PROJECT / "docs" / "guides" / "alerts.md").read_text()
    [example] = re.findall(r"^```python\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "alerts.py").write_text(example)
    parsed = parse_dags(tmp_path / "airflow", tmp_path / "dags")
    assert (parsed["errors"], list(parsed["dags"])) == ({}, ["lakehouse_alerts"])
    assert (parsed["heavy"], parsed["outside"]) == ([], [])


def test_the_guide_names_every_kind_of_cause_but_failed_tasks() -> None:
    guide = (PROJECT / "docs" / "guides" / "alerts.md").read_text()
    assert [kind for kind in Kind if f"| `{kind.value}` |" not in guide] == [Kind.FAILED]
