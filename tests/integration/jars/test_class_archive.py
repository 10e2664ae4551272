"""The archive of Spark's classes is made once, and drivers take their classes from it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from millrace.driver_environment import driver_environment, own_spark
from millrace.jars.class_archive import build
from millrace.settings import Settings
from millrace.spark_conf import class_archive, launch_conf
from millrace.spark_location import spark_home


def test_an_archive_that_is_newer_than_the_jars_is_kept(tmp_path: Path) -> None:
    archive = class_archive(tmp_path)
    for file in (tmp_path / "a.jar", archive):
        file.touch()
    os.utime(tmp_path / "a.jar", (0, 0))
    assert build(tmp_path) == archive


def test_a_driver_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    loaded = tmp_path / "loaded.txt"
    java = "spark.driver.extraJavaOptions"
    conf = launch_conf(Settings().jars, "local[1]")
    conf[java] = f"{conf[java]} -Xlog:class+load:file={loaded}"
    stated = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    command = [str(spark_home() / "bin" / "spark-submit"), *stated, "--version"]
    environment = driver_environment(os.environ, "local[1]", own_spark())
    subprocess.run(command, env=environment, capture_output=True, check=True)
    archived = [line for line in loaded.read_text().splitlines() if "shared objects file (top)" in line]
    assert sum("org.apache.spark" in line for line in archived) > 100


@pytest.mark.parametrize(("stated", "rights"), [({}, 0o644), ({"LAKEHOUSE_UMASK": "027"}, 0o640)])
def test_the_command_says_what_it_did_and_others_can_read_jars_unless_a_setting_says_otherwise(
    tmp_path: Path, stated: dict[str, str], rights: int
) -> None:
    jars, archive = Settings().jars, class_archive(tmp_path)
    for jar in jars.glob("*.jar"):
        (tmp_path / jar.name).hardlink_to(jar)
    shutil.copy(class_archive(jars), archive)
    (tmp_path / "millrace-formats.jar").unlink()
    os.utime(archive, (2**32, 2**32))
    command = [Path(sys.executable).parent / "lakehouse", "jars", "--into", tmp_path]
    environment = {name: value for name, value in os.environ.items() if name != "LAKEHOUSE_UMASK"} | stated
    done = subprocess.run(command, env=environment, umask=0o022, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{tmp_path} has 49 jars (0 fetched, 46 were there), and an archive of")
    assert (tmp_path / "millrace-formats.jar").stat().st_mode & 0o777 == rights
