"""The flights through a real Airflow: a day of a backfill ends in the tables that the source calls for."""

from __future__ import annotations

from ipaddress import ip_address

import psutil
import pytest

from demo.backfill import DayOfBackfill, restart_backfill, watch
from embedded.airflow.api import AirflowApi
from embedded.stack import Stack, remaining_processes
from millrace.settings import Settings
from tests.e2e.days import FIRST, PATIENCE_S
from tests.support.right_tables import TABLES, assert_rows_of_source

SENSORS = 3
"""The bronze tables with landing files."""


@pytest.fixture(scope="module")
def day(api: AirflowApi) -> DayOfBackfill:
    restart_backfill(api, "flights", FIRST, FIRST, at_once=1)
    [day] = list(watch(api, "flights", FIRST, FIRST, PATIENCE_S))[-1]
    return day


@pytest.mark.timeout(900)
def test_a_backfill_of_a_day_ends_in_the_right_tables(day: DayOfBackfill, lakehouse: Settings) -> None:
    assert day.day == FIRST
    assert len(day.tasks) == 2 * TABLES + SENSORS
    assert {task.state for task in day.tasks} == {"success"}
    assert_rows_of_source(lakehouse, FIRST, FIRST)


def test_the_note_of_a_run_and_the_log_of_a_task_name_its_day(api: AirflowApi, day: DayOfBackfill) -> None:
    assert api.get(day.run.path)["note"] == f"Data of {FIRST} (UTC)"
    first, *_ = api.log(api.task(day.run, "silver.weather"))
    assert first == f"silver.weather for {FIRST} (UTC)"


@pytest.mark.usefixtures("day")
def test_all_parts_of_the_stack_listen_on_this_machine_alone(stack: Stack) -> None:
    own = {process.pid for process in remaining_processes(stack.home)}
    listening = [it.laddr for it in psutil.net_connections() if it.pid in own and it.status == psutil.CONN_LISTEN]
    assert {stack.address.web, stack.address.spark} <= {address.port for address in listening}
    # An address of IPv4 looks so on a socket of IPv6, which Java opens.
    addresses = [(ip_address(address.ip.removeprefix("::ffff:")), address.port) for address in listening]
    assert [address for address in addresses if not address[0].is_loopback] == []
