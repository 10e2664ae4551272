"""The home of the stack and its processes."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from embedded.home import Home, free_port, keep_secret
from embedded.stack_processes import of_stack, recorded, spawn, stop
from include.processes import end_processes

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


def wait_for_log(home: Home, name: str) -> None:
    deadline = time.monotonic() + 20
    while not (home.logs / f"{name}.log").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


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
    wait_for_log(home, "parent")
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
    wait_for_log(home, "deaf")
    assert end_processes([deaf], grace_s=0.3) == 1
    assert recorded(home, "deaf") is None


def test_a_process_accepts_sigint_even_when_this_one_ignores_it(home: Home) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = start(home, "one", SLEEP)
    finally:
        signal.signal(signal.SIGINT, before)
    assert end_processes([process], grace_s=20, by=signal.SIGINT) == 0, "none had to be killed"
    assert recorded(home, "one") is None


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
