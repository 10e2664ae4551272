"""A proxy before a real S3 server, which does to single requests what networks and busy stores do.

A process of its own, since delta-rs holds Python's lock while it waits for an answer. It is told by HTTP what to do:

    python -m tests.support.storage.faulty_s3 PORT SERVER
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from embedded.home import free_port
from include.settings import PROJECT

TOLD = "/_told"

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


def _error(status: int, code: str) -> Answer:
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return status, {"Content-Type": "application/xml"}, body.encode()


def slow_down(_: Request) -> Answer:
    """The store is busy: 503, and nothing was done."""
    return _error(503, "SlowDown")


def refuse_credentials(_: Request) -> Answer:
    """The session's credentials have expired."""
    return _error(400, "ExpiredToken")


def reset(_: Request) -> None:
    """The connection ends before the store has heard of anything."""


def lose_answer(request: Request) -> None:
    """The store does as it is asked, and nobody hears of it."""
    request.forward()


def cut(request: Request) -> None:
    """The connection ends in the middle of the body."""
    status, headers, body = request.forward()
    request.send_response_only(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body[: len(body) // 2])


def conflict(_: Request) -> Answer:
    """Somebody else is putting the same object at this moment, and the store has not decided yet."""
    return _error(409, "ConditionalRequestConflict")


def fail_inside(_: Request) -> Answer:
    """The store is in trouble itself."""
    return _error(500, "InternalError")


Fault = Callable[["Request"], Answer | None]
"""What the client gets in the place of the store's answer; None where its connection ends."""

FAULTS = {
    fault.__name__: fault for fault in (slow_down, refuse_credentials, reset, lose_answer, cut, conflict, fail_inside)
}


@dataclass(frozen=True)
class FaultyS3:
    """The proxy.

    Attributes:
        endpoint: where it listens.
    """

    endpoint: str

    def on(self, method: str, part: str, fault: Fault, times: int = 1, agent: str = "") -> None:
        """Let the next requests of the method, whose path holds `part` and whose client names `agent`, meet a fault."""
        self._tell({"method": method, "part": part, "fault": fault.__name__, "times": times, "agent": agent})

    def calm(self) -> None:
        """Let no further request meet a fault."""
        self._tell({"calm": True})

    def ignore(self, header: str) -> None:
        """Seem not to know a header."""
        self._tell({"ignored": header.lower()})

    def met(self) -> int:
        """How many requests have met a fault."""
        return int(httpx.get(self.endpoint + TOLD).json()["met"])

    def passed_on(self) -> int:
        """How many requests have reached the store."""
        return int(httpx.get(self.endpoint + TOLD).json()["passed_on"])

    def awaited(self) -> list[dict[str, Any]]:
        """The faults that no request has met yet."""
        return [plan for plan in httpx.get(self.endpoint + TOLD).json()["plans"] if plan["times"]]

    def _tell(self, what: dict[str, Any]) -> None:
        httpx.post(self.endpoint + TOLD, json=what).raise_for_status()


class Request(BaseHTTPRequestHandler):
    """One request on its way; `server_address` is that of the real server, and what was told is shared by all."""

    protocol_version = "HTTP/1.1"
    store = ""
    plans: ClassVar[list[dict[str, Any]]] = []
    ignored: ClassVar[set[str]] = set()
    met: ClassVar[list[str]] = []
    passed_on: ClassVar[list[str]] = []
    lock = threading.Lock()

    def _pass_on(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == TOLD:
            self._answer(self._hear())
            return
        fault = self._fault()
        found = fault(self) if fault else self.forward()
        if found is None:
            self.close_connection = True
        else:
            self._answer(found)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass_on

    def forward(self) -> Answer:
        """What the real server says."""
        self.passed_on.append(self.path)
        server = HTTPConnection(self.store, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in self.ignored}
        server.request(self.command, self.path, self.body, headers)
        answer = server.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        server.close()
        return found

    def _hear(self) -> Answer:
        if self.command == "POST":
            told = json.loads(self.body)
            self.ignored.update([told["ignored"]] if "ignored" in told else [])
            self.plans += [told] if "fault" in told else []
            if "calm" in told:
                self.plans.clear()
        return 200, {}, json.dumps(self._told()).encode()

    def _told(self) -> dict[str, Any]:
        return {"plans": self.plans, "met": len(self.met), "passed_on": len(self.passed_on)}

    def _fault(self) -> Fault | None:
        with self.lock:
            for plan in self.plans:
                agent = self.headers.get("User-Agent", "")
                is_meant = plan["method"] == self.command and plan["part"] in self.path and plan["agent"] in agent
                if plan["times"] and is_meant:
                    plan["times"] -= 1
                    self.met.append(plan["fault"])
                    return FAULTS[plan["fault"]]
        return None

    def _answer(self, found: Answer) -> None:
        status, headers, body = found
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        is_head = self.command == "HEAD"
        self.send_header("Content-Length", headers.get("Content-Length", "0") if is_head else str(len(body)))
        self.end_headers()
        if not is_head:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def faulty_s3(server: str) -> Iterator[FaultyS3]:
    """The proxy before the server at that address."""
    port = free_port()
    command = [sys.executable, "-m", "tests.support.storage.faulty_s3", str(port), urlsplit(server).netloc]
    process = subprocess.Popen(command, cwd=PROJECT)
    try:
        proxy = FaultyS3(f"http://127.0.0.1:{port}")
        retry(retry=retry_if_exception_type(httpx.ConnectError), stop=stop_after_delay(30), wait=wait_fixed(0.05))(
            proxy.met
        )()
        yield proxy
    finally:
        process.terminate()
        process.wait(timeout=20)


if __name__ == "__main__":
    Request.store = sys.argv[2]
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Request).serve_forever()
