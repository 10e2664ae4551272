"""Drivers that read a real topic are killed and told to stop while messages arrive: each message is landed once."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from embedded.airflow.standalone import clean_environment
from embedded.clone import CLONE
from embedded.servers.kafka_broker import KafkaBroker
from embedded.spark.server import SparkServer
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.delta_log import Commit, commits_after, latest_version
from millrace.errors import ExitCode
from tests.support.kafka_topic import KafkaTopic, topic_document
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.places import BEFORE_INTENT
from tests.support.killed_drivers.steps import steps_of
from tests.support.lakehouse import Lakehouse, order
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

ORDERS = "bronze.orders"


@pytest.fixture(scope="module")
def environment(broker: KafkaBroker, server: SparkServer) -> dict[str, str]:
    """What a driver finds the warm Spark server and the broker by."""
    kafka = f'{{"main": {{"bootstrap.servers": "{broker.address}"}}}}'
    return {**clean_environment(), **server.client_env(), "LAKEHOUSE_KAFKA": kafka}


@pytest.fixture
def fed(tmp_path: Path, topic: KafkaTopic) -> Lakehouse:
    """A lakehouse whose orders come from the topic, three messages a batch."""
    shop = Lakehouse(tmp_path)
    shop.specs(topic_document(topic, max_messages_per_batch=3))
    return shop


def landed(shop: Lakehouse) -> list[int]:
    """The offset of every message that is in bronze or in its quarantine, as often as it is there."""
    rows = [offset for (offset,) in shop.rows(ORDERS, "_offset")]
    return sorted(rows + [row["position"] for row in shop.quarantine(ORDERS)])


def batches(shop: Lakehouse) -> list[Commit]:
    """The commits of batches, oldest first."""
    return [commit for commit in commits_after(shop.paths.table(ORDERS), -1) if commit.txns]


def lakehouse_following(shop: Lakehouse, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start `lakehouse run --follow` as a person does."""
    places = {f"LAKEHOUSE_{name.upper()}": str(shop.folder / name) for name in ("landing", "tables")}
    command = [Path(sys.executable).parent / "lakehouse", "run", "--follow"]
    known = {**environment, **places, "LAKEHOUSE_ROOT": str(shop.folder / "lake")}
    return subprocess.Popen(command, env=known, cwd=CLONE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.faults
def test_killed_after_every_step_in_turn_while_messages_arrive_each_is_landed_once(
    environment: dict[str, str], fed: Lakehouse, topic: KafkaTopic, tmp_path: Path
) -> None:
    sent = 0
    with Drivers(environment, tmp_path / "driver.log") as drivers:
        for place in (BEFORE_INTENT, *steps_of(ORDERS)):
            arriving = [order(sent, 1), "{broken"] if sent else [*(order(number, 1) for number in range(3)), "[]", "{"]
            topic.send(*arriving)
            sent += len(arriving)
            ended = drivers.run(fed, ORDERS, 1, dies=place)
            assert ended.code == -signal.SIGKILL, ended.output
        ended = drivers.run(fed, ORDERS, 1)
    assert ended.code == ExitCode.OK, ended.output
    assert landed(fed) == list(range(sent))
    assert len(fed.quarantine(ORDERS)) == 1 + len([BEFORE_INTENT, *steps_of(ORDERS)])
    spans = [commit.metadata["sources"]["offsets"][topic.name]["0"] for commit in batches(fed)]
    assert [start for start, _ in spans[1:]] == [end for _, end in spans[:-1]], "each starts where the last one ended"


def test_following_goes_on_with_what_is_new_and_ends_after_the_current_commit_when_told_to(
    environment: dict[str, str], fed: Lakehouse, topic: KafkaTopic
) -> None:
    topic.send(order(0, 1))
    following = lakehouse_following(fed, environment)
    try:
        wait_for(lambda: landed_so_far(fed) == 1)
        topic.send(*(order(number, 1) for number in range(1, 31)))
        wait_for(lambda: landed_so_far(fed) > 1)
        following.send_signal(signal.SIGTERM)
        said, _ = following.communicate(timeout=60)
    finally:
        following.kill()
    assert following.returncode == ExitCode.OK, said
    there = landed(fed)
    assert 1 < len(there) < 31, "it did not wait for all messages"
    reported = [int(rows) for rows in re.findall(r"bronze\.orders .* (\d+) rows? read", said)]
    assert sum(reported) == len(there), said
    assert 1 < len(reported) <= len(batches(fed)), "a run makes several batches if messages arrive meanwhile"
    last = Ledger(fed.paths).last_committed(ORDERS, DeltaTable(str(fed.paths.table(ORDERS))).metadata().id, "main")
    assert last is not None
    assert Ledger(fed.paths).closed_rows(last), "the batch that was under way was finished"
    assert fed.run(ORDERS).exit_code == ExitCode.OK
    assert landed(fed) == list(range(31))


def landed_so_far(shop: Lakehouse) -> int:
    return len(landed(shop)) if latest_version(shop.paths.table(ORDERS)) > 0 else 0
