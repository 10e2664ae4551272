"""`lakehouse run` with a Spark of its own: a small domain from landing files to certified gold, by spark-submit."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from deltalake import DeltaTable

from embedded.airflow.standalone import clean_environment
from embedded.clone import CLONE
from millrace.errors import ExitCode
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse, order

pytestmark = pytest.mark.slow

LAKEHOUSE = Path(sys.executable).parent / "lakehouse"
RUN = [str(LAKEHOUSE), "run", "--interval", "2013-01-01"]


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """An installation of its own, with one day of three events of two orders."""
    shop = Lakehouse(tmp_path)
    shop.specs(bronze_document(), silver_document(), gold_document())
    shop.deliver(1, "orders.json", [order(1, 5, 8), order(2, 7, 8), order(1, 6, 9)])
    (tmp_path / "tmp").mkdir()
    return {**shop.environment(), "LAKEHOUSE_JARS": str(CLONE / ".jars"), "TMPDIR": str(tmp_path / "tmp")}


def run(place: Mapping[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        command, env={**clean_environment(), **place}, capture_output=True, text=True, timeout=500, check=False
    )


def gold_rows(place: Mapping[str, str]) -> list[dict[str, object]]:
    """Day, orders and revenue of the gold table."""
    table = DeltaTable(f"{place['LAKEHOUSE_ROOT']}/gold/revenue_daily").to_pyarrow_table()
    return [{**row, "day": str(row["day"])} for row in table.select(["day", "orders", "revenue"]).to_pylist()]


@pytest.mark.timeout(1200)
def test_one_command_carries_a_day_to_gold_and_a_second_one_finds_nothing_new(place: dict[str, str]) -> None:
    first = run(place, *RUN)
    assert first.returncode == 0, first.stdout + first.stderr
    assert first.stdout.count("committed") == 6
    assert list(Path(place["TMPDIR"]).iterdir()) == [], "nothing is left behind"
    assert gold_rows(place) == [{"day": "2013-01-01", "orders": 2, "revenue": 13}]

    versions = run(place, str(LAKEHOUSE), "tables").stdout
    second = run(place, *RUN)
    assert second.returncode == 0, second.stdout + second.stderr
    assert second.stdout.count("no op") == 3
    assert "nothing is new, so no Spark was started" in second.stdout
    assert run(place, str(LAKEHOUSE), "tables").stdout == versions
    assert "nothing to do" in run(place, str(LAKEHOUSE), "plan", "--interval", "2013-01-01").stdout


@pytest.mark.timeout(1200)
def test_many_days_run_in_one_driver_and_go_on_past_a_missing_one(place: dict[str, str], tmp_path: Path) -> None:
    Lakehouse(tmp_path).deliver(3, "orders.json", [order(3, 4, 8, of_day=3)])
    several = [*RUN, "--to", "2013-01-03"]
    done = run(place, *several, "--skip-missing")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "date=2013-01-02" in done.stdout, "the missing folder is told"
    assert sorted(str(row["day"]) for row in gold_rows(place)) == ["2013-01-01", "2013-01-03"]
    assert len(list(Path(place["LAKEHOUSE_ROOT"]).rglob("driver.log"))) == 1
    again = run(place, str(LAKEHOUSE), "plan", *several[2:])
    assert again.returncode == ExitCode.NOT_READY
    assert "A run stops after 2013-01-02" in again.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_ended_leaves_no_process(place: dict[str, str], how: signal.Signals) -> None:
    environment, quiet = {**clean_environment(), **place}, subprocess.DEVNULL
    process = psutil.Popen(RUN, env=environment, stdout=quiet, stderr=quiet, preexec_fn=as_at_a_terminal)
    family = _family_with_a_jvm(process)
    process.send_signal(how)
    assert process.wait(60) not in (0, ExitCode.NOT_READY)
    _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []
    assert list(Path(place["TMPDIR"]).iterdir()) == [], "nothing is left behind"


def as_at_a_terminal() -> None:
    """Take notice of Ctrl-C, though these tests may run in the background, where it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _family_with_a_jvm(process: psutil.Popen) -> list[psutil.Process]:
    """The command's descendants, once there is a JVM and its Python among them."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        family = process.children(recursive=True)
        names = {one.name() for one in family if one.is_running()}
        if "java" in names and any(name.startswith("python") for name in names):
            return family
        time.sleep(0.2)
    raise AssertionError("the driver did not start within two minutes")
