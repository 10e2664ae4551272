"""``python -m benchmarks.buckets.counting_s3 LOG PORT``: moto's S3 server, which logs each request as JSON.

Who asked is told by the client's name of itself: boto3, delta-rs and Arrow are Millrace's own, Java is Spark and Delta.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple

from embedded.servers.s3 import StartServer, start_server

SPARK = "Spark and Delta"
_ENGINES = {"aws-sdk-java": SPARK, "Boto3": "boto3", "object_store": "delta-rs", "aws-sdk-cpp": "Arrow"}


class Writing(WSGIRequestHandler):
    """Answer a request, then log it."""

    requests: Path

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Log a request as one line."""
        agent = self.headers.get("User-Agent", "")
        engine = next((name for sign, name in _ENGINES.items() if sign in agent), agent)
        line = {"method": self.command, "path": self.path, "engine": engine, "status": int(code)}
        with self.requests.open("a") as log:
            log.write(json.dumps(line) + "\n")


def counting(log: Path) -> StartServer:
    """Return a function that starts servers which log their requests in `log`."""

    def start(port: int) -> subprocess.Popen[bytes]:
        return start_server([sys.executable, "-m", "benchmarks.buckets.counting_s3", str(log), str(port)])

    return start


def requests_in(log: Path) -> list[dict[str, Any]]:
    """Return all requests so far, each with its key or prefix."""
    with log.open() as lines:
        return [{**line, "key": _key(line["path"])} for line in map(json.loads, lines)]


def _key(path: str) -> str:
    place, _, query = path.partition("?")
    prefix = parse_qs(query).get("prefix", [""])[0]
    return unquote(place).partition("/")[2].partition("/")[2] or prefix


if __name__ == "__main__":
    Writing.requests = Path(sys.argv[1])
    application = DomainDispatcherApplication(create_backend_app)
    run_simple("127.0.0.1", int(sys.argv[2]), application, threaded=False, request_handler=Writing)
