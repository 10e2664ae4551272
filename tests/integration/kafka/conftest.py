"""A real Kafka broker, one for all tests of a worker, and a lakehouse whose bronze table reads a topic of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.servers.kafka_broker import KafkaBroker, running_broker
from embedded.spark.server import SparkServer
from include.settings import Settings
from tests.support.kafka_topic import KafkaTopic
from tests.support.lakehouse import Lakehouse


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with running_broker(tmp_path_factory.mktemp("kafka"), Settings().jars) as broker:
        yield broker


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
