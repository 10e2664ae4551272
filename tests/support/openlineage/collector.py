"""A collector of OpenLineage events: a real HTTP server in the test's process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

KEY = "a-secret-key"
"""The key that events must carry."""


@dataclass
class Collector:
    """The received events, in their order, and the address to send them to."""

    url: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0

    def transport(self) -> str:
        """Return Airflow's setting `[openlineage] transport`."""
        return json.dumps({"type": "http", "url": self.url, "auth": {"type": "api_key", "apiKey": KEY}})

    def of_task(self, dag_run: str, task: str) -> list[dict[str, Any]]:
        """Return the events of a task of a run, such as `shop.bronze.orders`."""
        return [event for event in self.events if event["job"]["name"] == task and _run_id(event) == dag_run]


@contextmanager
def running_collector() -> Iterator[Collector]:
    """Listen on a free port of this machine."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_known = self.headers["Authorization"] == f"Bearer {KEY}" and self.path == "/api/v1/lineage"
            if is_known:
                collector.events.append(json.loads(body))
            else:
                collector.refused += 1
            self.send_response(201 if is_known else 403)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def _run_id(event: dict[str, Any]) -> str:
    return str(event["run"]["facets"]["airflow"]["dagRun"]["run_id"])
