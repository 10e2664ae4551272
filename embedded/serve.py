"""Run a local stack until a signal stops it; `make up` starts this process, `make down` ends it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

from embedded.address import Address
from embedded.home import Home
from embedded.interrupts import interrupt_once
from embedded.stack import Stack
from millrace.settings import Settings

NAME = "stack"
"""The name of this process in the records of the home."""

DRAIN_S = 20


def main(home: Home) -> None:
    """Start the stack of `home`, wait for SIGTERM or SIGINT, stop it."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    interrupt_once()
    settings = Settings()
    connection = os.environ.get("AIRFLOW_CONN_SPARK_DEFAULT")
    stack = Stack(home, settings, Address.free(home, settings), connection=connection, drain_s=DRAIN_S)
    with suppress(KeyboardInterrupt), stack:
        threading.Event().wait()


if __name__ == "__main__":
    main(Home(Path(sys.argv[1])))
