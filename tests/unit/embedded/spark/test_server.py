from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from embedded.home import Home, free_port
from embedded.spark.probe import answers
from embedded.spark.server import SparkServer
from embedded.spark.watch import RESTARTS, SparkWatch
from include.spark_conf import LOG_STORES
from tests.support.waiting import wait_for


@pytest.fixture
def server(tmp_path: Path) -> SparkServer:
    home = Home(tmp_path / "home")
    home.prepare()
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "delta.jar").touch()
    return SparkServer(home, jars, port=15777)


def test_the_token_is_in_the_environment_of_clients_alone_and_outlives_the_server(server: SparkServer) -> None:
    token = server.token
    assert len(token) >= 32
    assert token not in " ".join(server.argv())
    assert server.client_env() == {"SPARK_REMOTE": "sc://localhost:15777", "SPARK_CONNECT_AUTHENTICATE_TOKEN": token}
    assert SparkServer(server.home, server.jars, port=15778).token == token


def test_it_listens_on_loopback_has_the_settings_of_sessions_and_ends_when_out_of_memory(server: SparkServer) -> None:
    argv = server.argv()
    assert "spark.connect.grpc.binding.address=127.0.0.1" in argv
    assert "spark.connect.grpc.binding.port=15777" in argv
    assert [f"{key}={value}" for key, value in LOG_STORES.items() if f"{key}={value}" not in argv] == []
    assert argv[argv.index("--master") + 1] == "local[*]"
    [options] = [part for part in argv if part.startswith("spark.driver.extraJavaOptions=")]
    assert "-Duser.timezone=UTC" in options
    assert "-XX:+ExitOnOutOfMemoryError" in options.split()


def test_neither_a_closed_port_nor_a_server_of_another_kind_answers() -> None:
    assert not answers(free_port(), "token")
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        assert not answers(other.server_port, "token")
        other.shutdown()


@dataclass
class DyingServer:
    """A server that dies `deaths` times, and counts its starts."""

    deaths: int
    starts: int = 0
    settled: threading.Event = field(default_factory=threading.Event)

    def is_alive(self) -> bool:
        if self.starts >= self.deaths:
            self.settled.set()
        return self.starts >= self.deaths

    def start(self, env: Mapping[str, str]) -> None:
        assert env == {"A": "b"}
        self.starts += 1


@pytest.mark.parametrize(("deaths", "starts"), [(0, 0), (1, 1), (RESTARTS + 5, RESTARTS)])
def test_a_dead_server_is_started_again_a_few_times_and_no_more(deaths: int, starts: int) -> None:
    server = DyingServer(deaths)
    watch = SparkWatch(server, {"A": "b"}, every_s=0.01)
    watch.start()
    # The watch ends by itself when it gives up.
    wait_for(lambda: server.settled.is_set() or "spark-watch" not in [thread.name for thread in threading.enumerate()])
    watch.stop()
    assert server.starts == starts
