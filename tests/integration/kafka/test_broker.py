"""The private broker keeps what it is given."""

from __future__ import annotations

from confluent_kafka.admin import ConfigResource, ResourceType

from tests.support.kafka_topic import KafkaTopic


def test_messages_that_say_they_are_years_old_are_not_deleted(topic: KafkaTopic) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic.name)

    (described,) = topic.admin.describe_configs([resource]).values()

    assert described.result()["retention.ms"].value == "-1"
