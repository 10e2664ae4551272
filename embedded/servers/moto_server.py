"""moto's S3 server, which handles one request at a time: `python -m embedded.servers.moto_server PORT`.

S3 decides each conditional put in one step. moto looks for the object and stores it in two steps, so with its own
threaded server two writers can win one key on a busy machine (7 of 150 keys with boto3, threads switched often).
"""

from __future__ import annotations

import sys

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
