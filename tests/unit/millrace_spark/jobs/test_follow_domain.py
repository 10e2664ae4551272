"""Runs of a domain in one driver: which intervals are run, who goes on where one table fails, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.catalog import load_catalog
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import Job
from millrace.contracts.job.interval_args import DomainArgs
from millrace.contracts.job.report import JobReport
from millrace.control.landing.inspection import inspect
from millrace.control.landing.on_disk import LocalLanding
from millrace.errors import BadInputError, ExitCode, Outcome
from millrace_spark.jobs import follow_domain
from millrace_spark.jobs.follow_domain import DomainFollower
from millrace_spark.jobs.run_intervals import run_intervals
from millrace_spark.runtime.context import JobContext
from tests.support.deliveries import Deliver
from tests.support.documents.specs import (
    bronze_document,
    bronze_spec,
    catalog_of,
    gold_document,
    silver_document,
    silver_spec,
    write_specs,
)
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import day, file_contents, judge, load_batch
from tests.support.listing import list_files

BRONZE = bronze_spec()


def domain_args(folder: Path, domain: str = "shop") -> DomainArgs:
    """Return the arguments of a driver whose files are all below the folder."""
    places = {name: folder / name for name in ("root", "landing", "tables", "reports")}
    return DomainArgs(domain=domain, run_id="cli", **places)


def test_a_table_that_fails_stops_its_readers_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert DomainFollower(domain_args(tmp_path), catalog).follow() is ExitCode.BAD_INPUT
    assert ran == ["bronze.a", "bronze.b"], "silver.a reads what failed, silver.b has nothing certified to read"


@pytest.fixture
def told(tmp_path: Path) -> DomainArgs:
    write_specs(tmp_path / "tables", bronze_document())
    (tmp_path / "reports").mkdir()
    return domain_args(tmp_path)


def test_late_files_of_every_day_are_loaded_and_then_the_waits_are_reported(
    told: DomainArgs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver, place = Deliver(tmp_path / "landing"), LocalLanding(str(tmp_path / "landing"))
    ran: list[Interval] = []

    def load(context: JobContext) -> JobReport:
        interval = context.args.interval
        ran.append(interval)
        files = tuple(inspect(file, place, BRONZE) for file in list_files(BRONZE, place, interval))
        judge(told.root, BRONZE, load_batch(told.root, BRONZE, files=files).version)
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


def test_silver_runs_for_the_newest_interval_of_what_it_reads_and_not_for_today(
    told: DomainArgs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_specs(told.tables, silver_document())
    (tmp_path / "landing" / "orders").mkdir(parents=True)
    ran: list[Interval] = []

    def merge(context: JobContext) -> JobReport:
        ran.append(context.args.interval)
        told.stop_file.touch()
        report = {"table": context.args.table, "message": "", "interval": context.args.interval, "run_id": "cli"}
        return JobReport(job="silver_merge", outcome=Outcome.COMMITTED, **report)

    monkeypatch.setitem(follow_domain.RUN, Job.SILVER_MERGE, merge)
    for _ in (1, 2):
        judge(told.root, BRONZE, load_batch(told.root, BRONZE).version)
    assert DomainFollower(told, load_catalog(told.tables)).follow() is ExitCode.OK
    assert ran == [day(2)]


def test_a_wrong_spec_fails_its_table_and_stops_what_reads_it_in_every_domain(tmp_path: Path) -> None:
    tables = write_specs(tmp_path / "tables", bronze_document(), bronze_document("bronze.bills"))
    write_specs(tables, silver_document(keyz=["order_id"]), gold_document("gold.own"))
    write_specs(tables, gold_document("gold.other"), domain="finance")
    (tmp_path / "landing").mkdir()

    def outcomes(domain: str) -> dict[str, Outcome]:
        arguments = domain_args(tmp_path, domain).for_intervals([day()])
        reports = list(run_intervals(arguments))
        saved = [arguments.report_of(day(), report.table).exists() for report in reports]
        assert all(saved)
        said.update({report.table: report.message for report in reports})
        return {report.table: report.outcome for report in reports}

    said: dict[str, str] = {}
    assert outcomes("shop") == {
        "bronze.bills": Outcome.NOT_READY,  # nothing was delivered: it was tried
        "bronze.orders": Outcome.NOT_READY,
        "silver.orders": Outcome.BAD_SPEC,
        "gold.own": Outcome.NOT_READY,
    }
    assert outcomes("finance") == {"gold.other": Outcome.BAD_SPEC}
    assert "keyz: unknown key" in said["silver.orders"]
    assert said["gold.own"].startswith("gold.own waits for silver.orders: ")
    assert "it reads silver.orders, whose spec is wrong" in said["gold.other"]


def test_days_without_a_folder_end_the_run_unless_they_are_to_be_skipped(tmp_path: Path) -> None:
    write_specs(tmp_path / "tables", bronze_document(), silver_document())
    (tmp_path / "landing").mkdir()
    args = domain_args(tmp_path)
    days = [day(1), day(2)]
    first, blocked = run_intervals(args.for_intervals(days))
    assert (first.outcome, blocked.waits_for) == (Outcome.NOT_READY, ("bronze.orders",))
    skipped = list(run_intervals(args.for_intervals(days, skip_missing=True)))
    assert [report.interval for report in skipped] == [day(1), day(1), day(2), day(2)]
    assert all(report.skipped and report.outcome is Outcome.NO_OP for report in skipped)
    assert "no landing folder" in skipped[0].message


TOPICS = {"kafka": "main", "topics": ["orders"], "format": "json"}


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_table_of_topics_is_refused_since_they_forget_and_the_way_out_is_named(tmp_path: Path, dry_run: bool) -> None:
    shop = Lakehouse(tmp_path)
    shop.specs(bronze_document(source=TOPICS))
    load_batch(shop.paths.root, bronze_spec(source=TOPICS))
    ops = file_contents(tmp_path / "lake" / "ops")
    report = shop.rebuild("bronze.orders", dry_run=dry_run)
    assert report.outcome is Outcome.BAD_INPUT
    assert report.message == (
        "bronze.orders: cannot be rebuilt, since Kafka topics do not keep their messages\n"
        "Rebuild the tables that read it instead."
    )
    assert file_contents(tmp_path / "lake" / "ops") == ops
