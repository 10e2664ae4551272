"""The Spark settings of every session: the same everywhere but for what a cluster needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from include.spark_conf import (
    LATE_COMPILER,
    LAUNCH,
    LOG_STORES,
    ONE_COMPILER,
    SESSION,
    SMALL_MACHINE,
    class_archive,
    launch_conf,
)

CLUSTERS = ["spark://host:7077", "yarn", "k8s://https://host:6443"]
JAVA = "spark.driver.extraJavaOptions"
LOCAL_ONLY = {"spark.driver.extraClassPath", "spark.sql.shuffle.partitions"}


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    for name in ("b.jar", "a.jar", "notes.txt"):
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize("master", ["local[2]", *CLUSTERS])
def test_every_application_has_the_log_stores_and_the_settings_of_the_house_and_no_secret(
    jars: Path, master: str
) -> None:
    conf = launch_conf(jars, master)
    own = {**LAUNCH, **LOG_STORES, **SESSION, JAVA: conf[JAVA]}
    assert conf.items() >= own.items()
    assert conf[JAVA].startswith(LAUNCH[JAVA])
    assert all(isinstance(value, str) for value in conf.values())
    assert "spark.master" not in conf
    words = ("token", "password", "secret", "credential", "access.key")
    assert not [key for key in conf if any(word in key.lower() for word in words)]


def test_what_the_commit_protocol_rests_on_is_set() -> None:
    assert LOG_STORES["spark.delta.logStore.file.impl"] == "io.millrace.logstore.HardLinkLogStore"
    assert LOG_STORES["spark.delta.logStore.s3a.impl"] == "io.millrace.logstore.ConditionalPutLogStore"
    assert SESSION["spark.databricks.delta.commit.idempotencyCheck.enabled"] == "true"
    assert SESSION["spark.databricks.delta.autoCompact.enabled"] == "false"
    assert SESSION["spark.sql.session.timeZone"] == "UTC"
    assert SESSION["spark.sql.ansi.enabled"] == "true"


@pytest.mark.parametrize(
    ("master", "partitions"),
    [("local[2]", "2"), ("local[7]", "7"), ("local[3,4]", "3"), ("local[*]", str(os.cpu_count()))],
)
def test_on_one_machine_the_shuffle_partitions_follow_the_cores(jars: Path, master: str, partitions: str) -> None:
    conf = launch_conf(jars, master)
    assert conf["spark.sql.shuffle.partitions"] == partitions
    assert conf["spark.driver.extraClassPath"] == f"{jars}/*"
    assert "spark.jars" not in conf


def test_a_driver_here_is_told_of_the_class_archive_once_it_is_made(jars: Path) -> None:
    assert "SharedArchiveFile" not in launch_conf(jars, "local[2]")[JAVA]
    class_archive(jars).touch()
    assert launch_conf(jars, "local[2]")[JAVA].endswith(f' "-XX:SharedArchiveFile={class_archive(jars)}"')


def test_the_second_compiler_is_for_large_loads_alone(jars: Path) -> None:
    assert ONE_COMPILER in launch_conf(jars, "local[2]")[JAVA].split()
    large = launch_conf(jars, "local[2]", large_load=True)[JAVA]
    assert ONE_COMPILER not in large.split()
    assert LATE_COMPILER in large
    assert SMALL_MACHINE in large


@pytest.mark.parametrize("master", CLUSTERS)
def test_a_cluster_is_sent_the_jars_and_keeps_its_own_partitions_and_compilers(jars: Path, master: str) -> None:
    conf = launch_conf(jars, master)
    assert conf["spark.jars"] == f"{jars}/a.jar,{jars}/b.jar"
    assert not LOCAL_ONLY & conf.keys()
    assert conf[JAVA] == LAUNCH[JAVA]


def test_without_jars_the_error_says_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match=f"no Spark jars in {folder}: run `make setup`"):
            launch_conf(folder, "local[2]")
