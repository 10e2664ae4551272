"""A task whose driver left no right report says so, and believes a commit that was reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException

from include.errors import DiskFullError
from tests.unit.plugins.lakehouse_airflow.operators.conftest import COMMITTED, House, driver_log, writer

MakeRun = Callable[..., dict[str, Any]]


@pytest.mark.usefixtures("warm_server")
def test_a_driver_without_a_report_names_its_log_and_its_last_lines_are_shown(
    house: House, run_of: MakeRun, capfd: pytest.CaptureFixture[str]
) -> None:
    house.deliver()
    house.job("print('about to die'); sys.exit(9)")
    task = writer()
    with pytest.raises(
        AirflowException, match=r"^bronze.orders: the driver of bronze_ingest ended without a report"
    ) as raised:
        task.execute(run_of())
    assert "driver_logs/shop/" in str(raised.value)
    assert "(exit code 9)" in str(raised.value)
    assert driver_log(house) == "about to die\n"
    assert "The last lines of the driver:\nabout to die" in capfd.readouterr().out


@pytest.mark.usefixtures("warm_server")
def test_a_driver_that_could_not_write_its_report_says_which_disk_is_full(house: House, run_of: MakeRun) -> None:
    house.deliver()
    house.job("sys.exit(16)")
    with pytest.raises(DiskFullError, match=r"^bronze.orders: the disk is full: no space left for .*_millrace/reports"):
        writer().execute(run_of())


@pytest.mark.usefixtures("warm_server")
def test_a_report_of_an_earlier_run_does_not_count(house: House, run_of: MakeRun) -> None:
    house.deliver()
    house.job(COMMITTED)
    writer().execute(run_of())
    house.job("sys.exit(0)")
    with pytest.raises(AirflowException, match="ended without a report"):
        writer().execute(run_of())


@pytest.mark.usefixtures("warm_server")
def test_a_job_that_reported_its_commit_and_then_crashed_has_committed(house: House, run_of: MakeRun) -> None:
    house.deliver()
    house.job(COMMITTED + "sys.exit(134)")
    assert writer().execute(run_of())["outcome"] == "committed"
