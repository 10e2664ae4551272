"""On S3 one writer wins a version, and an object is put whole or not at all. Against moto's S3 server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from embedded.servers.s3 import s3_bucket
from races.versions import CONDITIONAL_PUT, Classpath, Race, commit_name
from tests.support.storage.delta_log_files import Log
from tests.support.storage.faulty_s3 import conflict, faulty_s3

FIRST = commit_name(0)
FIVE_MB = 5 * 1024 * 1024
ACCESS = {"fs.s3a.access.key": "testing", "fs.s3a.secret.key": "testing"}
ACCESS_BY_ENVIRONMENT = (("AWS_ACCESS_KEY_ID", "testing"), ("AWS_SECRET_ACCESS_KEY", "testing"))


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
def folder() -> str:
    return f"s3a://lake/{uuid4().hex}/_delta_log"


@pytest.fixture
def log(java: JavaGateway, folder: str, settings: dict[str, str]) -> Log:
    return Log(java, CONDITIONAL_PUT, folder, {**settings, **ACCESS})


def run_race(classpath: Classpath, store: str, versions: int, log: Log, settings: dict[str, str], barrier: Path) -> Any:
    """The winners of each version, and how many acknowledged commits are not in the log."""
    pairs = tuple(f"{key}={value}" for key, value in settings.items())
    answers = Race(classpath, store, log.folder, versions, pairs, ACCESS_BY_ENVIRONMENT).run(barrier)
    contents = {version: log.read(commit_name(version))[0] for version in range(versions)}
    return answers.winners, answers.lost(contents)


def test_of_three_processes_one_wins_each_version_and_its_content_stays(
    classpath: Classpath, log: Log, settings: dict[str, str], tmp_path: Path
) -> None:
    winners, losses = run_race(classpath, CONDITIONAL_PUT, 40, log, settings, tmp_path / "barrier")

    assert len({writer for told in winners.values() for writer in told}) > 1
    assert [len(told) for told in winners.values()] == [1] * 40
    assert losses == 0
    assert log.names_from(FIRST) == [commit_name(version) for version in range(40)]


def test_the_race_catches_the_stock_store_that_loses_acknowledged_commits(
    classpath: Classpath, log: Log, settings: dict[str, str], tmp_path: Path
) -> None:
    _, losses = run_race(classpath, "io.delta.storage.S3SingleDriverLogStore", 10, log, settings, tmp_path / "barrier")

    assert losses > 0


@pytest.mark.parametrize("line", ["{}", "x" * (FIVE_MB + 1)], ids=["one put", "put in parts"])
def test_a_taken_version_is_refused_in_the_way_delta_knows(
    java: JavaGateway, folder: str, settings: dict[str, str], line: str
) -> None:
    log = Log(java, CONDITIONAL_PUT, folder, {**settings, **ACCESS, "fs.s3a.multipart.size": str(FIVE_MB)})
    log.write(FIRST, ["mine", line])

    with pytest.raises(Py4JJavaError) as refused:
        log.write(FIRST, ["yours", line])

    taken = refused.value.java_exception
    assert taken.getClass().getName() == "java.nio.file.FileAlreadyExistsException"
    assert "412" in taken.getCause().getMessage()
    assert log.read(FIRST) == ["mine", line]


def test_a_put_that_meets_another_one_is_refused_in_the_way_delta_knows_so_that_it_puts_again(
    java: JavaGateway, endpoint: str, folder: str, settings: dict[str, str]
) -> None:
    with faulty_s3(endpoint) as proxy:
        at_proxy = {**settings, "fs.s3a.endpoint": proxy.endpoint, "fs.s3a.impl.disable.cache": "true"}
        log = Log(java, CONDITIONAL_PUT, folder, {**at_proxy, **ACCESS})
        proxy.on("PUT", FIRST, conflict)
        with pytest.raises(Py4JJavaError) as refused:
            log.write(FIRST, ["mine"])
        taken = refused.value.java_exception
        assert taken.getClass().getName() == "java.nio.file.FileAlreadyExistsException"
        assert "409" in taken.getCause().getMessage()
        log.write(FIRST, ["mine"])
        assert log.read(FIRST) == ["mine"]


def test_a_commit_whose_actions_fail_midway_puts_nothing(log: Log) -> None:
    log.write("_last_checkpoint", ["so that the folder exists"], overwrite=True)

    with pytest.raises(Py4JJavaError, match="ClassCastException"):
        log.write(FIRST, ["whole", 1])

    assert log.names_from(FIRST) == ["_last_checkpoint"]


def test_an_overwritten_file_is_replaced(log: Log) -> None:
    log.write("_last_checkpoint", ["old"], overwrite=True)
    log.write("_last_checkpoint", ["new"], overwrite=True)

    assert log.read("_last_checkpoint") == ["new"]


def test_a_client_without_conditional_puts_is_refused_with_the_way_out(
    java: JavaGateway, folder: str, settings: dict[str, str]
) -> None:
    off = {"fs.s3a.create.conditional.enabled": "false", "fs.s3a.impl.disable.cache": "true"}
    log = Log(java, CONDITIONAL_PUT, folder, {**settings, **ACCESS, **off})

    with pytest.raises(Py4JJavaError, match=r"Use hadoop-aws 3\.4\.2 or later \(make setup\) and leave fs\.s3a"):
        log.write(FIRST, ["{}"])
