"""The server that set-up compiles: Spark's own would compile generated code anew for each session."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Timer

import psutil
import pytest
from pyspark.errors import PySparkException

from embedded.airflow.standalone import clean_environment
from embedded.clone import CLONE
from embedded.home import Home, free_port
from embedded.spark.server import NAME, SparkServer
from embedded.stack_processes import recorded, stop
from millrace.driver_environment import TOKEN
from millrace.settings import Settings
from millrace_spark.runtime.session import own_session
from tests.support.waiting import wait_for

CONNECT = "from millrace_spark.runtime.session import own_session\nwith own_session({}): pass"


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
        cwd=CLONE,
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


def test_it_listens_on_this_machine_alone_and_its_blocks_need_a_secret_that_no_command_line_has(
    server: SparkServer,
) -> None:
    process = recorded(server.home, NAME)
    assert process
    listening = {each.laddr.ip for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN}
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}
    assert "spark.authenticate=true" in process.cmdline()
    assert not any("secret" in part.lower() for part in process.cmdline())


PATIENCE_S = 5


class ImpatientServer(SparkServer):
    """A server that gives a cancelled task a few seconds to end."""

    def argv(self) -> list[str]:
        """Return its command line."""
        patience = "spark.task.reaper.killTimeout="
        return [f"{patience}{PATIENCE_S}s" if part.startswith(patience) else part for part in super().argv()]


def test_it_ends_if_a_cancelled_task_does_not_so_that_no_core_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    server = ImpatientServer(home, Settings().jars, free_port())
    loop = "id"
    for name in "abc":  # 20,000 ** 3 steps within one record, where Spark does not look whether it was interrupted
        loop = f"aggregate(sequence(1, 20000), 0L, ({name}, x{name}) -> ({name} + x{name} + {loop}) % 1000003)"
    try:
        server.start(clean_environment())
        for name, value in server.client_env().items():
            monkeypatch.setenv(name, value)
        for started_after in (PATIENCE_S, 30, 120):  # on a busy machine the task may not have begun by then
            with own_session({}) as session:
                endless = session.range(1).selectExpr(loop).write.format("noop").mode("overwrite")
                Timer(started_after, session.interruptAll).start()
                with pytest.raises(PySparkException, match="OPERATION_CANCELED"):
                    endless.save()
            with suppress(AssertionError):
                wait_for(lambda: not server.is_alive(), patience_s=4 * PATIENCE_S)
                break
        assert not server.is_alive()
        assert "the server ends, to be started again" in (home.logs / "spark.log").read_text()
    finally:
        stop(home, NAME, patience_s=15)
