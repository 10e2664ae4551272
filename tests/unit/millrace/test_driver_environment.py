"""A driver finds its parts in any environment with the same settings, and none of Airflow's secrets."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from millrace.driver_environment import TOKEN, driver_environment, own_spark, with_scratch_folder
from millrace.errors import SparkUnavailableError
from millrace.spark_conf import (
    LATE_COMPILER,
    LAUNCH,
    LOG_STORES,
    ONE_COMPILER,
    OWN_MACHINE,
    SESSION,
    SMALL_MACHINE,
    class_archive,
    launch_conf,
)
from millrace.spark_location import spark_home

LEAVES_A_FILE = "import os, signal, tempfile; tempfile.mkstemp(); os.kill(os.getpid(), signal.SIGKILL)"
MASTERS = ["local[2]", "spark://h:7077", "yarn", "sc://localhost:15002"]
SECRETS = {
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://user:secret@db/airflow",
    "AIRFLOW_CONN_SPARK_DEFAULT": '{"password": "secret"}',
    "AIRFLOW_VAR_KEY": "secret",
    "LAKEHOUSE_AIRFLOW": '{"url": "http://airflow", "login": "lakehouse", "password": "secret"}',
    "LAKEHOUSE_METRICS_TOKEN": "secret",
}


@pytest.mark.parametrize("master", MASTERS)
def test_a_driver_keeps_what_is_not_airflows_and_sees_none_of_its_secrets(master: str) -> None:
    base = {**SECRETS, "AIRFLOW_CTX_DAG_ID": "flights", "HOME": "/h", "PYTHONPATH": "/other"}
    environment = driver_environment(base, master, {"MINE": "1"})
    assert "secret" not in str(environment)
    kept = ("AIRFLOW_CTX_DAG_ID", "HOME", "MINE", "PYTHONPATH")
    assert [environment[name] for name in kept] == ["flights", "/h", "1", "/other"]
    plugins = "PYDANTIC_DISABLE_PLUGINS"
    assert environment[plugins] == "__all__"
    assert driver_environment({plugins: "logfire"}, master, {})[plugins] == "logfire"


def test_a_submit_finds_spark_and_python_without_an_activated_environment() -> None:
    environment = driver_environment({"PATH": "/usr/bin"}, "local[2]", {})
    assert (Path(environment["SPARK_HOME"]) / "bin" / "spark-submit").is_file()
    assert environment["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_a_submit_is_not_led_to_a_connect_server_and_keeps_a_spark_of_its_own() -> None:
    base = {
        "SPARK_REMOTE": "sc://elsewhere",
        TOKEN: "t",
        "SPARK_HOME": "/opt/spark",
        "PYSPARK_PYTHON": "/usr/bin/python3",
    }
    environment = driver_environment(base, "yarn", {})
    assert environment["SPARK_HOME"] == "/opt/spark"
    assert environment["PYSPARK_PYTHON"] == "/usr/bin/python3"
    assert not {"SPARK_REMOTE", TOKEN, "SPARK_LOCAL_IP"} & set(environment)
    own = driver_environment(base, "local[1]", own_spark())
    assert own["SPARK_HOME"] == str(spark_home()), "the Spark of this Python uses no other one"
    assert "SPARK_REMOTE" not in own


def test_a_connect_client_is_told_the_server_and_may_bring_its_token_from_the_environment() -> None:
    environment = driver_environment({TOKEN: "from-env"}, "sc://localhost:15002", {})
    assert (environment["SPARK_REMOTE"], environment[TOKEN]) == ("sc://localhost:15002", "from-env")
    assert driver_environment({TOKEN: "old"}, "sc://localhost:15002", {TOKEN: "new"})[TOKEN] == "new"


def test_python_and_java_use_the_folder_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a folder").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a folder"))
    with with_scratch_folder({**os.environ, "JDK_JAVA_OPTIONS": "-Downed=kept"}) as environment:
        folder = Path(environment["TMPDIR"])
        subprocess.run([sys.executable, "-c", LEAVES_A_FILE], env=environment, check=False)
        assert len(list(folder.iterdir())) == 1, "what was killed has left something"
        asked = ["java", "-XshowSettings:properties", "-version"]
        said = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stderr
        assert f"java.io.tmpdir = {folder}\n" in said
        assert "owned = kept\n" in said
        assert environment["SPARK_LOCAL_DIRS"] == str(folder)
    assert list((tmp_path / "a folder").iterdir()) == []


def test_who_names_a_place_for_sparks_files_has_them_there() -> None:
    with with_scratch_folder({"SPARK_LOCAL_DIRS": "/large/disk"}) as environment:
        assert environment["SPARK_LOCAL_DIRS"] == "/large/disk"


CLUSTERS = ["spark://host:7077", "yarn", "k8s://https://host:6443"]
JAVA = "spark.driver.extraJavaOptions"
LOCAL_ONLY = {"spark.driver.extraClassPath", "spark.sql.shuffle.partitions", *OWN_MACHINE}


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    for name in ("b.jar", "a.jar", "notes.txt"):
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize("master", ["local[2]", *CLUSTERS])
def test_every_application_has_the_log_stores_and_the_common_settings_and_no_secret(jars: Path, master: str) -> None:
    conf = launch_conf(jars, master)
    own = {**LAUNCH, **LOG_STORES, **SESSION, JAVA: conf[JAVA]}
    assert conf.items() >= own.items()
    assert conf[JAVA].startswith(LAUNCH[JAVA])
    assert all(isinstance(value, str) for value in conf.values())
    assert "spark.master" not in conf
    words = ("token", "password", "secret", "credential", "access.key")
    assert not [key for key in conf if any(word in key.lower() for word in words)]


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
        with pytest.raises(SparkUnavailableError, match=rf"no Spark jars in {folder}\n`lakehouse jars`"):
            launch_conf(folder, "local[2]")
