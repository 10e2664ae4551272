"""How many sessions a job opens on a Spark Connect server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from spark_jobs.runtime import session
from tests.support.lakehouse import Lakehouse

CHAIN = ("bronze.orders", "silver.orders", "gold.revenue_daily")


@pytest.mark.slow
def test_a_batch_opens_one_session_and_a_job_with_nothing_new_none(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Counter[str] = Counter()
    connect, running = session._connect, ""

    def counted(conf: Mapping[str, str]) -> SparkSession:
        opened[running] += 1
        return connect(conf)

    monkeypatch.setattr(session, "_connect", counted)
    for number in (1, 2):
        event = {"day": f"2013-01-0{number}", "event_at": f"2013-01-0{number}T10:00:00Z", "event_seq": 1}
        lakehouse.deliver(number, "a.json", [{"order_id": str(number), "amount": 2, **event}])
        opened.clear()
        for running in CHAIN:
            assert lakehouse.run(running, number).outcome == "committed"
    assert opened == dict.fromkeys(CHAIN, 1)
    opened.clear()
    for running in CHAIN:
        assert lakehouse.run(running, 2).outcome == "no_op"
    assert not opened
