"""Announce certified versions to Airflow, so that DAGs that wait for a table start also after `lakehouse run`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import httpx
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from millrace.airflow_api import airflow_api
from millrace.contracts.airflow_access import AirflowAccess
from millrace.contracts.asset_event import batch_extra, by_interval, partition_key
from millrace.contracts.job.report import JobReport
from millrace.control.log.delta_log import Commit, read_commit
from millrace.errors import first_line
from millrace.paths import LakehousePaths


def announce(reports: Iterable[JobReport], access: AirflowAccess, paths: LakehousePaths) -> tuple[list[str], str]:
    """Announce the versions that the reports certified.

    Returns:
        A line about each event, and about each table without an asset; then, if Airflow was not told of all versions,
        one line that says why. The next run of the same tables tells it.
    """
    certified = [report for report in reports if report.certified_version is not None]
    lines = list[str]()
    try:
        with airflow_api(access) as api:
            lines.extend(create_events(api, certified, paths))
    except (httpx.HTTPError, httpx.InvalidURL, KeyError, ValueError) as error:
        reason = first_line(error) or type(error).__name__
        return lines, (
            f"Airflow at {access.url} was not told of all certified versions ({reason}); "
            "the next `lakehouse run` of these tables tells it"
        )
    return lines, ""


def create_events(api: httpx.Client, reports: Iterable[JobReport], paths: LakehousePaths) -> Iterator[str]:
    """Create an event for each report that moved the certified version, and for a version that was never announced.

    A version stays without an event if Airflow did not answer after the run that certified it.

    Args:
        api: a client of Airflow's API that has logged in.
        reports: the reports, in their order; each has a certified version.
        paths: the folders of the lakehouse.

    Yields:
        A line for people, for each event and for each table that no DAG of this Airflow names.

    Raises:
        httpx.HTTPError: Airflow does not answer, or refuses.
    """
    of_table: dict[str, list[JobReport]] = {}
    for report in reports:
        of_table.setdefault(report.table, []).append(report)
    for table, of_this in of_table.items():
        # The pattern also matches longer names.
        found = _ask(api, "GET", "/api/v2/assets", params={"name_pattern": table, "limit": 100})["assets"]
        assets = {asset["name"]: asset["id"] for asset in found if asset["name"] in (table, by_interval(table))}
        if not assets:
            yield f"no asset event for {table}: no DAG of this Airflow names it"
        commits = dict[int | None, Commit | None]()
        # First the asset of the table itself: only its events are worth a line.
        for name, asset in sorted(assets.items()):
            moved = [report for report in of_this if report.certified_moved]
            if not moved and _last_version(api, asset) != of_this[-1].certified_version:
                moved = of_this[-1:]
            for report in moved:
                version = report.certified_version
                if version is not None and version not in commits:
                    commits[version] = read_commit(paths.table(table), version)
                commit = commits.get(version)
                extra = _extra(report, commit)
                if name == table:
                    _ask(api, "POST", "/api/v2/assets/events", json={"asset_id": asset, "extra": extra})
                    yield f"asset event: {extra['summary']}"
                elif commit and commit.interval:
                    event = {"asset_id": asset, "extra": extra, "partition_key": partition_key(commit.interval)}
                    _ask(api, "POST", "/api/v2/assets/events", json=event)


def _has_waiting_run(error: BaseException) -> bool:
    """Whether Airflow may only be unable to show a run that an event has triggered and that has not started (3.3.2)."""
    return isinstance(error, httpx.HTTPStatusError) and error.response.status_code == httpx.codes.INTERNAL_SERVER_ERROR


@retry(retry=retry_if_exception(_has_waiting_run), stop=stop_after_delay(60), wait=wait_fixed(1), reraise=True)
def _last_version(api: httpx.Client, asset: int) -> int | None:
    query = {"asset_id": asset, "order_by": "-timestamp", "limit": 1}
    events = _ask(api, "GET", "/api/v2/assets/events", params=query)["asset_events"]
    return events[0]["extra"].get("version") if events else None


def _extra(report: JobReport, commit: Commit | None) -> dict[str, Any]:
    batch = commit.metadata if commit else {}
    facts = {"batch_seq": batch.get("batch_seq"), "run_id": batch.get("run_id")}
    rows = report.rows.model_dump() if report.certified_moved else {}
    return batch_extra(report.table, report.certified_version, commit.interval if commit else None, rows, **facts)


def _ask(api: httpx.Client, method: str, path: str, **arguments: Any) -> Any:
    return api.request(method, path, **arguments).raise_for_status().json()
