"""`embedded/browser.sh`, on machines that have nothing but what a test gave them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from include.settings import PROJECT

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
