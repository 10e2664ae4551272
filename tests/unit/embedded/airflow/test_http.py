from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from embedded.airflow.http import AirflowApiError, AirflowHttp
from embedded.home import free_port


@dataclass
class Served:
    """The requests to a small server, and its answers: path -> (status, body)."""

    url: str = ""
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    answers_in_turn: dict[str, list[tuple[int, Any]]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    drop_next: int = 0
    password: str = "right"


@pytest.fixture
def served() -> Iterator[Served]:
    state = Served()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.split("?")[0]
            state.requests.append((self.command, path))
            if state.drop_next:
                state.drop_next -= 1
                self.close_connection = True
                return
            if path == "/auth/token":
                right = json.loads(body)["password"] == state.password
                self.reply(*((201, {"access_token": "t"}) if right else (401, {"detail": "no"})))
            elif self.headers.get("Authorization") != "Bearer t":
                self.reply(401, {"detail": "who are you?"})
            else:
                in_turn = state.answers_in_turn.get(path)
                self.reply(*(in_turn.pop(0) if in_turn else state.answers[path]))

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
    served.answers["/dags"] = (200, {"dags": []})
    with AirflowHttp(served.url, "admin", "right") as http:
        assert http.get("/dags") == {"dags": []}
        assert http.get("/dags", limit=1) == {"dags": []}
    assert served.requests == [("GET", "/dags"), ("POST", "/auth/token"), ("GET", "/dags"), ("GET", "/dags")]


def test_a_list_of_several_pages_is_read_to_its_end(served: Served) -> None:
    served.answers_in_turn["/dags"] = [
        (200, {"dags": ["a", "b"], "total_entries": 3}),
        (200, {"dags": ["c"], "total_entries": 3}),
    ]
    served.answers["/dags"] = (200, {"dags": [], "total_entries": 0})
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
    served.answers["/dags"] = (200, {"dags": []})
    with AirflowHttp(served.url, "admin", "right") as http:
        http.get("/dags")
        served.drop_next = 1
        assert http.get("/dags") == {"dags": []}
        before = len(served.requests)
        served.drop_next = 1
        with pytest.raises(AirflowApiError, match="does not answer POST /dagRuns"):
            http.ask("POST", "/dagRuns", json={})
    assert served.requests[before:] == [("POST", "/dagRuns")]


def test_a_peek_at_a_server_that_is_not_there_yet_gives_nothing() -> None:
    with AirflowHttp(f"http://127.0.0.1:{free_port()}", "admin", "x") as http:
        assert http.peek("/api/v2/monitor/health") is None


def test_a_change_that_met_another_one_is_made_again(served: Served) -> None:
    conflict, done = (409, {"detail": {"reason": "Unique constraint violation"}}), (200, {"note": "x"})
    served.answers_in_turn["/run"] = [conflict, conflict, done]
    with AirflowHttp(served.url, "admin", "right") as http:
        assert http.ask("PATCH", "/run", json={"note": "x"}) == {"note": "x"}
        served.answers["/run"] = conflict
        with pytest.raises(AirflowApiError, match=r"POST /run: 409 .*Unique constraint violation"):
            http.ask("POST", "/run")
    assert [method for method, path in served.requests if path == "/run"] == ["PATCH"] * 4 + ["POST"]
