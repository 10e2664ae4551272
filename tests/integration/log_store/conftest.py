"""The log stores' classes, callable from Python: no Spark, one small JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from races.versions import Classpath


@pytest.fixture(scope="session")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> Classpath:
    """Of the log stores and the compiled test classes."""
    classpath = Classpath(tmp_path_factory.mktemp("log_store_classes"))
    classpath.compile()
    return classpath


@pytest.fixture(scope="module")
def java(classpath: Classpath) -> Iterator[JavaGateway]:
    """A Java process that ends with the module's last test."""
    port, token, process = launch_gateway(
        classpath=str(classpath), die_on_exit=True, enable_auth=True, return_proc=True, javaopts=["-Xmx256m"]
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway
    gateway.shutdown()
    process.terminate()
    process.wait(timeout=20)
