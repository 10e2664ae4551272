"""A run of a domain in one driver, up to the first need of Spark."""

from __future__ import annotations

from pathlib import Path

from include.contracts.job.interval_args import DomainArgs
from include.errors import Outcome
from spark_jobs.jobs.run_intervals import run_intervals
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs
from tests.support.ledger.delta_tables import day


def test_a_wrong_spec_fails_its_table_and_stops_what_reads_it_in_every_domain(tmp_path: Path) -> None:
    tables = write_specs(tmp_path / "tables", bronze_document(), bronze_document("bronze.bills"))
    write_specs(tables, silver_document(keyz=["order_id"]), gold_document("gold.own"))
    write_specs(tables, gold_document("gold.other"), domain="finance")
    (tmp_path / "landing").mkdir()

    def outcomes(domain: str) -> dict[str, Outcome]:
        places = {"root": tmp_path / "data", "landing": tmp_path / "landing", "reports": tmp_path / "reports"}
        args = DomainArgs(domain=domain, run_id="test", tables=tables, **places)
        arguments = args.for_intervals([day()])
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
    tables = write_specs(tmp_path / "tables", bronze_document(), silver_document())
    (tmp_path / "landing").mkdir()
    places = {"root": tmp_path / "data", "landing": tmp_path / "landing", "reports": tmp_path / "reports"}
    args = DomainArgs(domain="shop", run_id="test", tables=tables, **places)
    days = [day(1), day(2)]
    first, blocked = run_intervals(args.for_intervals(days))
    assert (first.outcome, blocked.waits_for) == (Outcome.NOT_READY, ("bronze.orders",))
    skipped = list(run_intervals(args.for_intervals(days, skip_missing=True)))
    assert [report.interval for report in skipped] == [day(1), day(1), day(2), day(2)]
    assert all(report.skipped and report.outcome is Outcome.NO_OP for report in skipped)
    assert "no landing folder" in skipped[0].message
