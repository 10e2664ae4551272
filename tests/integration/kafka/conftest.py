"""A real Kafka broker, one for all tests, and a lakehouse whose bronze table reads a topic of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from embedded.servers.kafka_broker import KafkaBroker
from embedded.spark.server import SparkServer
from tests.support.kafka_topic import KafkaTopic
from tests.support.lakehouse import Lakehouse
from tests.support.shared_broker import shared_broker


@pytest.fixture(scope="session")
def broker() -> KafkaBroker:
    return shared_broker()


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
