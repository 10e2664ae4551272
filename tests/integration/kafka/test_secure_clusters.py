"""Clusters that ask who connects: both clients, librdkafka and Spark's, use what LAKEHOUSE_KAFKA says of them."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import PySparkException

from embedded.spark.server import SparkServer
from millrace.contracts.spec.bronze_sources import KafkaSource
from millrace.control.kafka.cluster import KafkaCluster
from millrace.control.log.batch import BatchSources
from millrace.errors import Outcome, StorageError
from millrace_spark.delta_io.kafka_reads import read_messages
from millrace_spark.runtime.session import own_session
from tests.support.documents.specs import bronze_spec
from tests.support.kafka_security import KEY_PASSWORD, ODD_PASSWORD, PASSWORD, SecureListeners
from tests.support.kafka_topic import KafkaTopic, topic_document
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"


def secrets_of(conf: dict[str, str]) -> list[str]:
    """Return what no output may have: the passwords, and a line of the key that Spark gets."""
    key = KafkaCluster.of("main", {"main": conf}).java_conf.get("ssl.keystore.key", "")
    return [PASSWORD, ODD_PASSWORD[-12:], KEY_PASSWORD, *key.split("\n")[3:4]]


@pytest.mark.parametrize("mechanism", ["mTLS", "PLAIN", "SCRAM-SHA-512"])
def test_both_clients_load_a_topic_over_tls_and_write_no_secret(
    shop: Lakehouse,
    topic: KafkaTopic,
    secure: SecureListeners,
    server: SparkServer,
    monkeypatch: pytest.MonkeyPatch,
    mechanism: str,
) -> None:
    conf = secure.client_conf(mechanism)
    monkeypatch.setenv("LAKEHOUSE_KAFKA", json.dumps({"main": conf}))
    shop.specs(topic_document(topic))
    topic.send(order(1, 5), order(2, 7))
    report = shop.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert [row[0] for row in shop.rows(ORDERS, "order_id", "_offset")] == ["o1", "o2"]
    assert topic.group_offsets("millrace.bronze.orders") == {0: 2}
    written = [server.home.logs / "spark.log", *(file for file in shop.folder.rglob("*") if file.is_file())]
    assert len(written) > 3
    for secret in secrets_of(conf):
        assert [file for file in written if secret.encode() in file.read_bytes()] == []


@pytest.mark.parametrize("mechanism", ["mTLS", "PLAIN"])
def test_spark_describes_a_read_without_its_secrets(
    topic: KafkaTopic, secure: SecureListeners, server: SparkServer, capsys: pytest.CaptureFixture[str], mechanism: str
) -> None:
    topic.send(order(1, 5))
    conf = secure.client_conf(mechanism)
    cluster = KafkaCluster.of("main", {"main": conf})
    spec = bronze_spec(source=topic_document(topic)["source"])
    with own_session({}) as session:
        messages = read_messages(session, spec, cluster.java_conf, BatchSources(offsets={topic.name: {0: (0, 1)}}))
        messages.explain("extended")
        request = str(messages._plan.to_proto(session.client))  # as Spark Connect describes it in events and jobs
        shown = re.sub(session.conf.get("spark.sql.redaction.string.regex") or "", "", request)
    explained = capsys.readouterr().out
    assert "KafkaRelation" in explained
    secrets = [secret for secret in secrets_of(conf) if secret in request]
    assert secrets
    assert [secret for secret in secrets if secret in shown + explained] == []


def test_a_certificate_that_one_side_does_not_trust_or_lacks_is_named_in_time(
    shop: Lakehouse, topic: KafkaTopic, secure: SecureListeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = topic_document(topic)
    own = ("ssl.certificate.location", "ssl.key.location", "ssl.key.password")
    without = {name: value for name, value in secure.client_conf("mTLS").items() if name not in own}
    conf = secure.client_conf("PLAIN", authority="stranger.pem")
    monkeypatch.setenv("LAKEHOUSE_KAFKA", json.dumps({"main": conf}))
    shop.specs(document)
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        cluster, source = KafkaCluster.of("main", {"main": without}), KafkaSource.model_validate(document["source"])
        answer = pool.submit(cluster.available_offsets, source)
        report = shop.run(ORDERS)
    assert time.monotonic() - began < 20
    assert report.outcome is Outcome.FAILED
    assert "do not trust each other" in report.message
    assert "certificate verify failed" in report.message
    with pytest.raises(StorageError, match=r"do not trust each other: .* alert bad certificate"):
        answer.result()


def test_spark_refuses_a_broker_whose_certificate_is_for_another_host(
    topic: KafkaTopic, secure: SecureListeners, server: SparkServer
) -> None:
    topic.send(order(1, 5))
    conf = secure.client_conf("mTLS")
    elsewhere = conf["bootstrap.servers"].replace("127.0.0.1", "localhost")
    cluster = KafkaCluster.of("main", {"main": {**conf, "bootstrap.servers": elsewhere}})
    spec = bronze_spec(source=topic_document(topic)["source"])
    with own_session({}) as session, pytest.raises(PySparkException, match="No name matching localhost found"):
        read_messages(session, spec, cluster.java_conf, BatchSources(offsets={topic.name: {0: (0, 1)}})).count()
