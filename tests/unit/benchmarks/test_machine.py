"""The trap that notices a start of Java."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from benchmarks.machine import JavaTrap
from include.spark_location import spark_home


def test_a_process_without_java_leaves_the_trap_alone(tmp_path: Path) -> None:
    trap = JavaTrap(tmp_path / "trap")
    subprocess.run(["true"], env=trap.environment(os.environ), check=True)
    assert not trap.was_sprung


def test_java_on_the_path_springs_the_trap_and_fails(tmp_path: Path) -> None:
    trap = JavaTrap(tmp_path / "trap")
    done = subprocess.run(["/bin/sh", "-c", "java -version"], env=trap.environment(os.environ), check=False)
    assert trap.was_sprung
    assert done.returncode == 97


def test_spark_submit_springs_the_trap(tmp_path: Path) -> None:
    trap = JavaTrap(tmp_path / "trap")
    submit = [str(spark_home() / "bin" / "spark-submit"), "--version"]
    subprocess.run(submit, env=trap.environment(os.environ), check=False, timeout=60)
    assert trap.was_sprung


def test_a_trap_is_set_again(tmp_path: Path) -> None:
    trap = JavaTrap(tmp_path / "trap")
    subprocess.run(["/bin/sh", "-c", "java"], env=trap.environment(os.environ), check=False)
    assert trap.was_sprung
    trap.environment(os.environ)
    assert not trap.was_sprung
