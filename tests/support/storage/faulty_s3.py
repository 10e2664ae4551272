"""A proxy before a real S3 server, which lets single requests fail as networks and busy stores do.

It is a separate process, because delta-rs holds Python's lock while it waits for an answer. HTTP requests control it:

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

from embedded.clone import CLONE
from embedded.home import free_port

CONTROL = "/_control"

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


def _error(status: int, code: str) -> Answer:
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return status, {"Content-Type": "application/xml"}, body.encode()


def slow_down(_: Request) -> Answer:
    """Answer that the store is busy; nothing was done."""
    return _error(503, "SlowDown")


def refuse_credentials(_: Request) -> Answer:
    """Answer that the credentials have expired."""
    return _error(400, "ExpiredToken")


def reset(_: Request) -> None:
    """End the connection before the request reaches the store."""


def lose_answer(request: Request) -> None:
    """Forward the request, and end the connection without the answer."""
    request.forward()


def cut(request: Request) -> None:
    """End the connection in the middle of the answer's body."""
    status, headers, body = request.forward()
    request.send_response_only(status)
    for name, value in headers.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body[: len(body) // 2])


def conflict(_: Request) -> Answer:
    """Answer that another put of the same object is in progress."""
    return _error(409, "ConditionalRequestConflict")


def fail_inside(_: Request) -> Answer:
    """Answer that the store has failed."""
    return _error(500, "InternalError")


Fault = Callable[["Request"], Answer | None]
"""Returns the answer to the client; None ends the connection."""

FAULTS = {
    fault.__name__: fault for fault in (slow_down, refuse_credentials, reset, lose_answer, cut, conflict, fail_inside)
}


@dataclass(frozen=True)
class FaultyS3:
    """The proxy.

    Attributes:
        endpoint: its address.
    """

    endpoint: str

    def on(self, method: str, part: str, fault: Fault, times: int = 1, agent: str = "") -> None:
        """Let the next `times` requests fail whose path contains `part`, and whose user agent contains `agent`."""
        self._send({"method": method, "part": part, "fault": fault.__name__, "times": times, "agent": agent})

    def calm(self) -> None:
        """Let no further request fail, and remove no header any more."""
        self._send({"calm": True})

    def ignore(self, header: str) -> None:
        """Remove a header from all requests."""
        self._send({"ignored": header.lower()})

    def faults_met(self) -> int:
        """Return the number of requests that failed."""
        return int(httpx.get(self.endpoint + CONTROL).json()["met"])

    def requests_forwarded(self) -> int:
        """Return the number of requests that reached the store."""
        return int(httpx.get(self.endpoint + CONTROL).json()["forwarded"])

    def faults_pending(self) -> list[dict[str, Any]]:
        """Return the faults that are still to come."""
        return [plan for plan in httpx.get(self.endpoint + CONTROL).json()["plans"] if plan["times"]]

    def _send(self, order: dict[str, Any]) -> None:
        httpx.post(self.endpoint + CONTROL, json=order).raise_for_status()


class Request(BaseHTTPRequestHandler):
    """One request; `store` is the address of the real server, and all requests share the plans of faults."""

    protocol_version = "HTTP/1.1"
    store = ""
    plans: ClassVar[list[dict[str, Any]]] = []
    ignored: ClassVar[set[str]] = set()
    met: ClassVar[list[str]] = []
    forwarded: ClassVar[list[str]] = []
    lock = threading.Lock()

    def _pass_on(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == CONTROL:
            self._answer(self._control())
            return
        fault = self._fault()
        answer = fault(self) if fault else self.forward()
        if answer is None:
            self.close_connection = True
        else:
            self._answer(answer)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass_on

    def forward(self) -> Answer:
        """Return the answer of the real server."""
        self.forwarded.append(self.path)
        server = HTTPConnection(self.store, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in self.ignored}
        server.request(self.command, self.path, self.body, headers)
        response = server.getresponse()
        answer = response.status, dict(response.getheaders()), response.read()
        server.close()
        return answer

    def _control(self) -> Answer:
        if self.command == "POST":
            order = json.loads(self.body)
            self.ignored.update([order["ignored"]] if "ignored" in order else [])
            self.plans += [order] if "fault" in order else []
            if "calm" in order:
                self.plans.clear()
                self.ignored.clear()
        state = {"plans": self.plans, "met": len(self.met), "forwarded": len(self.forwarded)}
        return 200, {}, json.dumps(state).encode()

    def _fault(self) -> Fault | None:
        with self.lock:
            for plan in self.plans:
                agent = self.headers.get("User-Agent", "")
                applies = plan["method"] == self.command and plan["part"] in self.path and plan["agent"] in agent
                if plan["times"] and applies:
                    plan["times"] -= 1
                    self.met.append(plan["fault"])
                    return FAULTS[plan["fault"]]
        return None

    def _answer(self, answer: Answer) -> None:
        status, headers, body = answer
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
        """Log nothing."""


@contextmanager
def faulty_s3(server: str) -> Iterator[FaultyS3]:
    """Run a proxy before the server at the address `server`."""
    port = free_port()
    command = [sys.executable, "-m", "tests.support.storage.faulty_s3", str(port), urlsplit(server).netloc]
    process = subprocess.Popen(command, cwd=CLONE)
    try:
        proxy = FaultyS3(f"http://127.0.0.1:{port}")
        wait = retry(
            retry=retry_if_exception_type(httpx.ConnectError), stop=stop_after_delay(30), wait=wait_fixed(0.05)
        )
        wait(proxy.faults_met)()
        yield proxy
    finally:
        process.terminate()
        process.wait(timeout=20)


if __name__ == "__main__":
    Request.store = sys.argv[2]
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Request).serve_forever()
