"""The home of the stack, its processes, and scripts that look at the machine."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from embedded.clone import CLONE
from embedded.home import Home, free_port, keep_secret
from embedded.stack_processes import of_stack, recorded, spawn, stop
from millrace.processes import end_processes
from tests.support.waiting import wait_for

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
DEAF = [sys.executable, "-uc", "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf'); time.sleep(60)"]
PARENT = [
    sys.executable,
    "-c",
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
    " start_new_session=True); print('ready', flush=True); time.sleep(60)",
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    home.prepare()
    yield home
    end_processes(of_stack(home), grace_s=0)
    assert of_stack(home) == []


def start(home: Home, name: str, argv: list[str]) -> psutil.Process:
    return spawn(home, name, argv, os.environ, cwd=home.path)


def test_a_process_is_found_by_its_name_and_without_its_record_as_one_of_the_stack(home: Home) -> None:
    process = start(home, "one", SLEEP)
    assert recorded(home, "one") == process
    assert recorded(home, "other") is None
    (home.pids / "one").write_text(f"{process.pid} {process.create_time() - 100}")
    assert recorded(home, "one") is None, "a later process with the same pid is another one"
    (home.pids / "one").unlink()
    assert recorded(home, "one") is None
    assert of_stack(home) == [process]


def test_a_grandchild_in_another_session_is_found_after_its_parents_were_killed(home: Home) -> None:
    parent = start(home, "parent", PARENT)
    wait_for((home.logs / "parent.log").read_text)
    assert len(of_stack(home)) == 2
    parent.kill()
    parent.wait()
    (left,) = of_stack(home)
    assert left.ppid() != parent.pid


def test_stacks_do_not_find_each_others_processes(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    other.prepare()
    process = start(other, "one", SLEEP)
    assert of_stack(home) == []
    assert of_stack(other) == [process]
    stop(other, "one", patience_s=10)


def test_a_process_that_ignores_sigterm_is_killed(home: Home) -> None:
    deaf = start(home, "deaf", DEAF)
    wait_for((home.logs / "deaf.log").read_text)
    assert end_processes([deaf], grace_s=0.3) == 1
    assert recorded(home, "deaf") is None


def test_the_log_of_the_process_before_is_kept(home: Home) -> None:
    for word in ("first", "second"):
        start(home, "talk", [sys.executable, "-c", f"print('{word}')"]).wait()
    assert (home.logs / "talk.log").read_text() == "second\n"
    assert (home.logs / "talk.log.1").read_text() == "first\n"


def test_only_the_owner_can_read_secrets_logs_and_state(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    home.prepare()
    private = [home.airflow, home.spark, home.logs, home.pids, home.secrets]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in private} == {0o700}
    file = home.secrets / "token"
    assert keep_secret(file, "first") == keep_secret(file, "second") == "first"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_preferred_port_is_kept_while_it_is_free_and_left_when_it_is_taken() -> None:
    port = free_port()
    assert free_port(port) == port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        assert free_port(port) not in (0, port)


SCRIPT = CLONE / "embedded" / "check_machine.sh"
GOOD = {
    "python3.11": 'case "$*" in *version_info*) echo 3.11;; esac',
    "java": "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2",
    "javac": "echo 'javac 17.0.15'",
    "make": "echo 'GNU Make 4.3'",
}
WITHOUT_VENV = 'case "$*" in *version_info*) echo 3.11;; *ensurepip*) exit 1;; esac'

Check = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Runs the check on a machine with the given commands: name -> its shell script."""

    def run(commands: Mapping[str, str], *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        for tool in ("sed", "head", "grep"):
            (tmp_path / tool).symlink_to(str(shutil.which(tool)))
        for name, script in commands.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o755)
        command = ["/bin/sh", str(SCRIPT), *arguments]
        return subprocess.run(command, env={"PATH": str(tmp_path), **env}, capture_output=True, text=True, timeout=30)

    return run


def test_a_machine_that_has_all_says_nothing_whatever_java_says_of_its_options(check: Check) -> None:
    done = check({**GOOD, "java": f"echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2; {GOOD['java']}"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("python", ["python3.11", "python3"])
def test_it_names_the_python_to_use(check: Check, python: str) -> None:
    others = {name: script for name, script in GOOD.items() if name != "python3.11"}
    assert check({**others, python: GOOD["python3.11"]}, "--python").stdout == f"{python}\n"


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"python3.11": None}, ["Python 3.11 (found: none)", "apt install python3.11"]),
        ({"python3.11": None, "python3": "echo 3.13"}, ["Python 3.11 (found: 3.13)"]),
        ({"python3.11": WITHOUT_VENV}, ["the venv module of Python 3.11", "apt install python3.11-venv"]),
        ({"java": None, "javac": None}, ["a JDK 17 (found: java none, javac none)", "openjdk-17-jdk-headless"]),
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


@pytest.mark.parametrize(
    ("manager", "told", "other"),
    [
        ({"apt-get": "", "uname": "echo Linux"}, "apt install", "brew"),
        ({"uname": "echo Darwin"}, "brew install", "apt"),
    ],
)
def test_the_way_to_install_is_that_of_this_machine(
    check: Check, manager: Mapping[str, str], told: str, other: str
) -> None:
    done = check(manager)
    assert told in done.stderr
    assert other not in done.stderr


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
    shutil.copyfile(CLONE / "embedded" / "browser.sh", script)
    (machine / "bin").mkdir()
    (machine / "bin" / "dirname").symlink_to(str(shutil.which("dirname")))
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
