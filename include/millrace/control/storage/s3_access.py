"""Access to buckets: one boto3 client for each process, and the options with which other engines reach the same store.

boto3's settings decide: `AWS_ENDPOINT_URL_S3`, `AWS_DEFAULT_REGION`, `AWS_PROFILE`, and the credentials in the
environment, in a file, or of the machine. boto3 is imported only when it is needed, because the import takes a third of
a second and most lakehouses have no bucket.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from millrace.errors import NotReadyError, StorageError

Environment: TypeAlias = tuple[tuple[str, str], ...]
"""The variables that boto3 reads."""

_CLIENT_CONFIG: dict[str, Any] = {
    "retries": {"mode": "standard", "max_attempts": 8},
    "connect_timeout": 10,
    "read_timeout": 60,
}
_OF_SESSION = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "region_name": "AWS_DEFAULT_REGION",
    "profile_name": "AWS_PROFILE",
}
"""Argument of a boto3 session -> the variable that has its value."""
_OF_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")
_GONE = ("404", "NoSuchKey", "NotFound")
_BUSY = ("SlowDown", "RequestTimeout", "Throttling", "ThrottlingException", "RequestLimitExceeded")
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired")
_UNANSWERED = "error sending request"
"""Part of delta-rs's message if the store does not answer."""

_CREDENTIALS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"


_of_block: ContextVar[Environment | None] = ContextVar("store_access", default=None)
"""The variables of `store_access`; None outside of it."""


def s3_client(variables: Mapping[str, str] | None = None) -> Any:
    """Return the client of this process, which threads share; a change of the environment creates a new client.

    Args:
        variables: what boto3 reads instead of the environment. Threads with different identities share a process.
    """
    given = _of_block.get() if variables is None else tuple(sorted(variables.items()))
    return _client(_environment()) if given is None else _client_with(given)


@contextmanager
def store_access(variables: Mapping[str, str]) -> Iterator[None]:
    """Reach the store within the block by these variables instead of the environment, which other code shares."""
    token = _of_block.set(tuple(sorted(variables.items())))
    try:
        yield
    finally:
        _of_block.reset(token)


def access_of_block() -> Environment | None:
    """Return the variables of the `store_access` in whose block this is called; None outside of it."""
    return _of_block.get()


@lru_cache(maxsize=1)
def _client(environment: Environment) -> Any:
    from botocore.config import Config

    return _session(environment).client("s3", config=Config(**_CLIENT_CONFIG))


@lru_cache(maxsize=8)
def _client_with(environment: Environment) -> Any:
    from botocore.config import Config

    endpoint = dict(environment).get("AWS_ENDPOINT_URL_S3")
    return _session_with(environment).client("s3", endpoint_url=endpoint, config=Config(**_CLIENT_CONFIG))


@lru_cache(maxsize=8)
def _session_with(environment: Environment) -> Any:
    import boto3

    given = dict(environment)
    return boto3.Session(**{name: given[variable] for name, variable in _OF_SESSION.items() if variable in given})


@lru_cache(maxsize=1)
def _session(_environment: Environment) -> Any:
    import boto3

    return boto3.Session()


def _environment() -> Environment:
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))


