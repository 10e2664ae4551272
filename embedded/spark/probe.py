"""Request the version of a Spark Connect server: the cheapest request that only a working server answers."""

from __future__ import annotations

import uuid

import grpc


def answers(port: int, token: str) -> bool:
    """Whether the Spark Connect server on a loopback port answers a client with `token` within five seconds.

    The result is False for a wrong token, a closed port and another kind of server.
    """
    from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

    context = base_pb2.UserContext(user_id="millrace-probe")
    session = str(uuid.uuid4())
    version = base_pb2.AnalyzePlanRequest.SparkVersion()
    request = base_pb2.AnalyzePlanRequest(session_id=session, user_context=context, spark_version=version)
    credentials = grpc.composite_channel_credentials(
        grpc.local_channel_credentials(), grpc.access_token_call_credentials(token)
    )
    with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
        server = base_pb2_grpc.SparkConnectServiceStub(channel)  # type: ignore[no-untyped-call]
        try:
            answer = server.AnalyzePlan(request, timeout=5)
            server.ReleaseSession(base_pb2.ReleaseSessionRequest(session_id=session, user_context=context), timeout=5)
        except grpc.RpcError:
            return False
    return bool(answer.spark_version.version)
