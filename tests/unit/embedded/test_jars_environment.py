"""Set-up runs a spark-submit of its own, whatever the environment says of servers."""

from __future__ import annotations

import pytest

from embedded.jars import spark_home, submit_environment


def test_a_server_that_others_use_does_not_lead_set_up_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    environment = submit_environment()
    assert not {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"} & set(environment)
    assert environment["SPARK_HOME"] == str(spark_home())
