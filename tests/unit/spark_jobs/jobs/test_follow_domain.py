"""Following a domain: which intervals are run, who goes on where one table fails, and what it says while it waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.catalog import load_catalog
from include.contracts.interval import Interval
from include.contracts.job.args import Job
from include.contracts.job.interval_args import DomainArgs
from include.contracts.job.report import JobReport
from include.control.landing.inspection import inspect
from include.control.landing.on_disk import LocalLanding
from include.errors import BadInputError, ExitCode, Outcome
from spark_jobs.jobs import follow_domain
from spark_jobs.jobs.follow_domain import DomainFollower
from spark_jobs.runtime.context import JobContext
from tests.support.deliveries import Deliver
from tests.support.documents.specs import bronze_document, bronze_spec, catalog_of, silver_spec, write_specs
from tests.support.ledger.delta_tables import day, judge, load_batch
from tests.support.listing import list_files

BRONZE = bronze_spec()


def test_a_table_that_fails_stops_those_that_read_it_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def run(context: JobContext) -> JobReport:
        ran.append(context.args.table)
        if context.args.table == "bronze.a":
            raise BadInputError("bronze.a: a broken file")
        args = context.args
        return JobReport(
            job="job", table=args.table, outcome=Outcome.COMMITTED, message="", interval=args.interval, run_id=""
        )

    monkeypatch.setattr(follow_domain, "RUN", dict.fromkeys(Job, run))
    catalog = catalog_of(
        bronze_spec(table="bronze.a"),
        bronze_spec(table="bronze.b"),
        silver_spec(table="silver.a", source="bronze.a"),
        silver_spec(table="silver.b", source="bronze.b"),
    )
    for name in ("a", "b"):
        folder = tmp_path / "landing" / name / f"date={follow_domain.today().start:%Y-%m-%d}"
        folder.mkdir(parents=True)
        (folder / "a.json").touch()
    args = DomainArgs(
        domain="shop",
        run_id="test",
        root=tmp_path / "lake",
        landing=tmp_path / "landing",
        tables=tmp_path / "tables",
        reports=tmp_path / "reports",
    )
    assert DomainFollower(args, catalog).follow() is ExitCode.BAD_INPUT
    assert ran == ["bronze.a", "bronze.b"], "silver.a reads what failed, silver.b has nothing certified to read"


@pytest.fixture
def told(tmp_path: Path) -> DomainArgs:
    folder = write_specs(tmp_path / "tables", bronze_document())
    (tmp_path / "reports").mkdir()
    return DomainArgs(
        domain="shop",
        run_id="cli",
        root=tmp_path / "lake",
        landing=str(tmp_path / "landing"),
        tables=folder,
        reports=tmp_path / "reports",
    )


def test_late_files_of_every_day_are_loaded_and_then_the_waits_are_reported(
    told: DomainArgs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver, place = Deliver(tmp_path / "landing"), LocalLanding(str(tmp_path / "landing"))
    ran: list[Interval] = []

    def load(context: JobContext) -> JobReport:
        interval = context.args.interval
        ran.append(interval)
        files = tuple(inspect(file, place, BRONZE) for file in list_files(BRONZE, place, interval))
        judge(tmp_path / "lake", BRONZE, load_batch(tmp_path / "lake", BRONZE, files=files).version)
        report = {"table": BRONZE.table, "message": "", "interval": interval, "run_id": "cli"}
        return JobReport(job="bronze_ingest", outcome=Outcome.COMMITTED, **report)

    def pause(follower: DomainFollower) -> None:
        if len(ran) == 3:
            told.stop_file.touch()
        deliver("late.json", number=1)

    monkeypatch.setitem(follow_domain.RUN, Job.BRONZE_INGEST, load)
    monkeypatch.setattr(DomainFollower, "_pause", pause)
    for number in (1, 2):
        deliver("a.json", number=number)
    assert DomainFollower(told, load_catalog(told.tables)).follow() is ExitCode.OK
    assert ran == [day(1), day(2), day(1)]
    assert told.waiting_file.read_text() == "bronze.orders waits for: a new file in orders\n"
