"""What every job has around it: a report with its exit code whatever happens, and a session that ends."""

from __future__ import annotations

import errno
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import grpc
import psutil
import pytest
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator
from pyspark.sql.connect.proto import ReleaseExecuteRequest
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub
from pyspark.sql.connect.session import SparkSession

from embedded.clone import CLONE
from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.report import JobReport
from millrace.errors import ExitCode, MillraceError, NotReadyError, Outcome
from millrace.spark_conf import STARTED_BY
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main, run_and_report
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import day

ENDINGS = [
    (NotReadyError("no landing folder"), Outcome.NOT_READY, ExitCode.NOT_READY),
    (MillraceError("torn"), Outcome.FAILED, ExitCode.FAILED),
    (OSError(errno.EIO, "Input/output error"), Outcome.FAILED, ExitCode.FAILED),
    (KeyError(), Outcome.FAILED, ExitCode.FAILED),
    (OSError(errno.ENOSPC, "No space left on device"), Outcome.DISK_FULL, ExitCode.DISK_FULL),
]


@pytest.fixture
def args(tmp_path: Path) -> JobArgs:
    return Lakehouse(tmp_path).args("silver.flights")


def report_of(args: JobArgs, outcome: Outcome = Outcome.COMMITTED) -> JobReport:
    return JobReport(
        job="silver_merge",
        table=args.table,
        outcome=outcome,
        message="batch 1",
        interval=args.interval,
        run_id=args.run_id,
        timings_s={"batch": 1.0},
    )


def test_a_wrong_setting_of_the_environment_is_reported(args: JobArgs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_KEEP_RUNS_DAYS", "0")
    report = run_and_report(Job.SILVER_MERGE, lambda _: report_of(args), args)
    assert (report.outcome, JobReport.load(args.report)) == (Outcome.FAILED, report)
    assert "keep_runs_days" in report.message


def test_a_job_leaves_its_report_with_the_time_it_took(args: JobArgs) -> None:
    returned = run_and_report(Job.SILVER_MERGE, lambda context: report_of(context.args), args)
    assert JobReport.load(args.report) == returned
    assert returned.timings_s.keys() == {"batch", "total"}
    assert returned.outcome is Outcome.COMMITTED


@pytest.mark.parametrize(("error", "outcome", "exit_code"), ENDINGS)
def test_an_error_becomes_its_report(args: JobArgs, error: Exception, outcome: Outcome, exit_code: ExitCode) -> None:
    def run(_: JobContext) -> JobReport:
        raise error

    report = run_and_report(Job.SILVER_MERGE, run, args)
    assert JobReport.load(args.report) == report
    assert (report.outcome, report.exit_code) == (outcome, exit_code)
    assert (report.table, report.interval, report.run_id) == ("silver.flights", day(), args.run_id)
    if isinstance(error, MillraceError):
        assert (report.message, report.error_class) == (str(error), type(error).__name__)
    elif outcome is Outcome.DISK_FULL:
        assert report.error_class == "DiskFullError"
        assert f"no space left for {args.root}" in report.message
    else:
        assert report.message == f"silver.flights: {type(error).__name__}: {str(error) or type(error).__name__}"


def test_a_specs_error_is_reported_before_spark_is_touched(args: JobArgs) -> None:
    report = run_and_report(
        Job.SILVER_MERGE, lambda context: report_of(context.args, Outcome(context.spec.table)), args
    )
    assert (report.outcome, report.error_class) == (Outcome.BAD_SPEC, "SpecError")
    assert str(args.tables) in report.message


@pytest.mark.parametrize(("outcome", "code"), [(Outcome.COMMITTED, 0), (Outcome.GATE_FAILED, 14)])
def test_a_process_exits_with_the_code_of_its_report(args: JobArgs, outcome: Outcome, code: int) -> None:
    with pytest.raises(SystemExit) as exited:
        main(Job.SILVER_MERGE, lambda context: report_of(context.args, outcome), args.to_argv())
    assert exited.value.code == code
    assert JobReport.load(args.report) is not None


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The session module as a driver has it that works against a server."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:1")
    spec = importlib.util.find_spec("millrace_spark.runtime.session")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The address of a server that takes every request and answers none while the test lasts."""
    over = threading.Event()

    class Silent(grpc.GenericRpcHandler):
        def service(self, _: object) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(lambda *_: over.wait() and b"")

    server = grpc.server(ThreadPoolExecutor(1), handlers=(Silent(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"sc://localhost:{port}"
    over.set()
    server.stop(None).wait()


@pytest.mark.timeout(60)
def test_a_release_without_an_answer_does_not_keep_a_driver_alive(remote: ModuleType, silent_server: str) -> None:
    with remote._channel(silent_server).toChannel() as channel, pytest.raises(grpc.RpcError) as ended:
        SparkConnectServiceStub(channel).ReleaseExecute(ReleaseExecuteRequest())
    assert ended.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_an_ended_session_that_is_collected_later_leaves_the_requests_of_others_alone(remote: ModuleType) -> None:
    session = SparkSession("sc://localhost:1")
    session.release_session_on_close = False
    remote._open_sessions.append(session)
    remote._end(session)
    of_others = ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool()

    session.__del__()

    assert of_others.submit(lambda: "done").result(timeout=10) == "done"


DRIVER = """
import os, time
from millrace_spark.runtime.entrypoint import start_process
start_process()
print(os.getpid(), flush=True)
time.sleep(600)
"""
TASK = """
import os, subprocess, sys
from millrace.spark_conf import STARTED_BY
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env={**os.environ, STARTED_BY: str(os.getpid())})
child.wait()
"""


def test_a_driver_whose_task_was_killed_ends_soon() -> None:
    task = subprocess.Popen(
        [sys.executable, "-c", TASK, DRIVER], cwd=CLONE, stdout=subprocess.PIPE, text=True, env=environment()
    )
    driver = psutil.Process(int(task.stdout.readline()))
    time.sleep(2.5)  # it has looked twice
    assert driver.is_running(), "it ended though its task lives"
    task.kill()
    task.wait(timeout=30)
    assert psutil.wait_procs([driver], timeout=30)[1] == []


def test_a_driver_whose_task_is_gone_before_it_looks_ends_at_once() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    ended = run_to_its_end(DRIVER, {STARTED_BY: str(gone.pid)})
    assert ended.returncode == -signal.SIGTERM
    assert f"Process {gone.pid}, which started this driver, is gone" in ended.stderr


def run_to_its_end(driver: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command, env = [sys.executable, "-c", driver], {**environment(), **variables}
    return subprocess.run(command, cwd=CLONE, env=env, capture_output=True, text=True, timeout=60, check=False)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}


LOGGING_DRIVER = """
import logging
from millrace_spark.runtime.entrypoint import start_process
start_process()
for name in ("__main__", "millrace_spark.protocol.batches", "millrace.control.leases", "millrace", "py4j"):
    logging.getLogger(name).info("from %s", name)
"""


def test_a_driver_logs_what_its_job_and_its_modules_say_but_not_libraries() -> None:
    ended = run_to_its_end(LOGGING_DRIVER, {"PYTHONPATH": str(CLONE)})
    lines = [line.split(" INFO ")[1] for line in ended.stderr.splitlines()]
    names = ("__main__", "millrace_spark.protocol.batches", "millrace.control.leases", "millrace")
    assert lines == [f"{name}: from {name}" for name in names], "the job itself runs as __main__"
