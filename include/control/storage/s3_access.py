"""How a bucket is reached: one client of boto3's for this process, and what leads other engines to the same store.

boto3's own settings rule: `AWS_ENDPOINT_URL_S3`, `AWS_DEFAULT_REGION`, `AWS_PROFILE`, the credentials in the
environment, in a file, or of the machine. boto3 is imported where it is needed: it takes a third of a second, and most
lakehouses have no bucket.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from include.errors import NotReadyError, StorageError

Environment: TypeAlias = tuple[tuple[str, str], ...]
"""The variables that boto3 looks at."""

_PATIENT: dict[str, Any] = {
    "retries": {"mode": "standard", "max_attempts": 8},
    "connect_timeout": 10,
    "read_timeout": 60,
}
_OF_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")
_GONE = ("404", "NoSuchKey", "NotFound")
_BUSY = ("SlowDown", "RequestTimeout", "Throttling", "ThrottlingException", "RequestLimitExceeded")
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired")
_UNANSWERED = "error sending request"
"""As delta-rs says it."""

_CREDENTIALS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"


def s3_client() -> Any:
    """The client of this process, made anew when its environment says something else; threads may share it."""
    return _client(_environment())


@lru_cache(maxsize=1)
def _client(environment: Environment) -> Any:
    from botocore.config import Config

    return _session(environment).client("s3", config=Config(**_PATIENT))


@lru_cache(maxsize=1)
def _session(_environment: Environment) -> Any:
    import boto3

    return boto3.Session()


def _environment() -> Environment:
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))


def spark_options() -> dict[str, str]:
    """What leads S3A to the store: the endpoint, as boto3 has found it; no secrets.

    Stores other than Amazon's have no bucket names in their host names.
    """
    return {
        "fs.s3a.endpoint": _endpoint(),
        "fs.s3a.endpoint.region": _region(),
        "fs.s3a.path.style.access": str(not _is_amazon()).lower(),
        # Spark's files have random names: S3A need not look whether one of them, or a folder of its name, exists.
        "fs.s3a.performance.flags": "create",
        # A summary of the table beside each commit, which takes a rename: twenty requests, and nobody needs it.
        "spark.databricks.delta.writeChecksumFile.enabled": "false",
        # The SDK's own chain finds what boto3 finds. S3A's knows no profile.
        "fs.s3a.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    }


def delta_rs_options() -> dict[str, str]:
    """What leads delta-rs to the store, for this moment: credentials may expire. They stay within this process."""
    return {
        "aws_endpoint": _endpoint(),
        "aws_region": _region(),
        "aws_virtual_hosted_style_request": str(_is_amazon()).lower(),
        "aws_allow_http": str(_endpoint().startswith("http://")).lower(),
        **{f"aws_{name}": value for name, value in _credentials().items()},
    }


def arrow_options() -> dict[str, Any]:
    """What leads Arrow's `S3FileSystem` to the store; see `delta_rs_options`."""
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
    """The credentials that boto3 has found, refreshed where they are about to expire."""
    found = _session(_environment()).get_credentials()
    frozen = found.get_frozen_credentials() if found else None
    named = {"access_key_id": "access_key", "secret_access_key": "secret_key", "session_token": "token"}
    return {name: value for name, of in named.items() if (value := getattr(frozen, of, None))}


@contextmanager
def translate_storage_errors(place: str) -> Iterator[None]:
    """Say what a person can do about an error of the store.

    Raises:
        FileNotFoundError: there is no such object.
        NotReadyError: the store does not answer.
        StorageError: it refuses.
    """
    from botocore import exceptions

    try:
        yield
    except (exceptions.BotoCoreError, exceptions.ClientError, OSError, ValueError) as error:
        # smart_open wraps what boto3 raised.
        raise _plain_error(place, error.__cause__ or error) from error


def _plain_error(place: str, error: BaseException) -> Exception:
    from botocore import exceptions

    said_nothing = exceptions.ConnectionError | exceptions.HTTPClientError | ConnectionError | TimeoutError
    if isinstance(error, said_nothing) or _UNANSWERED in str(error):
        return NotReadyError(f"{place}: no answer ({error})\nTry again later, or see AWS_ENDPOINT_URL_S3.")
    if isinstance(error, exceptions.NoCredentialsError):
        return StorageError(f"{place}: no credentials\nGive this process {_CREDENTIALS}.")
    code = _code_of(error)
    if code in _BUSY or _status_of(error) >= 500:
        return NotReadyError(f"{place}: the store is busy, or in trouble itself ({error})\nTry again later.")
    if code in _GONE:
        return FileNotFoundError(place)
    if code in _EXPIRED:
        return StorageError(f"{place}: the credentials have expired ({code})\nRenew them ({_CREDENTIALS}), then retry.")
    return StorageError(
        f"{place} cannot be read ({error})\nSee the bucket (LAKEHOUSE_ROOT, LAKEHOUSE_LANDING, or source.landing of "
        f"the spec) and its permissions, AWS_ENDPOINT_URL_S3, and {_CREDENTIALS}."
    )


def _code_of(error: BaseException) -> str:
    """The store's own word for what is wrong: boto3 has read it, delta-rs quotes the whole answer."""
    response = getattr(error, "response", None)
    if response:
        return str(response.get("Error", {}).get("Code"))
    quoted = re.search(r"<Code>(\w+)</Code>", str(error))
    return quoted[1] if quoted else ""


def _status_of(error: BaseException) -> int:
    """The HTTP status of the store's answer; 0 where boto3 has read none."""
    response = getattr(error, "response", None) or {}
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
