"""The server that set-up compiles: Spark's own would compile generated code anew for each session."""

from __future__ import annotations

import subprocess
import sys

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.spark.server import SparkServer
from include.driver_environment import TOKEN
from include.settings import PROJECT
from spark_jobs.runtime.session import own_session

CONNECT = "from spark_jobs.runtime.session import own_session\nwith own_session({}): pass"


def test_its_sessions_share_a_class_loader_and_so_the_code_that_is_generated_for_them(server: SparkServer) -> None:
    with own_session({}) as session:
        assert session.conf.get("spark.sql.artifact.isolation.enabled") == "false"


def test_over_a_private_network_without_tls_it_answers_only_clients_with_its_token(
    server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_host = {"SPARK_REMOTE": f"sc://127.0.0.1:{server.port}/;use_ssl=false"}
    # In a process of its own, since PySpark goes on with a session that was refused.
    refused = subprocess.run(
        [sys.executable, "-c", CONNECT],
        env={**clean_environment(), **other_host, TOKEN: "guessed"},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert refused.returncode != 0
    assert "UNAUTHENTICATED" in refused.stderr
    assert server.token not in refused.stderr
    monkeypatch.setenv("SPARK_REMOTE", other_host["SPARK_REMOTE"])
    with own_session({}) as session:
        assert session.range(3).count() == 3
