"""A driver as a child process: its reports as they appear, and a log that does not grow without end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from millrace.cli.runs import driver as cli_driver
from millrace.cli.runs.driver import Driver
from millrace.contracts.job.interval_args import DomainArgs
from millrace.contracts.job.report import JobReport
from millrace.errors import Outcome
from millrace.settings import Settings
from tests.support.ledger.delta_tables import day

FOLLOWER = """
import sys, time
from pathlib import Path
folder, whole = Path(sys.argv[1]), Path(sys.argv[2]).read_text()
for number in range(1, 5):
    print("x" * 3000, flush=True)
    (folder / "partial").write_text(whole.replace("bronze.a", f"bronze.a{number}"))
    (folder / "partial").rename(folder / f"{number:06d}.json")
    time.sleep(0.25)
print("the end", flush=True)
"""


def test_reports_come_in_their_order_and_a_long_log_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = DomainArgs(
        domain="shop",
        run_id="run",
        root=tmp_path / "lake",
        landing=tmp_path / "landing",
        tables=tmp_path / "tables",
        reports=tmp_path / "reports",
    )
    report = JobReport(job="job", table="bronze.a", outcome=Outcome.COMMITTED, message="", interval=day(), run_id="run")
    report.save(tmp_path / "report.json")
    command = [sys.executable, "-c", FOLLOWER, str(args.reports), str(tmp_path / "report.json")]
    monkeypatch.setattr(cli_driver, "driver_command", lambda *_, **__: command)
    monkeypatch.setattr(cli_driver, "_LOG_BYTES", 4000)
    driver = Driver(Settings(root=tmp_path / "lake"), args)
    tables = [item.table for item in driver.follow() if isinstance(item, JobReport)]
    assert tables == ["bronze.a1", "bronze.a2", "bronze.a3", "bronze.a4"]
    assert driver.end().last_lines.endswith("the end")
    assert args.log_file.with_suffix(".1.log").stat().st_size > 4000
    assert args.log_file.stat().st_size < 9000
