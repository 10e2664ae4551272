"""The server that set-up compiles: Spark's own would compile generated code anew for each session."""

from __future__ import annotations

import pytest

from embedded.spark.server import SparkServer
from include.driver_environment import TOKEN
from include.errors import SparkUnavailableError
from spark_jobs.runtime.session import own_session


def test_its_sessions_share_a_class_loader_and_so_the_code_that_is_generated_for_them(server: SparkServer) -> None:
    with own_session({}) as session:
        assert session.conf.get("spark.sql.artifact.isolation.enabled") == "false"


def test_over_a_private_network_without_tls_it_answers_only_clients_with_its_token(
    server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{server.port}/;use_ssl=false")
    with own_session({}) as session:
        assert session.range(3).count() == 3
    monkeypatch.setenv(TOKEN, "guessed")
    with pytest.raises(SparkUnavailableError, match="UNAUTHENTICATED") as refused, own_session({}):
        pass
    assert server.token not in str(refused.value)
