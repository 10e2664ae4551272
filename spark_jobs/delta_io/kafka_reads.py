"""Reads pinned offsets of Kafka topics as records, each with the place where it stood."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from include.contracts.spec.table_spec import BronzeSpec
from include.control.log.batch import OffsetRanges
from include.errors import SpecError
from spark_jobs.transforms.messages import message_rows

_SHARED = ("bootstrap.servers", "client.id", "security.protocol", "sasl.mechanism")
"""Settings that librdkafka, whose names LAKEHOUSE_KAFKA uses, and Spark's Java client call the same."""

_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

_NO_MESSAGES = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
"""The columns of Spark's Kafka source that are used."""


def read_messages(session: SparkSession, spec: BronzeSpec, conf: Mapping[str, str], ranges: OffsetRanges) -> DataFrame:
    """The messages of `ranges` as bronze rows (see `message_rows`).

    A message that is not there any more fails the read: what is lost is for the planner to say.
    """
    wanted = {
        topic: {partition: span for partition, span in partitions.items() if span[0] < span[1]}
        for topic, partitions in ranges.items()
    }
    wanted = {topic: partitions for topic, partitions in wanted.items() if partitions}
    messages = _read(session, conf, wanted) if wanted else session.createDataFrame([], schema=_NO_MESSAGES)
    return message_rows(messages, spec)


def client_options(conf: Mapping[str, str]) -> dict[str, str]:
    """Spark's options for a cluster whose settings have librdkafka's names.

    >>> client_options({"bootstrap.servers": "broker:9092"})
    {'kafka.bootstrap.servers': 'broker:9092'}

    Raises:
        SpecError: a way to log in that Spark is not told of yet.
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
        msg = f"LAKEHOUSE_KAFKA: sasl.mechanism {mechanism!r} is not known; known are {', '.join(_LOGIN)}"
        raise SpecError(msg)
    user, password = (_quoted(conf.get(f"sasl.{name}", "")) for name in ("username", "password"))
    return f"{_LOGIN[mechanism]} required username={user} password={password};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read(
    session: SparkSession, conf: Mapping[str, str], wanted: Mapping[str, Mapping[int, tuple[int, int]]]
) -> DataFrame:
    options = {
        **client_options(conf),
        # Only what transactions have committed; the planner asked for the end of just that.
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({topic: list(partitions) for topic, partitions in wanted.items()}),
        "startingOffsets": _bound(wanted, 0),
        "endingOffsets": _bound(wanted, 1),
        "includeHeaders": "true",
    }
    return session.read.format("kafka").options(**options).load()


def _bound(wanted: Mapping[str, Mapping[int, tuple[int, int]]], which: int) -> str:
    return json.dumps(
        {topic: {str(partition): span[which] for partition, span in spans.items()} for topic, spans in wanted.items()}
    )
