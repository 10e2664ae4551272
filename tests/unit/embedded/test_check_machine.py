"""Scripts that look at the machine, on machines whose PATH holds nothing but what a test put there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from include.settings import PROJECT

SCRIPT = PROJECT / "embedded" / "check_machine.sh"
GOOD = {
    "python3.11": 'case "$*" in *version_info*) echo 3.11;; esac',
    "java": "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2",
    "javac": "echo 'javac 17.0.15'",
    "make": "echo 'GNU Make 4.3'",
}

Check = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Runs the check on a machine with the given commands: name -> its shell script."""

    def run(commands: Mapping[str, str], *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        for tool in ("sed", "head", "grep"):
            found = shutil.which(tool)
            assert found
            (tmp_path / tool).symlink_to(found)
        for name, script in commands.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o755)
        command = ["/bin/sh", str(SCRIPT), *arguments]
        return subprocess.run(command, env={"PATH": str(tmp_path), **env}, capture_output=True, text=True, timeout=30)

    return run


def test_a_machine_that_has_all_says_nothing_whatever_java_says_of_its_options(check: Check) -> None:
    done = check({**GOOD, "java": f"echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2; {GOOD['java']}"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_names_the_python_to_use(check: Check) -> None:
    assert check(GOOD, "--python").stdout == "python3.11\n"


def test_a_python_of_the_right_version_may_be_called_python3(check: Check) -> None:
    others = {name: script for name, script in GOOD.items() if name != "python3.11"}
    assert check({**others, "python3": GOOD["python3.11"]}, "--python").stdout == "python3\n"


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"python3.11": None}, ["Python 3.11 (found: none)", "apt install python3.11"]),
        ({"python3.11": None, "python3": "echo 3.13"}, ["Python 3.11 (found: 3.13)"]),
        (
            {"python3.11": 'case "$*" in *version_info*) echo 3.11;; *ensurepip*) exit 1;; esac'},
            ["the venv module of Python 3.11", "apt install python3.11-venv"],
        ),
        ({"java": None, "javac": None}, ["a JDK 17 (found: java none, javac none)", "openjdk-17-jdk-headless"]),
        ({"javac": None}, ["a JDK 17 (found: java 17, javac none)"]),
        ({"java": "echo 'java version \"1.8.0_402\"' >&2"}, ["found: java 8, javac 17"]),
        ({"make": None}, ["GNU make", "apt install make"]),
        ({"make": "echo 'bmake 2023'"}, ["GNU make"]),
    ],
)
def test_what_is_missing_or_wrong_is_told_in_one_line_with_its_cure(
    check: Check, broken: Mapping[str, str | None], told: list[str]
) -> None:
    commands = {name: script for name, script in {**GOOD, **broken}.items() if script is not None}
    done = check(commands)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert [part for part in told if part not in done.stderr] == []


def test_all_that_is_missing_is_told_at_once(check: Check) -> None:
    done = check({})
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert [what for what in ("Python 3.11", "a JDK 17", "GNU make") if what not in done.stderr] == []


def test_java_is_looked_for_where_spark_would_look(check: Check, tmp_path: Path) -> None:
    done = check(GOOD, JAVA_HOME=str(tmp_path / "elsewhere"))
    assert done.returncode == 1
    assert "java none, javac none, by JAVA_HOME=" in done.stderr


PLAYWRIGHT = 'echo "playwright $*" >> done; {ends}'
BY_PLAYWRIGHT = ["playwright install --only-shell chromium"]


def install(machine: Path, commands: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a copy of the script in the folder `machine`, which is all that the machine has.

    Args:
        machine: the folder of the copy.
        commands: a path in the folder -> its shell script.
    """
    script = machine / "embedded" / "browser.sh"
    script.parent.mkdir()
    shutil.copyfile(PROJECT / "embedded" / "browser.sh", script)
    (machine / "bin").mkdir()
    dirname = shutil.which("dirname")
    assert dirname
    (machine / "bin" / "dirname").symlink_to(dirname)
    for name, text in commands.items():
        (machine / name).parent.mkdir(parents=True, exist_ok=True)
        (machine / name).write_text(f"#!/bin/sh\n{text}\n")
        (machine / name).chmod(0o755)
    environment = {"PATH": str(machine / "bin")}
    return subprocess.run(["/bin/sh", str(script)], env=environment, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(("commands", "expected"), [({"bin/chromium": ""}, []), ({}, BY_PLAYWRIGHT)])
def test_the_machines_own_browser_comes_first(commands: dict[str, str], expected: list[str], tmp_path: Path) -> None:
    done = install(tmp_path, {**commands, ".venv/bin/playwright": PLAYWRIGHT.format(ends="true")})
    assert (done.returncode, done.stderr) == (0, "")
    log = tmp_path / "done"
    assert (log.read_text().splitlines() if log.exists() else []) == expected


def test_without_a_browser_it_fails_and_says_what_to_do(tmp_path: Path) -> None:
    done = install(tmp_path, {".venv/bin/playwright": PLAYWRIGHT.format(ends="exit 1")})
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "No browser could be installed: the tests of the web pages are skipped, or fail where CI=true.",
        "Install Chromium (Debian/Ubuntu: apt install chromium).",
    ]
