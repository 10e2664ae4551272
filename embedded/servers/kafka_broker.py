"""A private Kafka broker on loopback: one JVM that is broker and controller (KRaft), from Kafka's own jars.

It serves tests, and trials of tables that read Kafka. It has one replica of each topic, no authentication unless its
settings say so, and listens on loopback only.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from embedded.errors import StackError
from embedded.home import Home, free_port
from embedded.stack_processes import recorded, spawn, stop
from millrace.spark_location import spark_home

NAME = "kafka"
_JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOGGING = """
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


class KafkaBrokerError(StackError):
    """Raised when the broker does not come up; the message names its log."""


@dataclass(frozen=True)
class KafkaBroker:
    """One broker with its topics in a home.

    Attributes:
        home: the folder of its topics, log and pid.
        jars: the folder of Kafka's jars.
        port: the port for clients.
        controller_port: the port of its controller.
        conf: further settings of Kafka, which replace others.
    """

    home: Home
    jars: Path
    port: int
    controller_port: int
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The value of `bootstrap.servers` for clients."""
        return f"127.0.0.1:{self.port}"

    def start(self, env: Mapping[str, str]) -> None:
        """Start the JVM, and return when it answers a client; the first start makes its folder.

        Raises:
            KafkaBrokerError: there are no jars, the folder could not be made, or the broker ended or did not answer
                within a minute.
        """
        if not any(self.jars.glob("kafka_*.jar")):
            raise KafkaBrokerError(f"There are no Kafka jars in {self.jars}: run `make kafka`.")
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = str(self._folder / "server.properties")
        Path(settings).write_text(self._properties())
        (self._folder / "log4j2.properties").write_text(_LOGGING)
        if not (self._data / "meta.properties").exists():
            command = self._command("kafka.tools.StorageTool", "format", "-t", str(uuid4()), "-c", settings)
            run = subprocess.run(command, env=dict(env), capture_output=True, text=True, timeout=60)
            if run.returncode != 0:
                output = (run.stdout + run.stderr)[-2000:]
                raise KafkaBrokerError(f"Kafka could not make its folder {self._data}: {output}")
        spawn(self.home, NAME, self._command("kafka.Kafka", settings), env, cwd=self._folder)
        client: dict[str, str | int | float | bool] = {"bootstrap.servers": self.address, "log_level": 0}
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and recorded(self.home, NAME) is not None:
            with suppress(KafkaException):
                if AdminClient(client).list_topics(timeout=2).brokers:
                    return
            time.sleep(0.2)
        raise KafkaBrokerError(f"The Kafka broker did not come up; see its log {self.home.logs / NAME}.log")

    @property
    def _folder(self) -> Path:
        return self.home.path / "kafka"

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _command(self, main: str, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"
        # The resolved jars have no Scala library: Spark's is used.
        (scala,) = (spark_home() / "jars").glob("scala-library-*.jar")
        return [*_JAVA, logging, "-cp", f"{self.jars}/*:{scala}", main, *arguments]

    def _properties(self) -> str:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "log.dirs": str(self._data),
            # Without an ACL, everybody may do everything.
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            # Retention uses the messages' own time: messages of past years would be deleted within minutes.
            "log.retention.ms": "-1",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.conf,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())


@contextmanager
def running_broker(home: Path, jars: Path) -> Iterator[KafkaBroker]:
    """Run a broker on free ports within the block, with its topics in `home`; `jars` is Spark's folder of jars.

    Raises:
        KafkaBrokerError: the broker does not come up.
    """
    broker_home = Home(home)
    broker_home.prepare()
    broker = KafkaBroker(broker_home, jars / "kafka-broker", free_port(), free_port())
    try:
        broker.start(os.environ)
        yield broker
    finally:
        stop(broker_home, NAME, patience_s=15)
