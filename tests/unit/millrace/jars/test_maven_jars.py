"""Set-up takes the jars that the lock names and no others. A Maven repository on loopback plays Maven Central."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from millrace.jars.maven_jars import Jar, JarsError, install

Answer = Callable[[BaseHTTPRequestHandler, bytes], None]


def begin(request: BaseHTTPRequestHandler, content: bytes) -> None:
    """Answer with the first half of the content."""
    request.send_response(200)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content[: len(content) // 2])


def deliver(request: BaseHTTPRequestHandler, content: bytes) -> None:
    begin(request, content)
    request.wfile.write(content[len(content) // 2 :])


def refuse(status: int) -> Answer:
    return lambda request, _: request.send_error(status)


@dataclass
class Repository:
    """A Maven repository: what it has by path, and how it answers the first requests of each."""

    jars: dict[str, bytes] = field(default_factory=dict)
    first: dict[str, list[Answer]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    address: str = ""

    def publish(self, name: str, content: bytes, *first: Answer) -> Jar:
        """Serve version 2.0 of a jar; returns its right line of the lock."""
        path = f"/maven/test/millrace/{name}/2.0/{name}-2.0.jar"
        self.jars[path], self.first[path] = content, list(first)
        return Jar(f"test.millrace:{name}:2.0", hashlib.sha256(content).hexdigest())

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer a request."""
        self.asked[request.path] += 1
        if request.path not in self.jars:
            request.send_error(404)
        else:
            answer = self.first[request.path].pop(0) if self.first[request.path] else deliver
            answer(request, self.jars[request.path])


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A repository that is being served to a machine with neither Java nor patience."""
    served = Repository()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.address = f"127.0.0.1:{server.server_port}/maven"
        monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", f"http://ann:secret@{served.address}/")
        monkeypatch.setenv("PATH", "")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield served
        server.shutdown()


def test_a_jar_is_fetched_once_and_replaced_when_it_is_damaged_or_outdated(
    repository: Repository, tmp_path: Path
) -> None:
    jars, jar = tmp_path / "jars", repository.publish("tool", b"good")
    jars.mkdir()
    (jars / "tool-1.0.jar").write_bytes(b"an older version")
    (jars / "tool-2.0.jar").write_bytes(b"cut sho")
    (jars / "driver-1.0.jar").write_bytes(b"of the user")

    for _ in range(2):
        install([jar], jars)
        assert {path.name: path.read_bytes() for path in jars.iterdir()} == {
            "tool-2.0.jar": b"good",
            "driver-1.0.jar": b"of the user",
        }
        assert repository.asked.total() == 1


def test_a_maven_cache_with_a_pom_alone_is_not_looked_at(repository: Repository, tmp_path: Path) -> None:
    jar = repository.publish("tool", b"good")
    cached = tmp_path / "home/.m2/repository/test/millrace/tool/2.0/tool-2.0.pom"
    cached.parent.mkdir(parents=True)
    cached.write_text("<project/>")

    install([jar], tmp_path / "jars")

    assert (tmp_path / "jars/tool-2.0.jar").read_bytes() == b"good"
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == [cached]


def test_all_jars_with_other_bytes_than_the_lock_names_are_refused_at_once(
    repository: Repository, tmp_path: Path
) -> None:
    right, *wrong = (repository.publish(name, b"good") for name in ("right", "one", "two"))
    for path in list(repository.jars)[1:]:
        repository.jars[path] = b"evil"

    with pytest.raises(JarsError, match=rf"^http://{repository.address} delivers other bytes") as refused:
        install([right, *wrong], tmp_path)

    for jar in wrong:
        assert f"{jar.coordinate} has the SHA-256 {hashlib.sha256(b'evil').hexdigest()}, not {jar.sha256}" in str(
            refused.value
        )
    assert right.coordinate not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_may_pass_is_asked_for_again(repository: Repository, tmp_path: Path) -> None:
    jars = [
        repository.publish("busy", b"late", refuse(503), refuse(429)),
        repository.publish("cut", b"whole", begin),
    ]
    install(jars, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "busy-2.0.jar": b"late",
        "cut-2.0.jar": b"whole",
    }
    assert sorted(repository.asked.values()) == [2, 3]


def test_a_jar_that_is_not_to_be_had_is_named_with_its_place_and_no_password(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, missing = repository.publish("tool", b"good"), Jar("test.millrace:tool:9.9", "00")
    place = f"http://{repository.address}/test/millrace/tool/9.9/tool-9.9.jar"

    with pytest.raises(
        JarsError, match=rf"^test\.millrace:tool:9\.9 could not be fetched from {place}: 404"
    ) as refused:
        install([there, missing], tmp_path)
    assert "DEFAULT_ARTIFACT_REPOSITORY to a mirror" in str(refused.value)
    assert repository.asked["/maven/test/millrace/tool/9.9/tool-9.9.jar"] == 1

    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "http://ann:secret@127.0.0.1:1")
    with pytest.raises(JarsError, match=r"127.0.0.1:1/test/.*refused\nLet this machine reach it") as unreachable:
        install([there], tmp_path)
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "http://ann:sec/ret@127.0.0.1")
    with pytest.raises(JarsError, match="to an address such as") as unreadable:
        install([there], tmp_path)

    assert not any("sec" in str(error.value) for error in (refused, unreachable, unreadable))
    assert list(tmp_path.iterdir()) == []


def test_two_set_ups_at_once_install_the_same_and_show_no_unfinished_jar(
    repository: Repository, tmp_path: Path
) -> None:
    shown: list[list[Path]] = []
    both_wait = threading.Barrier(2, action=lambda: shown.append(list(tmp_path.glob("*.jar"))))

    def deliver_slowly(request: BaseHTTPRequestHandler, content: bytes) -> None:
        begin(request, content)
        both_wait.wait(timeout=30)
        request.wfile.write(content[len(content) // 2 :])

    jar = repository.publish("tool", b"good and long", deliver_slowly, deliver_slowly)
    with ThreadPoolExecutor(2) as pool:
        for set_up in [pool.submit(install, [jar], tmp_path) for _ in range(2)]:
            set_up.result()

    assert shown == [[]]
    assert repository.asked.total() == 2
    assert [path.name for path in tmp_path.iterdir()] == ["tool-2.0.jar"]
