"""Following a domain: who goes on where one table fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.contracts.interval_args import DomainArgs
from include.contracts.job_args import Job
from include.contracts.job_report import JobReport
from include.errors import BadInputError, ExitCode, Outcome
from spark_jobs.jobs import follow_domain
from spark_jobs.jobs.follow_domain import DomainFollower
from spark_jobs.runtime.context import JobContext
from tests.support.specs import bronze_spec, catalog_of, silver_spec


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
        (tmp_path / "landing" / name / f"date={follow_domain.today().start:%Y-%m-%d}").mkdir(parents=True)
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
