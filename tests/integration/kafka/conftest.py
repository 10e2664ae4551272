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
from tests.support.kafka_security import SecureListeners
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
            secure = SecureListeners(home.path / "kafka_certificates", free_port(), free_port())
            secure.make_files()
            port, controller_port = free_port(), free_port()
            broker = KafkaBroker(home, jars, port, controller_port, secure.broker_conf(port, controller_port))
            broker.start(os.environ)
            secure.create_user(broker.address)
            ports.write_text(f"{port} {controller_port} {secure.tls} {secure.sasl}")
    port, controller_port, *_ = map(int, ports.read_text().split())
    return KafkaBroker(home, jars, port, controller_port)


@pytest.fixture(scope="session")
def secure(broker: KafkaBroker) -> SecureListeners:
    """The listeners of the broker for clients with a certificate or a password; the other one is for everybody."""
    *_, tls, sasl = map(int, (broker.home.path / "kafka_ports").read_text().split())
    return SecureListeners(broker.home.path / "kafka_certificates", tls, sasl)


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
