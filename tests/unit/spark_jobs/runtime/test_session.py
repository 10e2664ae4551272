"""Sessions of a Spark Connect server, where pyspark's client would wait for ever."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import grpc
import pytest
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator
from pyspark.sql.connect.proto import ReleaseExecuteRequest
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub
from pyspark.sql.connect.session import SparkSession


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The session module as a driver has it that works against a server."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:1")
    spec = importlib.util.find_spec("spark_jobs.runtime.session")
    assert spec is not None
    assert spec.loader is not None
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
def test_a_release_that_is_never_answered_does_not_keep_the_driver_from_ending(
    remote: ModuleType, silent_server: str
) -> None:
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
