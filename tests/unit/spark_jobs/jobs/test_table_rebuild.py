"""What a rebuild refuses before it starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.contracts.job.args import Job, JobArgs
from include.contracts.job.requests import RebuildRequest
from include.errors import Outcome
from spark_jobs.jobs import table_rebuild
from spark_jobs.runtime.entrypoint import run_and_report
from tests.support.documents.specs import bronze_document, bronze_spec, write_specs
from tests.support.ledger.delta_tables import day, file_contents, load_batch

TOPICS = {"kafka": "main", "topics": ["orders"], "format": "json"}


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_table_of_topics_is_refused_since_they_forget_and_the_way_out_is_named(tmp_path: Path, dry_run: bool) -> None:
    tables = write_specs(tmp_path / "tables", bronze_document(source=TOPICS))
    load_batch(tmp_path / "lake", bronze_spec(source=TOPICS))
    ops = file_contents(tmp_path / "lake" / "ops")
    args = JobArgs(
        table="bronze.orders",
        interval_start=day().start,
        interval_end=day().end,
        run_id="test",
        root=tmp_path / "lake",
        landing=str(tmp_path / "landing"),
        tables=tables,
        report=tmp_path / "report.json",
        request=RebuildRequest(said_by="ann").save(tmp_path / "request.json"),
        dry_run=dry_run,
    )
    report = run_and_report(Job.TABLE_REBUILD, table_rebuild.run, args)
    assert report.outcome is Outcome.BAD_INPUT
    assert report.message == (
        "bronze.orders: cannot be rebuilt, since Kafka topics do not keep their messages\n"
        "Rebuild the tables that read it instead."
    )
    assert file_contents(tmp_path / "lake" / "ops") == ops
