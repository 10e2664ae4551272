"""Fetch the jars of Millrace's Spark sessions once, so that no run has to.

`jars.lock` names every jar with its checksum: nothing is resolved, no Java runs for it, and no cache of Maven or Ivy is
read or written.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import httpx
from tenacity import retry, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from millrace.errors import MillraceError

_LOCK = Path(__file__).with_name("jars.lock")
_MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
_AT_ONCE = 6
_ATTEMPTS = 5
_TIMEOUT_S = 30
_MIRROR = "DEFAULT_ARTIFACT_REPOSITORY"
"""The variable with the address of a mirror of Maven Central, by which Spark is led to one, too."""
DRIVER_GROUPS = ("delta", "kafka", "s3")
"""Groups of jars.lock that drivers use."""


class JarsError(MillraceError):
    """Raised when a jar cannot be fetched, or differs from the lock."""


@dataclass(frozen=True)
class Jar:
    """One line of jars.lock.

    Attributes:
        coordinate: `group:artifact:version`, as Maven writes it.
        sha256: the SHA-256 of the jar's bytes, in hexadecimal.
    """

    coordinate: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The jar's name in `.jars`.

        >>> Jar("io.delta:delta-storage:4.4.0", "c467").file_name
        'delta-storage-4.4.0.jar'
        """
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"

    @property
    def path(self) -> str:
        """The jar's path in a Maven repository.

        >>> Jar("io.delta:delta-storage:4.4.0", "c467").path
        'io/delta/delta-storage/4.4.0/delta-storage-4.4.0.jar'
        """
        group, artifact, version = self.coordinate.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.file_name}"

    def other_versions(self, folder: Path) -> list[Path]:
        """Return other versions of this jar in `folder`; they must not be on one classpath."""
        _, artifact, _ = self.coordinate.split(":")
        return [path for path in folder.glob(f"{artifact}-[0-9]*.jar") if path.name != self.file_name]


def locked_jars(*groups: str) -> list[Jar]:
    """Return the jars of groups of jars.lock, such as `delta` or `s3`."""
    lock = tomllib.loads(_LOCK.read_text())
    return [Jar(coordinate, sha256) for group in groups for coordinate, sha256 in lock[group].items()]


def missing_jars(jars: Sequence[Jar], folder: Path) -> list[Jar]:
    """Return the jars that `folder` does not have with their checksums."""
    return [jar for jar in jars if _sha256(folder / jar.file_name) != jar.sha256]


def install(jars: Sequence[Jar], folder: Path) -> None:
    """Install these jars into `folder`, check their checksums, and remove other versions of them.

    Several processes may do so at once.

    Args:
        jars: the jars.
        folder: the folder; other files in it stay.

    Raises:
        JarsError: a jar cannot be fetched, or its checksum differs; `folder` is then as before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if missing := missing_jars(jars, folder):
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as scratch:
            _fetch_all(missing, Path(scratch))
            for jar in missing:
                (Path(scratch) / jar.file_name).replace(folder / jar.file_name)
    for jar in jars:
        for outdated in jar.other_versions(folder):
            outdated.unlink(missing_ok=True)


def _fetch_all(jars: Sequence[Jar], scratch: Path) -> None:
    """Fetch the jars, and check them all, so that one error names every checksum that differs."""
    # The machine's own certificates, and those of SSL_CERT_FILE: a company's proxy has its own.
    certificates = ssl.create_default_context()
    pool = ThreadPoolExecutor(_AT_ONCE)
    with httpx.Client(timeout=_TIMEOUT_S, verify=certificates, follow_redirects=True) as http:
        try:
            downloads = [pool.submit(_fetch, http, jar, scratch / jar.file_name) for jar in jars]
            wait(downloads, return_when=FIRST_EXCEPTION)
        finally:
            pool.shutdown(cancel_futures=True)
    for download in downloads:
        if not download.cancelled():
            download.result()
    others = {jar: sha256 for jar in jars if (sha256 := _sha256(scratch / jar.file_name)) != jar.sha256}
    if others:
        raise JarsError(
            f"{repository_name()} delivers other bytes than {_LOCK.name} names",
            *(f"{jar.coordinate} has the SHA-256 {sha256}, not {jar.sha256}." for jar, sha256 in others.items()),
            f"Do not use them before you know why. After a change of a version update the checksum in {_LOCK}.",
        )


def _fetch(http: httpx.Client, jar: Jar, target: Path) -> None:
    """Download a jar.

    Raises:
        JarsError: the repository does not answer, or has no such jar.
    """
    url = f"{repository()}/{jar.path}"
    cause = f"{jar.coordinate} could not be fetched from {_without_user(url)}"
    try:
        _download(http, url, target)
    except httpx.HTTPStatusError as error:
        answer = f"{error.response.status_code} {error.response.reason_phrase}".strip()
        raise JarsError(f"{cause}: {answer}", f"Set {_MIRROR} to a mirror of Maven Central that has it.") from None
    except httpx.HTTPError as error:
        way_out = (
            f"Let this machine reach it (HTTPS_PROXY, SSL_CERT_FILE), or set {_MIRROR} to a mirror of Maven Central"
        )
        raise JarsError(f"{cause}: {error or type(error).__name__}", f"{way_out}.") from None
    except httpx.InvalidURL:  # whose text may have a part of a password
        raise JarsError(cause, f"Set {_MIRROR} to an address such as https://host/path, or not at all.") from None


def _may_pass(error: BaseException) -> bool:
    """Whether another attempt may end otherwise: the network failed, or the server is busy or broken."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code == httpx.codes.TOO_MANY_REQUESTS or error.response.is_server_error
    return isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol)


@retry(
    retry=retry_if_exception(_may_pass),
    stop=stop_after_attempt(_ATTEMPTS),
    wait=wait_exponential_jitter(multiplier=0.5, max=8),
    reraise=True,
)
def _download(http: httpx.Client, url: str, target: Path) -> None:
    with http.stream("GET", url) as answer, target.open("wb") as file:
        answer.raise_for_status()
        for part in answer.iter_bytes():
            file.write(part)


def repository() -> str:
    """Return the address of Maven Central, or of the mirror that the environment names."""
    return (os.environ.get(_MIRROR) or _MAVEN_CENTRAL).rstrip("/")


def repository_name() -> str:
    """Return the address of the repository without the user and password that it may have."""
    return _without_user(repository())


def _without_user(url: str) -> str:
    """Return a URL without the user and password that it may have.

    >>> _without_user("https://ann:secret@host/maven")
    'https://host/maven'
    """
    return re.sub(r"//.*@", "//", url)


def _sha256(path: Path) -> str | None:
    """Return the digest of a file; None if there is no such file."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
