"""How many sessions a job opens on a Spark Connect server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from millrace_spark.runtime import session
from tests.support.lakehouse import Lakehouse, order

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
        lakehouse.deliver(number, "a.json", [order(number, 2, of_day=number)])
        opened.clear()
        for running in CHAIN:
            assert lakehouse.run(running, number).outcome == "committed"
    assert opened == dict.fromkeys(CHAIN, 1)
    opened.clear()
    for running in CHAIN:
        assert lakehouse.run(running, 2).outcome == "no_op"
    assert not opened
