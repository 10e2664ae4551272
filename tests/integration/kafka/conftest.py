"""A real Kafka broker, one for all tests, and a lakehouse whose bronze table reads a topic of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from filelock import FileLock

from embedded.home import Home, free_port
from embedded.servers.kafka_broker import KafkaBroker
from embedded.spark.server import SparkServer
from millrace.settings import Settings
from tests.support.kafka_topic import KafkaTopic
from tests.support.lakehouse import Lakehouse
from tests.support.spark.shared_server import HOME


@pytest.fixture(scope="session")
def broker() -> KafkaBroker:
    """The broker, which the first process that asks for it starts. It ends with the Spark server."""
    home, jars = Home(Path(os.environ[HOME])), Settings().jars / "kafka-broker"
    ports = home.path / "kafka_ports"
    with FileLock(home.path / "kafka.lock"):
        if not ports.exists():
            broker = KafkaBroker(home, jars, free_port(), free_port())
            broker.start(os.environ)
            ports.write_text(f"{broker.port} {broker.controller_port}")
    return KafkaBroker(home, jars, *map(int, ports.read_text().split()))


@pytest.fixture
def topic(broker: KafkaBroker, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> KafkaTopic:
    """A topic of this test alone, with one partition, on the cluster `main`."""
    monkeypatch.setenv("LAKEHOUSE_KAFKA", json.dumps({"main": {"bootstrap.servers": broker.address}}))
    topic = KafkaTopic(broker.address, request.node.name[:200].replace("[", ".").replace("]", ""))
    topic.create()
    return topic


@pytest.fixture
def shop(tmp_path: Path, server: SparkServer) -> Lakehouse:
    """An empty lakehouse; its tables are for the test to state."""
    return Lakehouse(tmp_path)
