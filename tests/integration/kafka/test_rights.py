"""What a broker does not let its user see is no topic that has yet to come, and Kafka's own topics are nobody's."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from millrace.contracts.spec.bronze_sources import KafkaSource
from millrace.control.kafka.cluster import KafkaCluster
from millrace.errors import BadInputError, StorageError
from tests.support.kafka_topic import KafkaTopic


def source_of(**topics: object) -> KafkaSource:
    return KafkaSource.model_validate({"kafka": "main", "format": "json", **topics})


def cluster_of(topic: KafkaTopic) -> KafkaCluster:
    return KafkaCluster.of("main", {"main": {"bootstrap.servers": topic.address}})


def test_a_topic_that_may_not_be_seen_is_refused_and_one_that_is_not_there_is_named(topic: KafkaTopic) -> None:
    denied = AclBinding(
        ResourceType.TOPIC, topic.name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", AclOperation.ALL,
        AclPermissionType.DENY,
    )  # fmt: skip
    cluster, source = cluster_of(topic), source_of(topics=[topic.name])
    assert cluster.available_offsets(source).end == {topic.name: {0: 0}}
    for done in topic.admin.create_acls([denied]).values():
        done.result()
    try:
        with pytest.raises(StorageError, match=r"refuses this user: .*uthorization failed") as refused:
            cluster.available_offsets(source)
        assert f"Let the user of LAKEHOUSE_KAFKA describe and read {source.label}" in str(refused.value)
    finally:
        of_topic = AclBindingFilter(
            ResourceType.TOPIC, topic.name, ResourcePatternType.LITERAL, None, None, AclOperation.ANY,
            AclPermissionType.ANY,
        )  # fmt: skip
        for done in topic.admin.delete_acls([of_topic]).values():
            done.result()
    with pytest.raises(BadInputError, match="has no topic nowhere"):
        cluster.available_offsets(source_of(topics=["nowhere"]))


def test_a_pattern_takes_no_topic_of_kafkas_own(topic: KafkaTopic) -> None:
    cluster = cluster_of(topic)
    cluster.record_group_offsets("monitor", {topic.name: {0: (0, 0)}})
    assert "__consumer_offsets" in topic.admin.list_topics(timeout=10).topics
    found = cluster.available_offsets(source_of(topic_pattern=rf"{topic.name}|__.*")).end
    assert found.keys() == {topic.name}


def test_the_private_broker_does_not_delete_messages_that_say_they_are_years_old(topic: KafkaTopic) -> None:
    (described,) = topic.admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic.name)]).values()
    assert described.result()["retention.ms"].value == "-1"
