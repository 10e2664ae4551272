"""The local Airflow, and the client of its API."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from embedded.address import Address
from embedded.airflow.http import AirflowApiError, AirflowHttp
from embedded.airflow.standalone import Airflow, clean_environment, passwords, stop_airflow, warm_spark
from embedded.clone import CLONE, DEMO, dag_folders
from embedded.home import Home, free_port
from embedded.stack_processes import recorded, spawn
from millrace.cli.authoring.new import write_project
from millrace.settings import Settings
from tests.support.waiting import wait_for


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.prepare()
    return home


@pytest.fixture
def airflow(home: Home, tmp_path: Path) -> Airflow:
    address = Address(web=1111, worker_logs=2222, spark=4444, root=tmp_path, landing=tmp_path)
    dags = {"dags-folder": tmp_path / "dags"}
    return Airflow(home, address, dags, "postgresql+psycopg2://x", warm_spark(4444, "token"))


def test_it_listens_on_this_machine_alone_and_lives_in_the_folders_of_the_stack(airflow: Airflow, home: Home) -> None:
    settings = airflow.settings()
    assert settings["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert settings["AIRFLOW__API__PORT"] == "1111"
    assert settings["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:1111/execution/"
    ports = [settings[f"AIRFLOW__LOGGING__{part}_LOG_SERVER_PORT"] for part in ("WORKER", "TRIGGER")]
    assert ports == ["2222", "2222"]
    assert settings["AIRFLOW_HOME"] == str(home.airflow)
    connection = json.loads(settings["AIRFLOW_CONN_SPARK_DEFAULT"])
    # The one host that needs no TLS.
    assert connection == {"conn_type": "spark", "host": "sc://localhost", "port": 4444, "password": "token"}


def test_the_demo_has_the_general_dag_files_of_the_clone_and_another_project_brings_its_own(tmp_path: Path) -> None:
    assert dag_folders(DEMO) == {"dags-folder": DEMO / "dags", "millrace": CLONE / "dags"}
    write_project(tmp_path / "shop", Settings())
    [folder] = dag_folders(tmp_path / "shop").values()
    assert "build_maintenance_dag(" in (folder / "shop.py").read_text()


def test_airflow_knows_every_setting_and_the_openlineage_client_gets_its_variables(
    airflow: Airflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__DISABLED", "True")
    monkeypatch.setenv("OPENLINEAGE_URL", "http://marquez:5000")
    code = (
        "import json\n"
        "from airflow.configuration import conf\n"
        "from airflow.providers.openlineage import conf as openlineage\n"
        "print(json.dumps([openlineage.is_disabled(), conf.configuration_description]))"
    )
    environment = {**clean_environment(), **airflow.settings()}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    is_disabled, sections = json.loads(done.stdout.splitlines()[-1])
    assert is_disabled is False
    ours = [name.removeprefix("AIRFLOW__").lower().split("__") for name in airflow.settings() if "__" in name]
    assert len(ours) > 15
    # Airflow has these of [core] for each component as well.
    sections["scheduler"]["options"] |= {key: {} for key in sections["core"]["options"] if key.startswith("mp_")}
    assert [f"{part}.{key}" for part, key in ours if key not in sections.get(part, {"options": {}})["options"]] == []


def test_the_passwords_are_made_once_and_only_their_owner_can_read_them(home: Home) -> None:
    first = passwords(home)
    assert len(first["admin"]) >= 32
    assert passwords(home) == first
    assert json.loads(home.passwords.read_text()) == first
    assert stat.S_IMODE(home.passwords.stat().st_mode) == 0o600


def test_settings_of_another_airflow_or_spark_are_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW_HOME", "SPARK_HOME", "PYTHONPATH", "LAKEHOUSE_ROOT"):
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    environment = clean_environment()
    assert "/elsewhere" not in environment.values()
    assert environment["HTTPS_PROXY"] == "http://proxy"
    assert environment["PATH"].split(os.pathsep)[0] == str(CLONE / ".venv" / "bin")


def test_the_web_server_keeps_its_port_when_the_stack_starts_again(home: Home, tmp_path: Path) -> None:
    settings = Settings(root=tmp_path, landing=tmp_path)
    assert Address.load(home) is None
    first = Address.free(home, settings)
    first.save(home)
    assert Address.load(home) == first
    assert Address.free(home, settings).url == first.url


def test_a_worker_that_outlives_its_scheduler_is_ended_with_it(home: Home) -> None:
    code = (
        "import os, setproctitle, signal, time\n"
        "if not os.fork():\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    setproctitle.setproctitle('airflow worker -- LocalExecutor: <idle>')\n"
        "    print(os.getpid(), flush=True)\n"
        "time.sleep(600)"
    )
    spawn(home, "scheduler", [sys.executable, "-c", code], os.environ, cwd=home.path)
    log = home.logs / "scheduler.log"
    wait_for(log.read_text)
    worker = psutil.Process(int(log.read_text()))
    assert worker.cmdline()[0].startswith("airflow worker")
    stop_airflow(home)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
    assert recorded(home, "scheduler") is None


@dataclass
class Served:
    """The requests to a small server, and its answers: path -> (status, body) of each request; the last one stays."""

    url: str = ""
    answers: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    drops_next: bool = False


@pytest.fixture
def served() -> Iterator[Served]:
    state = Served()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.split("?")[0]
            state.requests.append((self.command, path))
            if state.drops_next:
                state.drops_next = False
                self.close_connection = True
            elif path == "/auth/token":
                right = json.loads(body)["password"] == "right"
                self.reply(*((201, {"access_token": "t"}) if right else (401, {"detail": "no"})))
            elif self.headers.get("Authorization") != "Bearer t":
                self.reply(401, {"detail": "who are you?"})
            else:
                answers = state.answers[path]
                self.reply(*(answers.pop(0) if len(answers) > 1 else answers[0]))

        def reply(self, status: int, body: Any) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: Any) -> None:
            return

        do_GET = do_POST = do_PATCH = answer

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        state.url = f"http://127.0.0.1:{server.server_port}"
        yield state
        server.shutdown()


def test_it_logs_in_only_when_it_has_to(served: Served) -> None:
    served.answers["/dags"] = [(200, {"dags": []})]
    with AirflowHttp(served.url, "admin", "right") as http:
        assert http.get("/dags") == {"dags": []}
        assert http.get("/dags", limit=1) == {"dags": []}
    assert served.requests == [("GET", "/dags"), ("POST", "/auth/token"), ("GET", "/dags"), ("GET", "/dags")]


def test_a_list_of_several_pages_is_read_to_its_end(served: Served) -> None:
    pages = ((["a", "b"], 3), (["c"], 3), ([], 0))
    served.answers["/dags"] = [(200, {"dags": dags, "total_entries": total}) for dags, total in pages]
    with AirflowHttp(served.url, "admin", "right") as http:
        assert http.get_all("/dags", "dags") == ["a", "b", "c"]
        assert http.get_all("/dags", "dags") == []


def test_a_wrong_password_is_reported_without_showing_it(served: Served) -> None:
    with (
        AirflowHttp(served.url, "admin", "secret-word") as http,
        pytest.raises(AirflowApiError, match="log-in of admin") as refused,
    ):
        http.get("/dags")
    assert "secret-word" not in str(refused.value)


def test_when_the_connection_breaks_a_get_request_is_retried_and_a_change_is_not_sent_twice(served: Served) -> None:
    served.answers["/dags"] = [(200, {"dags": []})]
    with AirflowHttp(served.url, "admin", "right") as http:
        http.get("/dags")
        served.drops_next = True
        assert http.get("/dags") == {"dags": []}
        before = len(served.requests)
        served.drops_next = True
        with pytest.raises(AirflowApiError, match="does not answer POST /dagRuns"):
            http.ask("POST", "/dagRuns", json={})
    assert served.requests[before:] == [("POST", "/dagRuns")]


def test_a_peek_at_a_server_that_is_not_there_yet_gives_nothing() -> None:
    with AirflowHttp(f"http://127.0.0.1:{free_port()}", "admin", "x") as http:
        assert http.peek("/api/v2/monitor/health") is None


def test_a_change_that_met_another_one_is_made_again(served: Served) -> None:
    conflict, done = (409, {"detail": {"reason": "Unique constraint violation"}}), (200, {"note": "x"})
    deadlock = (500, {"detail": {"reason": "Database error"}})
    served.answers["/run"] = [conflict, deadlock, done, conflict]
    with AirflowHttp(served.url, "admin", "right") as http:
        assert http.ask("PATCH", "/run", json={"note": "x"}) == {"note": "x"}
        with pytest.raises(AirflowApiError, match=r"POST /run: 409 .*Unique constraint violation"):
            http.ask("POST", "/run")
    assert [method for method, path in served.requests if path == "/run"] == ["PATCH"] * 4 + ["POST"]
