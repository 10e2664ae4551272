"""Set-up takes the jars that the lock names and no others. A Maven repository on loopback plays Maven Central."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from embedded.jars import Jar, JarsError, install

pytestmark = pytest.mark.slow

POM = "<project><groupId>test.millrace</groupId><artifactId>tool</artifactId><version>{version}</version></project>"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a Maven repository that is being served."""
    folder = tmp_path / "repository"
    folder.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", f"http://127.0.0.1:{server.server_port}/")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder
        server.shutdown()


def publish(repository: Path, version: str, content: bytes) -> Jar:
    """Serve one version of `tool`; returns its right line of the lock."""
    folder = repository / "test" / "millrace" / "tool" / version
    folder.mkdir(parents=True)
    (folder / f"tool-{version}.pom").write_text(POM.format(version=version))
    (folder / f"tool-{version}.jar").write_bytes(content)
    return Jar(f"test.millrace:tool:{version}", hashlib.sha256(content).hexdigest())


def test_a_jar_is_resolved_once_and_replaced_when_it_is_damaged_or_outdated(repository: Path, tmp_path: Path) -> None:
    jars, jar = tmp_path / "jars", publish(repository, "2.0", b"good")
    jars.mkdir()
    (jars / "tool-1.0.jar").write_bytes(b"an older version")
    (jars / "tool-2.0.jar").write_bytes(b"cut sho")
    (jars / "driver-1.0.jar").write_bytes(b"of the user")

    install([jar], jars)

    assert {path.name: path.read_bytes() for path in jars.iterdir()} == {
        "tool-2.0.jar": b"good",
        "driver-1.0.jar": b"of the user",
    }
    (repository / "test").rename(repository / "gone")
    install([jar], jars)
    with pytest.raises(JarsError, match=r"(?s)DEFAULT_ARTIFACT_REPOSITORY to a mirror.*tool;9\.9: not found"):
        install([Jar("test.millrace:tool:9.9", "00")], jars)


def test_a_jar_with_other_bytes_than_the_lock_names_is_refused(repository: Path, tmp_path: Path) -> None:
    jars, jar = tmp_path / "jars", publish(repository, "2.0", b"good")
    (repository / "test/millrace/tool/2.0/tool-2.0.jar").write_bytes(b"evil")

    with pytest.raises(JarsError, match=r"The download of test\.millrace:tool:2\.0 has the SHA-256") as refused:
        install([jar], jars)

    assert jar.sha256 in str(refused.value)
    assert hashlib.sha256(b"evil").hexdigest() in str(refused.value)
    assert list(jars.iterdir()) == []
