"""On local disk one writer wins a version, a killed one leaves nothing, and readers see whole files."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from races.versions import HARD_LINK, Classpath, Race, commit_name, local_contents
from tests.support.storage.delta_log_files import Log

LOCAL = "io.delta.storage.LocalLogStore"
HDFS = "io.delta.storage.HDFSLogStore"
FIRST = commit_name(0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log folder whose name must be escaped in a URI."""
    folder = tmp_path / "lake house 100%25 é" / "_delta_log"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def log(java: JavaGateway, folder: Path) -> Log:
    return Log(java, HARD_LINK, str(folder))


def hidden_files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_of_three_processes_one_wins_each_version_and_its_content_stays(
    classpath: Classpath, folder: Path, tmp_path: Path
) -> None:
    answers = Race(classpath, HARD_LINK, str(folder), versions=300).run(tmp_path / "barrier")
    winners = answers.winners

    assert len({writer for told in winners.values() for writer in told}) > 1
    assert [len(told) for told in winners.values()] == [1] * 300
    assert answers.lost(local_contents(folder, 300)) == 0
    assert sorted(path.name for path in folder.iterdir()) == [commit_name(version) for version in range(300)]


@pytest.mark.parametrize(
    ("store", "versions", "settings"),
    [(LOCAL, 60, ()), (HDFS, 10, ("fs.AbstractFileSystem.file.impl=RenameAtTheInstant",))],
    ids=["LocalLogStore", "HDFSLogStore"],
)
def test_the_race_catches_a_stock_store_that_loses_acknowledged_commits(
    classpath: Classpath, tmp_path: Path, store: str, versions: int, settings: tuple[str, ...]
) -> None:
    losses = 0
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        answers = Race(classpath, store, str(folder), versions, settings).run(tmp_path / "barrier")
        losses = answers.lost(local_contents(folder, versions))
        if losses:
            break

    assert losses > 0


def test_a_commit_is_read_back_as_written_and_leaves_no_hidden_file(log: Log, folder: Path) -> None:
    lines = ['{"commitInfo":{"note":"grüße 🛫"}}', '{"add":{"path":"a%20b"}}']

    log.write(FIRST, lines)

    assert log.read(FIRST) == lines
    assert (folder / FIRST).read_text() == "\n".join(lines) + "\n"
    assert hidden_files(folder) == []


def test_a_taken_version_is_refused_in_the_way_delta_knows(log: Log, folder: Path) -> None:
    log.write(FIRST, ["mine"])

    with pytest.raises(Py4JJavaError) as refused:
        log.write(FIRST, ["yours"])

    assert refused.value.java_exception.getClass().getName() == "java.nio.file.FileAlreadyExistsException"
    assert log.read(FIRST) == ["mine"]
    assert hidden_files(folder) == []


def test_a_commit_whose_actions_fail_midway_leaves_nothing(log: Log, folder: Path) -> None:
    with pytest.raises(Py4JJavaError, match="ClassCastException"):
        log.write(FIRST, ["whole", 1])

    assert list(folder.iterdir()) == []


def test_a_killed_writer_leaves_its_version_free_and_its_temporary_file_unlisted(
    classpath: Classpath, log: Log, folder: Path, tmp_path: Path
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
    assert log.names_from(FIRST) == []
    log.write(FIRST, ["mine"])
    assert log.names_from(FIRST) == [FIRST]


@pytest.mark.parametrize(("store", "torn"), [(HARD_LINK, False), (LOCAL, True)])
def test_readers_of_an_overwritten_file_see_the_old_or_the_new_one_whole(
    java: JavaGateway, folder: Path, store: str, torn: bool
) -> None:
    log, contents = Log(java, store, str(folder)), ["a" * 100_000, "b" * 100_000]
    file = folder / "_last_checkpoint"
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
    java: JavaGateway, log: Log, folder: Path
) -> None:
    Log(java, LOCAL, str(folder)).write("_last_checkpoint", ["stock"], overwrite=True)
    (folder / "_last_checkpoint").write_text("other\n")
    with pytest.raises(Py4JJavaError, match="ChecksumException"):
        log.read("_last_checkpoint")

    log.write("_last_checkpoint", ["ours"], overwrite=True)

    assert log.read("_last_checkpoint") == ["ours"]


def test_a_file_system_without_hard_links_is_refused_with_the_way_out(java: JavaGateway, tmp_path: Path) -> None:
    refusal = java.jvm.io.millrace.logstore.LinkInZip.refusal(str(tmp_path / "no_links.zip"))

    assert refusal.startswith("Move the tables (LAKEHOUSE_ROOT) to S3 or to a file system with hard links")
    assert FIRST in refusal
    assert "(type zipfs)" in refusal


def test_a_path_of_another_scheme_is_refused(java: JavaGateway) -> None:
    with pytest.raises(Py4JJavaError, match="Wrong FS: hdfs://"):
        Log(java, HARD_LINK, "hdfs://namenode/_delta_log").write(FIRST, ["{}"])
