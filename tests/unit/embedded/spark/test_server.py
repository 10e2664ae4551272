from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from embedded.home import Home, free_port
from embedded.spark.probe import answers
from embedded.spark.server import SparkServer
from embedded.spark.watch import RESTARTS_PER_HOUR, SparkWatch
from millrace.alerts.down_servers import DownServers
from millrace.clock import utc_now
from millrace.paths import LakehousePaths
from millrace.spark_conf import LOG_STORES
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

    home: Home
    deaths: int
    starts: int = 0

    def is_alive(self) -> bool:
        return self.starts >= self.deaths

    def start(self, env: Mapping[str, str]) -> None:
        assert env == {"A": "b"}
        self.starts += 1


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable[[int], Watched]]:
    with ExitStack() as stack:

        def watched(deaths: int) -> Watched:
            paths, seconds = LakehousePaths(tmp_path / "lake"), [0.0]
            server = DyingServer(Home(tmp_path / "home"), deaths)
            watch = SparkWatch(server, {"A": "b"}, paths, every_s=0.01, clock=lambda: seconds[0])
            watch.start()
            stack.callback(watch.stop)
            return Watched(server, watch, DownServers(paths), seconds)

        yield watched


@dataclass
class Watched:
    """A server with its watch, whose clock is `seconds[0]`, and what the lakehouse shows of it."""

    server: DyingServer
    watch: SparkWatch
    shown: DownServers
    seconds: list[float]


@pytest.mark.parametrize("deaths", [0, 1, RESTARTS_PER_HOUR])
def test_a_dead_server_is_started_again(watched: Callable[[int], Watched], deaths: int) -> None:
    its = watched(deaths)
    wait_for(lambda: its.server.starts == deaths)
    time.sleep(0.05)
    assert (its.server.starts, its.shown.at(utc_now())) == (deaths, [])


def test_a_server_that_dies_too_often_within_an_hour_rests_and_people_are_told(
    watched: Callable[[int], Watched], caplog: pytest.LogCaptureFixture
) -> None:
    its = watched(RESTARTS_PER_HOUR + 2)
    wait_for(lambda: its.shown.at(utc_now()))
    assert its.server.starts == RESTARTS_PER_HOUR
    [down] = its.shown.at(utc_now())
    [error] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert error.startswith(f"the Spark server was started {RESTARTS_PER_HOUR} times within an hour and died again")
    assert down.again_at - down.since == timedelta(hours=1)
    assert its.shown.at(down.again_at + timedelta(hours=1)) == [], "nobody is left who would start it"

    its.seconds[0] = 3600.5
    wait_for(lambda: its.server.is_alive() and not its.shown.at(utc_now()))
    assert its.server.starts == RESTARTS_PER_HOUR + 2, "the restarts of an hour ago do not count"


def test_a_watch_that_is_stopped_leaves_nothing_to_show(watched: Callable[[int], Watched]) -> None:
    its = watched(RESTARTS_PER_HOUR + 1)
    wait_for(lambda: its.shown.at(utc_now()))
    its.watch.stop()
    assert its.shown.at(utc_now()) == []