def spark_options() -> dict[str, str]:
    """Return the options with which S3A reaches the store: the endpoint that boto3 uses, and no secrets.

    Only Amazon's store has bucket names in host names.
    """
    return {
        "fs.s3a.endpoint": _endpoint(),
        "fs.s3a.endpoint.region": _region(),
        "fs.s3a.path.style.access": str(not _is_amazon()).lower(),
        # Spark's files have random names, so that S3A need not check whether a file or folder of that name exists.
        "fs.s3a.performance.flags": "create",
        # The chain of the SDK finds the same credentials as boto3. The chain of S3A does not read profiles.
        "fs.s3a.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    }


def delta_rs_options() -> dict[str, str]:
    """Return the options with which delta-rs reaches the store; they contain credentials, which expire."""
    return {
        "aws_endpoint": _endpoint(),
        "aws_region": _region(),
        "aws_virtual_hosted_style_request": str(_is_amazon()).lower(),
        "aws_allow_http": str(_endpoint().startswith("http://")).lower(),
        **{f"aws_{name}": value for name, value in _credentials().items()},
    }


def arrow_options() -> dict[str, Any]:
    """Return the options with which Arrow's `S3FileSystem` reaches the store; see `delta_rs_options`."""
    address = urlsplit(_endpoint())
    keys = {"access_key_id": "access_key", "secret_access_key": "secret_key", "session_token": "session_token"}
    return {
        "scheme": address.scheme,
        "endpoint_override": address.netloc,
        "region": _region(),
        **{keys[name]: value for name, value in _credentials().items()},
    }


def _endpoint() -> str:
    return str(s3_client().meta.endpoint_url)


def _region() -> str:
    region = str(s3_client().meta.region_name)
    return region if region != "aws-global" else "us-east-1"


def _is_amazon() -> bool:
    return (urlsplit(_endpoint()).hostname or "").endswith(_OF_AMAZON)


def _credentials() -> dict[str, str]:
    """Return the credentials of boto3, which refreshes them before they expire."""
    given = _of_block.get()
    credentials = (_session(_environment()) if given is None else _session_with(given)).get_credentials()
    frozen = credentials.get_frozen_credentials() if credentials else None
    attributes = {"access_key_id": "access_key", "secret_access_key": "secret_key", "session_token": "token"}
    return {name: value for name, attribute in attributes.items() if (value := getattr(frozen, attribute, None))}


@contextmanager
def translate_storage_errors(place: str) -> Iterator[None]:
    """Translate an error of the store into an error that says what a person can do.

    Raises:
        FileNotFoundError: there is no such object.
        NotReadyError: the store does not answer.
        StorageError: the store refuses the request.
    """
    from botocore import exceptions

    try:
        yield
    except (exceptions.BotoCoreError, exceptions.ClientError, OSError, ValueError) as error:
        # smart_open wraps the errors of boto3.
        raise _translate(place, error.__cause__ or error) from error


def _translate(place: str, error: BaseException) -> Exception:
    from botocore import exceptions

    no_answer = exceptions.ConnectionError | exceptions.HTTPClientError | ConnectionError | TimeoutError
    if isinstance(error, no_answer) or _UNANSWERED in str(error):
        return NotReadyError(f"{place}: no answer ({error})", "Try again later, or check AWS_ENDPOINT_URL_S3.")
    if isinstance(error, exceptions.NoCredentialsError):
        return StorageError(f"{place}: no credentials", f"Give this process {_CREDENTIALS}.")
    code, status = _code_and_status(error)
    if code in _BUSY or status >= 500:
        return NotReadyError(f"{place}: the store is busy or has an internal error ({error})", "Try again later.")
    if code in _GONE:
        return FileNotFoundError(place)
    if code in _EXPIRED:
        cause = f"{place}: the credentials have expired ({code})"
        return StorageError(cause, f"Renew them ({_CREDENTIALS}), then retry.")
    return StorageError(
        f"{place} cannot be read ({error})",
        "Check the bucket (LAKEHOUSE_ROOT, LAKEHOUSE_LANDING, or source.landing of the spec) and its permissions, "
        f"AWS_ENDPOINT_URL_S3, and {_CREDENTIALS}.",
    )


def _code_and_status(error: BaseException) -> tuple[str, int]:
    """Return the error code of the store, and the HTTP status, 0 if unknown; delta-rs only quotes the answer."""
    if response := getattr(error, "response", None):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return str(response.get("Error", {}).get("Code")), int(status)
    match = re.search(r"<Code>(\w+)</Code>", str(error))
    return match[1] if match else "", 0
