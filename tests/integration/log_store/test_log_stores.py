"""Both log stores, on local disk and on moto's S3 server: one writer wins a version, and no file is ever half there.

Their classes are called from Python: no Spark, one small JVM.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from uuid import uuid4

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from embedded.servers.s3 import s3_bucket
from races.versions import CONDITIONAL_PUT, HARD_LINK, Classpath, Race, commit_name, local_contents
from tests.support.storage.delta_log_files import Log
from tests.support.storage.faulty_s3 import conflict, faulty_s3

LOCAL = "io.delta.storage.LocalLogStore"
FIRST, CHECKPOINT = commit_name(0), "_last_checkpoint"
FIVE_MB = 5 * 1024 * 1024
ACCESS = {"fs.s3a.access.key": "testing", "fs.s3a.secret.key": "testing"}
ACCESS_BY_ENVIRONMENT = (("AWS_ACCESS_KEY_ID", "testing"), ("AWS_SECRET_ACCESS_KEY", "testing"))
TWO_WRITERS = ("ann", "bob")


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> Classpath:
    """Of the log stores and the compiled test classes."""
    classpath = Classpath(tmp_path_factory.mktemp("log_store_classes"))
    classpath.compile()
    return classpath


@pytest.fixture(scope="module")
def java(classpath: Classpath) -> Iterator[JavaGateway]:
    """A Java process that ends with the last test."""
    port, token, process = launch_gateway(
        classpath=str(classpath), die_on_exit=True, enable_auth=True, return_proc=True, javaopts=["-Xmx256m"]
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway
    gateway.shutdown()
    process.terminate()
    process.wait(timeout=20)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log folder whose name must be escaped in a URI."""
    folder = tmp_path / "lake house 100%25 é" / "_delta_log"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def local(java: JavaGateway, folder: Path) -> Log:
    return Log(java, HARD_LINK, str(folder))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3 server with the bucket `lake`."""
    with s3_bucket("lake") as bucket:
        yield bucket.endpoint


@pytest.fixture
def settings(endpoint: str) -> dict[str, str]:
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
    }


@pytest.fixture
def on_s3(java: JavaGateway, settings: dict[str, str]) -> Log:
    by_parts = {"fs.s3a.multipart.size": str(FIVE_MB)}
    return Log(java, CONDITIONAL_PUT, f"s3a://lake/{uuid4().hex}/_delta_log", {**settings, **ACCESS, **by_parts})


def hidden_files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_of_processes_on_local_disk_one_wins_each_version_and_its_content_stays(
    classpath: Classpath, folder: Path, tmp_path: Path
) -> None:
    answers = Race(classpath, HARD_LINK, str(folder), versions=100).run(tmp_path / "barrier", TWO_WRITERS)

    assert len({writer for told in answers.winners.values() for writer in told}) > 1
    assert [len(told) for told in answers.winners.values()] == [1] * 100
    assert answers.lost(local_contents(folder, 100)) == 0
    assert sorted(path.name for path in folder.iterdir()) == [commit_name(version) for version in range(100)]


def test_the_race_catches_a_stock_store_of_local_disk_that_loses_acknowledged_commits(
    classpath: Classpath, tmp_path: Path
) -> None:
    renames = ("fs.AbstractFileSystem.file.impl=RenameAtTheInstant",)
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        race = Race(classpath, "io.delta.storage.HDFSLogStore", str(folder), 10, renames)
        if race.run(tmp_path / "barrier", TWO_WRITERS).lost(local_contents(folder, 10)):
            return

    pytest.fail("no commit was lost")


def test_of_writers_on_s3_one_wins_each_version_by_the_bucket_s_own_answer(on_s3: Log) -> None:
    start, answers = threading.Barrier(2, timeout=60), list[str]()

    def won(writer: str) -> list[str]:
        versions = []
        for version in range(10):
            start.wait()
            try:
                on_s3.write(commit_name(version), [writer])
                versions.append(commit_name(version))
            except Py4JJavaError as taken:
                answers.append(taken.java_exception.getCause().getMessage())
        return versions

    with ThreadPoolExecutor() as threads:
        wins = dict(zip(TWO_WRITERS, threads.map(won, TWO_WRITERS), strict=True))

    assert [on_s3.read(name) for names in wins.values() for name in names] == [
        [writer] for writer, names in wins.items() for _ in names
    ]
    assert sorted(chain(*wins.values())) == on_s3.names_from(FIRST) == [commit_name(version) for version in range(10)]
    assert len(answers) == 10
    assert all("412" in answer or "409" in answer for answer in answers), answers


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "versions", "loses"),
    [(CONDITIONAL_PUT, 15, False), ("io.delta.storage.S3SingleDriverLogStore", 10, True)],
    ids=["ours", "the stock store, so that the race is seen to catch it"],
)
def test_of_processes_on_s3_one_wins_each_version_and_its_content_stays(
    classpath: Classpath, on_s3: Log, settings: dict[str, str], tmp_path: Path, store: str, versions: int, loses: bool
) -> None:
    pairs = tuple(f"{key}={value}" for key, value in settings.items())
    race = Race(classpath, store, on_s3.folder, versions, pairs, ACCESS_BY_ENVIRONMENT)
    answers = race.run(tmp_path / "barrier", TWO_WRITERS)

    lost = answers.lost({version: on_s3.read(commit_name(version))[0] for version in range(versions)})
    assert (lost > 0) is loses
    assert len({writer for told in answers.winners.values() for writer in told}) > 1
    if not loses:
        assert [len(told) for told in answers.winners.values()] == [1] * versions
        assert on_s3.names_from(FIRST) == [commit_name(version) for version in range(versions)]


def test_a_commit_is_read_back_as_written_and_leaves_no_hidden_file(local: Log, folder: Path) -> None:
    lines = ['{"commitInfo":{"note":"grüße 🛫"}}', '{"add":{"path":"a%20b"}}']

    local.write(FIRST, lines)

    assert local.read(FIRST) == lines
    assert (folder / FIRST).read_text() == "\n".join(lines) + "\n"
    assert hidden_files(folder) == []


@pytest.mark.parametrize(
    ("log", "line", "cause"),
    [("local", "{}", ""), ("on_s3", "{}", "412"), ("on_s3", "x" * (FIVE_MB + 1), "412")],
    ids=["local disk", "one put", "put in parts"],
)
def test_a_taken_version_is_refused_in_the_way_delta_knows(
    request: pytest.FixtureRequest, folder: Path, log: str, line: str, cause: str
) -> None:
    store: Log = request.getfixturevalue(log)
    store.write(FIRST, ["mine", line])

    with pytest.raises(Py4JJavaError) as refused:
        store.write(FIRST, ["yours", line])

    taken = refused.value.java_exception
    assert taken.getClass().getName() == "java.nio.file.FileAlreadyExistsException"
    assert not cause or cause in taken.getCause().getMessage()
    assert store.read(FIRST) == ["mine", line]
    assert hidden_files(folder) == []


@pytest.mark.parametrize("log", ["local", "on_s3"])
def test_a_commit_whose_actions_fail_midway_leaves_nothing_and_an_overwritten_file_is_replaced(
    request: pytest.FixtureRequest, folder: Path, log: str
) -> None:
    store: Log = request.getfixturevalue(log)
    store.write(CHECKPOINT, ["old"], overwrite=True)
    store.write(CHECKPOINT, ["new"], overwrite=True)

    with pytest.raises(Py4JJavaError, match="ClassCastException"):
        store.write(FIRST, ["whole", 1])

    assert store.names_from(FIRST) == [CHECKPOINT]
    assert store.read(CHECKPOINT) == ["new"]
    assert hidden_files(folder) == []


def test_a_killed_writer_leaves_its_version_free_and_its_temporary_file_unlisted(
    classpath: Classpath, local: Log, folder: Path, tmp_path: Path
) -> None:
    barrier = tmp_path / "barrier"
    barrier.write_bytes(bytes(4))
    writer = Race(classpath, HARD_LINK, str(folder), versions=1).start("ann", barrier, writers=2)
    deadline = time.monotonic() + 60
    while not hidden_files(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    writer.kill()
    writer.wait()

    assert [name[-4:] for name in hidden_files(folder)] == [".tmp"]
    assert local.names_from(FIRST) == []
    local.write(FIRST, ["mine"])
    assert local.names_from(FIRST) == [FIRST]


@pytest.mark.parametrize(("store", "torn"), [(HARD_LINK, False), (LOCAL, True)])
def test_readers_of_an_overwritten_file_see_the_old_or_the_new_one_whole(
    java: JavaGateway, folder: Path, store: str, torn: bool
) -> None:
    log, contents = Log(java, store, str(folder)), ["a" * 100_000, "b" * 100_000]
    file = folder / CHECKPOINT
    log.write(file.name, contents[:1], overwrite=True)
    writer = threading.Thread(
        target=lambda: [log.write(file.name, [contents[turn % 2]], overwrite=True) for turn in range(80)]
    )
    seen = set()
    writer.start()
    while writer.is_alive():
        seen.add(file.read_text().removesuffix("\n"))
    writer.join()

    assert seen >= set(contents)
    assert (seen > set(contents)) is torn


def test_a_checksum_file_left_by_a_stock_store_does_not_spoil_an_overwritten_file(
    java: JavaGateway, local: Log, folder: Path
) -> None:
    Log(java, LOCAL, str(folder)).write(CHECKPOINT, ["stock"], overwrite=True)
    (folder / CHECKPOINT).write_text("other\n")
    with pytest.raises(Py4JJavaError, match="ChecksumException"):
        local.read(CHECKPOINT)

    local.write(CHECKPOINT, ["ours"], overwrite=True)

    assert local.read(CHECKPOINT) == ["ours"]


def test_a_file_system_without_hard_links_and_a_path_of_another_scheme_are_refused(
    java: JavaGateway, tmp_path: Path
) -> None:
    refusal = java.jvm.io.millrace.logstore.LinkInZip.refusal(str(tmp_path / "no_links.zip"))
    assert refusal.startswith("Move the tables (LAKEHOUSE_ROOT) to S3 or to a file system with hard links")
    assert FIRST in refusal
    assert "(type zipfs)" in refusal
    with pytest.raises(Py4JJavaError, match="Wrong FS: hdfs://"):
        Log(java, HARD_LINK, "hdfs://namenode/_delta_log").write(FIRST, ["{}"])


def test_a_put_that_meets_another_one_is_refused_in_the_way_delta_knows_so_that_it_puts_again(
    java: JavaGateway, endpoint: str, settings: dict[str, str]
) -> None:
    with faulty_s3(endpoint) as proxy:
        at_proxy = {**settings, "fs.s3a.endpoint": proxy.endpoint, "fs.s3a.impl.disable.cache": "true"}
        log = Log(java, CONDITIONAL_PUT, f"s3a://lake/{uuid4().hex}/_delta_log", {**at_proxy, **ACCESS})
        proxy.on("PUT", FIRST, conflict)
        with pytest.raises(Py4JJavaError) as refused:
            log.write(FIRST, ["mine"])
        taken = refused.value.java_exception
        assert taken.getClass().getName() == "java.nio.file.FileAlreadyExistsException"
        assert "409" in taken.getCause().getMessage()
        log.write(FIRST, ["mine"])
        assert log.read(FIRST) == ["mine"]


def test_a_client_without_conditional_puts_is_refused_with_the_way_out(
    java: JavaGateway, settings: dict[str, str]
) -> None:
    off = {"fs.s3a.create.conditional.enabled": "false", "fs.s3a.impl.disable.cache": "true"}
    log = Log(java, CONDITIONAL_PUT, f"s3a://lake/{uuid4().hex}/_delta_log", {**settings, **ACCESS, **off})

    with pytest.raises(Py4JJavaError, match=r"Use hadoop-aws 3\.4\.2 or later \(lakehouse jars\) and leave fs\.s3a"):
        log.write(FIRST, ["{}"])
