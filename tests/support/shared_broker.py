"""One Kafka broker for all tests of a run: its JVM takes seconds of CPU to start."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock

from embedded.home import Home, free_port
from embedded.servers.kafka_broker import KafkaBroker
from include.settings import Settings
from tests.support.spark.shared_server import HOME


def shared_broker() -> KafkaBroker:
    """Return the running broker: the first process that calls this starts it, the others wait.

    It ends with the Spark server.
    """
    home = Home(Path(os.environ[HOME]))
    ports = home.path / "kafka_ports"
    with FileLock(home.path / "kafka.lock"):
        if not ports.exists():
            broker = KafkaBroker(home, Settings().jars / "kafka-broker", free_port(), free_port())
            broker.start(os.environ)
            ports.write_text(f"{broker.port} {broker.controller_port}")
    port, controller_port = map(int, ports.read_text().split())
    return KafkaBroker(home, Settings().jars / "kafka-broker", port, controller_port)
