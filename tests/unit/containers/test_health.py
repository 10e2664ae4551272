"""The healthcheck of the services: as Docker runs it, against a server that answers right, wrong or not at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from embedded.home import free_port
from include.settings import PROJECT

ANSWERS = {
    "/health": b'{"scheduler": {"status": "healthy"}, "triggerer": {"status": "unhealthy"}, "dag_processor": {}}',
    "/page": b"<html>",
}


class Pages(BaseHTTPRequestHandler):
    """Serves ANSWERS."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path in ANSWERS else 404)
        self.end_headers()
        self.wfile.write(ANSWERS.get(self.path, b"{}"))

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def check(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-I", "containers/health.py", *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr.strip()


def test_a_healthy_part_is_healthy(server: str) -> None:
    assert check(f"{server}/health", "scheduler") == (0, "")
    assert check(f"{server}/health") == (0, "")


@pytest.mark.parametrize(
    ("part", "said"), [("triggerer", "triggerer is unhealthy"), ("dag_processor", "dag_processor is unknown")]
)
def test_a_part_that_is_not_healthy_fails_the_check_and_is_named(server: str, part: str, said: str) -> None:
    assert check(f"{server}/health", part) == (1, said)


def test_anything_but_the_page_fails_the_check(server: str) -> None:
    for url, told in (
        (f"{server}/page", f"{server}/page"),
        (f"{server}/nothing", f"{server}/nothing"),
        (f"http://127.0.0.1:{free_port()}/health", "refused"),
    ):
        code, said = check(url)
        assert (code, told in said) == (1, True)
