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
LOCAL_ONLY = {"spark.driver.extraClassPath", "spark.sql.shuffle.partitions"}


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    for name in ("b.jar", "a.jar", "notes.txt"):
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize("master", ["local[2]", "local[*]", *CLUSTERS])
def test_every_application_has_the_log_stores_and_the_settings_of_the_house(jars: Path, master: str) -> None:
    conf = launch_conf(jars, master)
    java = "spark.driver.extraJavaOptions"
    own = {**LAUNCH, **LOG_STORES, **SESSION, java: conf[java]}
    assert conf.items() >= own.items()
    assert conf[java].startswith(LAUNCH[java])
    assert all(isinstance(value, str) for value in conf.values())
    assert "spark.master" not in conf


def test_what_the_commit_protocol_rests_on_is_set() -> None:
    assert LOG_STORES["spark.delta.logStore.file.impl"] == "io.millrace.logstore.HardLinkLogStore"
    assert LOG_STORES["spark.delta.logStore.s3a.impl"] == "io.millrace.logstore.ConditionalPutLogStore"
    assert SESSION["spark.databricks.delta.commit.idempotencyCheck.enabled"] == "true"
    assert SESSION["spark.databricks.delta.autoCompact.enabled"] == "false"
    assert SESSION["spark.sql.session.timeZone"] == "UTC"
    assert SESSION["spark.sql.ansi.enabled"] == "true"


def test_every_log_store_that_is_named_is_a_class_that_set_up_compiles() -> None:
    sources = Path(__file__).parents[3] / "spark_jobs" / "log_store" / "src"
    classes = {
        path.relative_to(sources).with_suffix("").as_posix().replace("/", ".") for path in sources.rglob("*.java")
    }
    assert classes
    assert set(LOG_STORES.values()) <= classes


def test_the_codec_that_is_named_is_a_class_that_set_up_compiles() -> None:
    sources = Path(__file__).parents[3] / "spark_jobs" / "formats" / "src"
    codec = LAUNCH["spark.hadoop.io.compression.codecs"]
    assert (sources / f"{codec.replace('.', '/')}.java").is_file()


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
    java = "spark.driver.extraJavaOptions"
    assert "SharedArchiveFile" not in launch_conf(jars, "local[2]")[java]
    class_archive(jars).touch()
    assert launch_conf(jars, "local[2]")[java].endswith(f' "-XX:SharedArchiveFile={class_archive(jars)}"')


@pytest.mark.parametrize("master", CLUSTERS)
def test_a_cluster_driver_keeps_the_compilers_of_its_jvm(jars: Path, master: str) -> None:
    assert "TieredStopAtLevel" in launch_conf(jars, "local[2]")["spark.driver.extraJavaOptions"]
    assert launch_conf(jars, master)["spark.driver.extraJavaOptions"] == LAUNCH["spark.driver.extraJavaOptions"]


def test_the_second_compiler_is_for_large_loads_alone(jars: Path) -> None:
    java = "spark.driver.extraJavaOptions"
    assert ONE_COMPILER in launch_conf(jars, "local[2]")[java].split()
    large = launch_conf(jars, "local[2]", large_load=True)[java]
    assert ONE_COMPILER not in large.split()
    assert LATE_COMPILER in large
    assert SMALL_MACHINE in large


@pytest.mark.parametrize("master", CLUSTERS)
def test_a_cluster_is_sent_the_jars_and_keeps_its_own_partitions(jars: Path, master: str) -> None:
    conf = launch_conf(jars, master)
    assert conf["spark.jars"] == f"{jars}/a.jar,{jars}/b.jar"
    assert not LOCAL_ONLY & conf.keys()


@pytest.mark.parametrize("folder", ["empty", "nowhere"])
def test_without_jars_the_error_says_what_to_run(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=f"no Spark jars in {tmp_path / folder}: run `make setup`"):
        launch_conf(tmp_path / folder, "local[2]")


def test_no_setting_names_a_secret(jars: Path) -> None:
    words = ("token", "password", "secret", "credential", "access.key")
    assert not [key for key in launch_conf(jars, "local[2]") if any(word in key.lower() for word in words)]
