"""What the image runs: days by two containers at once, and the race for versions that our log stores decide."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from demo.source_system import lay_out
from millrace.settings import Settings
from tests.e2e.days import FIRST, SECOND
from tests.support.docker_images import BUILD_S, RUN_S, build_image, docker
from tests.support.right_tables import assert_rows_of_source

DATA = "/opt/millrace/demo/data"

pytestmark = [pytest.mark.faults, pytest.mark.timeout(BUILD_S + 2 * RUN_S)]

ALONE = ("--network", "none", "--hostname", "localhost")
"""Without a network: all that a job needs is in the image."""

RunIn = Callable[..., subprocess.CompletedProcess[str]]
"""Runs a command in a container of its own."""


@pytest.fixture(scope="module")
def image() -> str:
    """The tag of the image, which is built once."""
    return build_image()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder that the image's user may write to."""
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def run(image: str, data: Path) -> RunIn:
    return lambda *command: docker("run", "--rm", "--init", *ALONE, "-v", f"{data}:{DATA}", image, *command)


def test_two_containers_that_load_the_same_days_at_once_load_them_once(run: RunIn, data: Path) -> None:
    settings = Settings(root=data / "lakehouse", landing=str(data / "landing"))
    lay_out(Path(settings.landing), FIRST, SECOND + timedelta(days=1))
    days = ("lakehouse", "run", "--interval", f"{FIRST}", "--to", f"{SECOND}")
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda _: run(*days), range(2)))
    assert [one.returncode for one in ended] == [0, 0], "\n".join(one.stdout + one.stderr for one in ended)
    assert_rows_of_source(settings, FIRST, SECOND)


def test_of_processes_that_race_in_the_image_one_wins_each_version(run: RunIn) -> None:
    raced = run("python", "-m", "races", "versions", "--place", "disk", "--versions", "100")
    assert raced.returncode == 0, raced.stdout + raced.stderr
    assert "HardLinkLogStore" in raced.stdout, "it has raced"


def test_the_image_holds_nothing_of_the_folder_that_it_was_built_from(run: RunIn) -> None:
    found = run("sh", "-c", "ls -A /opt/millrace; ls -A /opt/millrace/demo/data; id -un")
    assert found.returncode == 0, found.stderr
    names = set(found.stdout.split())
    assert {"include", "spark_jobs", ".venv", ".jars", "millrace"} <= names
    assert names.isdisjoint({".git", ".home", "landing", "lakehouse", "root"})
