"""The trap that notices a start of Java."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from benchmarks.machine import JavaTrap
from include.spark_location import spark_home


def test_java_springs_the_trap_and_nothing_else_does(tmp_path: Path) -> None:
    trap = JavaTrap(tmp_path / "trap")
    submit = [str(spark_home() / "bin" / "spark-submit"), "--version"]
    for command, springs in ((["true"], False), (["/bin/sh", "-c", "java -version"], True), (submit, True)):
        subprocess.run(command, env=trap.environment(os.environ), check=False, timeout=60)
        assert trap.was_sprung is springs, command
