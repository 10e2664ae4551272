"""Build the archive of the classes that a Spark driver loads, so that each JVM on this machine maps them.

The archive only makes a start quicker: a JVM ignores the classes that do not fit (another JDK, a changed jar). It is
Java's dynamic CDS archive (JEP 350).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from millrace.driver_environment import driver_environment, own_spark
from millrace.errors import SparkUnavailableError
from millrace.spark_conf import class_archive, launch_conf
from millrace.spark_location import data_plane, job_file, spark_home

_TRAINING = "class_training.py"
_MASTER = "local[2]"


def is_current(jars: Path) -> bool:
    """Whether there is an archive that is newer than all jars."""
    archive = class_archive(jars)
    newest = max(path.stat().st_mtime for path in (*jars.glob("*.jar"), data_plane() / _TRAINING))
    return archive.is_file() and archive.stat().st_mtime > newest


def build(jars: Path) -> Path | None:
    """Make the archive from one training run, unless it is newer than all jars; None if this JVM can make none.

    Raises:
        SparkUnavailableError: Spark does not run on this machine.
    """
    archive = class_archive(jars)
    if not is_current(jars):
        archive.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=jars, prefix=".training-") as scratch:
            unfinished = Path(scratch) / archive.name
            _train(jars, unfinished, Path(scratch))
            if unfinished.is_file():
                unfinished.replace(archive)
    return archive if archive.is_file() else None


def _train(jars: Path, archive: Path, folder: Path) -> None:
    """Run the training in a folder; a JVM that cannot archive its classes ends well, too."""
    conf = launch_conf(jars, _MASTER)
    java = "spark.driver.extraJavaOptions"
    conf[java] = f'{conf[java]} "-XX:ArchiveClassesAtExit={archive}"'
    options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", _MASTER, *options, job_file(_TRAINING)]
    command.append(str(folder / "lake"))
    environment = driver_environment(os.environ, _MASTER, own_spark())
    # Spark drops folders such as spark-warehouse where it is started.
    run = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600
    )
    if run.returncode != 0:
        last_lines = "\n".join(line for line in run.stderr.strip().split("\n")[-15:] if line.strip())
        raise SparkUnavailableError(
            "Spark does not run on this machine", f"The last lines of spark-submit:\n{last_lines}"
        )
