"""All job arguments survive a command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millrace.contracts.interval import Interval
from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.interval_args import DomainArgs, MaintenanceArgs

TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=40)
PATHS = TEXT.filter(lambda text: text.strip() not in ("", ".")).map(lambda text: Path("/") / text.replace("/", "_"))
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=ZONES)  # noqa: DTZ001

JOB_ARGS = st.builds(
    JobArgs,
    table=TEXT,
    interval_start=INSTANTS,
    interval_end=INSTANTS,
    run_id=TEXT,
    root=PATHS,
    landing=PATHS,
    tables=PATHS,
    report=PATHS,
    reprocess=st.booleans(),
    dry_run=st.booleans(),
)

PLACES = {name: Path(f"/{name}") for name in ("root", "landing", "tables")}
DAY = JobArgs(
    table="silver.flights",
    interval_start=datetime(2013, 1, 1, tzinfo=UTC),
    interval_end=datetime(2013, 1, 2, tzinfo=UTC),
    run_id="cli",
    report=Path("/report.json"),
    **PLACES,
)
DOMAIN = DomainArgs(domain="flights", run_id="cli", reports=Path("/reports"), **PLACES)
LONGEST_ARGUMENT = 128 * 1024
"""The bytes of one argument that Linux passes to a process, with its end."""


@settings(max_examples=25)
@given(args=JOB_ARGS)
@example(args=DAY.model_copy(update={"run_id": "-None", "table": "null"}))
@example(args=DAY.model_copy(update={"run_id": "manual__2013-01-01T00:00:00+00:00 'quoted' $HOME --table x"}))
def test_arguments_survive_a_command_line(args: JobArgs) -> None:
    assert JobArgs.from_argv(args.to_argv()) == args
    assert not [part for part in DAY.to_argv() if "reprocess" in part or "dry" in part], "flags that are off"


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (DAY.to_argv()[1:], "table"),
        ([*DAY.to_argv(), "--colour", "red"], "colour"),
        ([*DAY.to_argv(), "--interval-start", "2013-01-01T00:00:00"], "no time zone"),
    ],
    ids=["missing", "unknown", "naive instant"],
)
def test_wrong_arguments_are_refused_by_name(argv: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((SystemExit, ValueError)) as refused:
        JobArgs.from_argv(argv)
    assert named in f"{refused.value}{capsys.readouterr().err}"


def test_the_interval_is_half_open_and_must_not_be_empty() -> None:
    assert str(DAY.interval) == "[2013-01-01T00:00:00Z, 2013-01-02T00:00:00Z)"
    with pytest.raises(ValueError, match="must end after it starts"):
        _ = DAY.model_copy(update={"interval_end": DAY.interval_start}).interval


def test_ten_years_of_days_fit_on_a_command_line() -> None:
    starts = [DAY.interval_start + timedelta(days=number) for number in range(3653)]
    args = DOMAIN.for_intervals([Interval(start=start, end=start + timedelta(days=1)) for start in starts])
    assert max(len(argument.encode()) for argument in args.to_argv()) < LONGEST_ARGUMENT
    assert type(args).from_argv(args.to_argv()) == args
    maintenance = MaintenanceArgs(
        **{**DOMAIN.model_dump(), "table": ("bronze.a", "bronze.a")},
        job=(Job.TABLE_OPTIMIZE, Job.TABLE_VACUUM),
        interval=DAY.interval,
        until=DAY.interval_end,
        allow_deletes="ann (nobody else was asked)",
    )
    assert MaintenanceArgs.from_argv(maintenance.to_argv()) == maintenance
