"""The archive of Spark's classes is made once, and drivers take their classes from it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

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
