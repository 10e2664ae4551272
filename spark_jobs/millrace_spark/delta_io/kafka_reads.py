"""Read pinned offsets of Kafka topics as records, with the position of each."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.log.batch import BatchSources
from millrace.errors import SpecError
from millrace_spark.transforms.messages import message_rows

_SHARED = ("bootstrap.servers", "client.id", "security.protocol", "sasl.mechanism")
"""Settings with the same name in librdkafka, whose names LAKEHOUSE_KAFKA uses, and in Spark's Java client."""

_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

_NO_MESSAGES = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>, epoch int"
)
"""The columns of Spark's Kafka source that bronze uses, and the epoch."""


def read_messages(session: SparkSession, spec: BronzeSpec, conf: Mapping[str, str], sources: BatchSources) -> DataFrame:
    """Return the messages of a batch as bronze rows (see `message_rows`).

    A message that no longer exists fails the read: the planner reports lost messages.
    """
    spans = {
        topic: {partition: span for partition, span in partitions.items() if span[0] < span[1]}
        for topic, partitions in sources.offsets.items()
    }
    spans = {topic: partitions for topic, partitions in spans.items() if partitions}
    if not spans:
        return message_rows(session.createDataFrame([], schema=_NO_MESSAGES), spec)
    options = {
        **client_options(conf),
        # Only committed transactions; the planner reads the end offsets of those as well.
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({topic: list(partitions) for topic, partitions in spans.items()}),
        "startingOffsets": _bound(spans, 0),
        "endingOffsets": _bound(spans, 1),
        "includeHeaders": "true",
    }
    epochs = {
        f"{topic}/{partition}": F.lit(sources.epochs[topic][partition])
        for topic in spans.keys() & sources.epochs.keys()
        for partition in spans[topic]
    }
    by_partition = F.create_map(*(each for where, epoch in epochs.items() for each in (F.lit(where), epoch)))
    known = F.try_element_at(by_partition, F.concat_ws("/", "topic", "partition")) if epochs else F.lit(None)
    messages = session.read.format("kafka").options(**options).load()
    return message_rows(messages.withColumn("epoch", F.coalesce(known.cast("int"), F.lit(0))), spec)


def client_options(conf: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's options for a cluster whose settings have librdkafka's names.

    >>> client_options({"bootstrap.servers": "broker:9092"})
    {'kafka.bootstrap.servers': 'broker:9092'}

    Raises:
        SpecError: `sasl.mechanism` is not supported.
    """
    options = {f"kafka.{name}": conf[name] for name in _SHARED if name in conf}
    if "ssl.ca.location" in conf:
        options |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": conf["ssl.ca.location"]}
    if "sasl.username" in conf:
        options["kafka.sasl.jaas.config"] = _login(conf)
    return options


def _login(conf: Mapping[str, str]) -> str:
    mechanism = conf.get("sasl.mechanism", "")
    if mechanism not in _LOGIN:
        msg = f"LAKEHOUSE_KAFKA: sasl.mechanism {mechanism!r} is not supported; use one of {', '.join(_LOGIN)}"
        raise SpecError(msg)
    values = (conf.get(name, "") for name in ("sasl.username", "sasl.password"))
    user, password = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return f'{_LOGIN[mechanism]} required username="{user}" password="{password}";'


def _bound(spans: Mapping[str, Mapping[int, tuple[int, int]]], end: int) -> str:
    return json.dumps(
        {topic: {str(partition): span[end] for partition, span in parts.items()} for topic, parts in spans.items()}
    )
