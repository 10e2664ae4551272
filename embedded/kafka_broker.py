"""``python -m embedded.kafka_broker``: fetch a Kafka broker for tests and the Kafka demo into `.jars/kafka-broker`."""

from __future__ import annotations

from millrace.errors import MillraceError
from millrace.jars.maven_jars import install, locked_jars
from millrace.settings import Settings

if __name__ == "__main__":
    try:
        install(locked_jars("kafka-broker"), Settings().jars / "kafka-broker")
    except MillraceError as error:
        raise SystemExit(str(error)) from error
