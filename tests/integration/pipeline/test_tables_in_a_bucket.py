"""The whole path with its tables, ledger and leases in a bucket: real Delta, real S3 servers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.servers.s3 import Bucket, s3_bucket
from millrace.contracts.job.args import Job
from millrace.contracts.lake_path import S3Path
from millrace.control.log.delta_log import latest_version
from millrace.control.maintenance import file_layout
from millrace.control.storage.s3_access import s3_client
from millrace.errors import Outcome
from millrace_spark.layers.rebuild.staged_builds import StagedBuild
from tests.support.documents.specs import silver_document
from tests.support.lakehouse import Lakehouse, order
from tests.support.silver import rebuilt_shop
from tests.support.storage.faulty_s3 import (
    FaultyS3,
    conflict,
    faulty_s3,
    lose_answer,
    refuse_credentials,
    reset,
    slow_down,
)

SECRET = f"secret-{uuid4().hex}"
BRONZE, SILVER, GOLD = "bronze.orders", "silver.orders", "gold.revenue_daily"


@pytest.fixture(scope="module")
def store() -> Iterator[Bucket]:
    with s3_bucket("tables") as bucket:
        yield bucket


@pytest.fixture
def faulty(store: Bucket) -> Iterator[FaultyS3]:
    with faulty_s3(store.endpoint) as proxy:
        yield proxy


@pytest.fixture
def shop(store: Bucket, lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> Lakehouse:
    """A lakehouse whose tables lie in a bucket of its own."""
    return _with_bucket(lakehouse, store.endpoint, monkeypatch)


@pytest.fixture
def far_shop(faulty: FaultyS3, lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> Lakehouse:
    """The same, with the proxy before the server."""
    return _with_bucket(lakehouse, faulty.endpoint, monkeypatch)


def _with_bucket(lakehouse: Lakehouse, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Lakehouse:
    bucket = Bucket(endpoint, f"lake-{uuid4().hex[:8]}")
    bucket.client.create_bucket(Bucket=bucket.name)
    # The Spark server has credentials of its own, and this server asks nobody for the right ones.
    for name, value in {**bucket.environment, "AWS_SECRET_ACCESS_KEY": SECRET}.items():
        monkeypatch.setenv(name, value)
    lakehouse.root = f"s3a://{bucket.name}/tables"
    return lakehouse


def keys_of(lakehouse: Lakehouse) -> list[str]:
    """The keys of all objects in the lakehouse's bucket."""
    root = S3Path(str(lakehouse.root).replace("s3a:", "s3:"))
    found = s3_client().get_paginator("list_objects_v2").paginate(Bucket=root.bucket)
    return [one["Key"] for page in found for one in page.get("Contents", [])]


def test_days_go_from_files_to_gold_and_all_that_is_done_to_tables_works_there_too(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_layout, "LEAST_SMALL_FILES", 2)
    rule = {"expect_table_row_count_to_be_between": {"max_value": 3}, "action": "fail", "reason": "three at most"}
    shop.specs(silver_document(expectations=[rule], on_refusal="restore"))
    shop.deliver(1, "a.json", [order(1, 5), order(2, "?"), order(3, 9), "no record"])
    assert [report.outcome for report in shop.run_all(1, BRONZE, SILVER, GOLD)] == 3 * [Outcome.COMMITTED]
    assert isinstance(shop.paths.table(BRONZE), S3Path)
    assert [report.outcome for report in shop.run_all(1, BRONZE, SILVER, GOLD)] == 3 * [Outcome.NO_OP]
    assert [latest_version(shop.paths.table(table)) for table in (BRONZE, SILVER, GOLD)] == [1, 1, 1]
    held = [("o1", 5), ("o2", None), ("o3", 9)]
    assert shop.rows(SILVER, "order_id", "amount") == held
    assert shop.rows(GOLD, "orders", "revenue") == [(3, 14)]
    assert len(shop.quarantine(BRONZE)) == 1

    shop.deliver(2, "a.json", [order(1, 7, of_day=2), order(4, 5, of_day=2)])
    _, refused = shop.run_all(2, BRONZE, SILVER)
    assert [check.passed for check in refused.checks] == [False]
    assert shop.rows(SILVER, "order_id", "amount") == held, "the refused version was taken back"
    optimized, vacuumed = (shop.run(BRONZE, 2, job=job) for job in (Job.TABLE_OPTIMIZE, Job.TABLE_VACUUM))
    assert (optimized.outcome, vacuumed.exit_code) == (Outcome.COMMITTED, 0), (optimized.message, vacuumed.message)
    assert len(shop.rows(BRONZE, "order_id")) == 5
    written = [file.read_bytes() for file in shop.folder.rglob("*") if file.is_file()]
    assert len(written) > 10
    assert not any(SECRET.encode() in content for content in written)


@pytest.mark.slow
def test_a_table_is_rebuilt_beside_the_one_in_use_which_readers_keep_until_the_switch(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuilt_shop.write_shop_specs(shop)
    rebuilt_shop.load_days(shop, 1)
    before, while_built = rebuilt_shop.visible_rows(shop), []
    rebuilt_shop.write_shop_specs(shop, keys=["order_id", "day"])
    build = StagedBuild.build

    def watched(staged: StagedBuild) -> None:
        build(staged)
        while_built.append(rebuilt_shop.visible_rows(shop))
        assert any("/_millrace/rebuilds/" in key for key in keys_of(shop))

    monkeypatch.setattr(StagedBuild, "build", watched)
    report = shop.rebuild(SILVER, downstream=True)

    assert report.exit_code == 0, report.message
    assert while_built[:2] == [before] * 2, "silver, before it was switched"
    assert rebuilt_shop.visible_rows(shop) == rebuilt_shop.right_rows(1)
    assert not any("/_millrace/rebuilds/" in key for key in keys_of(shop))
    assert [shop.run(table, 1).outcome for table in (SILVER, GOLD)] == [Outcome.NO_OP] * 2


@pytest.mark.slow
def test_a_commit_whose_answer_was_lost_or_that_meets_another_put_of_its_version_counts_once(
    far_shop: Lakehouse, faulty: FaultyS3
) -> None:
    for version, fault in enumerate((lose_answer, conflict), 1):
        faulty.on("PUT", f"bronze/orders/_delta_log/{version:020d}.json", fault)
        far_shop.deliver(version, "a.json", [order(version, 5)])
        report = far_shop.run(BRONZE, version)
        assert (report.outcome, report.version) == (Outcome.COMMITTED, version), report.message
        assert fault is lose_answer or report.attempts == 1
        assert (faulty.faults_met(), faulty.faults_pending()) == (version, [])
    assert far_shop.rows(BRONZE, "order_id") == [("o1",), ("o2",)]


@pytest.mark.slow
@pytest.mark.faults
def test_a_busy_store_and_broken_connections_are_outlived(far_shop: Lakehouse, faulty: FaultyS3) -> None:
    for method, part in (("PUT", ".parquet"), ("PUT", "_delta_log/0"), ("GET", "_delta_log/0"), ("PUT", "/leases/")):
        faulty.on(method, part, slow_down, times=2)
        faulty.on(method, part, reset, times=2)
    faulty.on("PUT", "/ops/batches/", slow_down, times=2)
    far_shop.deliver(1, "a.json", [order(1, 5), order(2, 6)])
    reports = far_shop.run_all(1, BRONZE, SILVER, GOLD)
    assert [report.outcome for report in reports] == 3 * [Outcome.COMMITTED], [report.message for report in reports]
    assert faulty.faults_pending() == [], "each fault was met"
    assert far_shop.rows(SILVER, "order_id", "amount") == [("o1", 5), ("o2", 6)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_expired_credentials_are_named_with_what_to_do_and_nobody_hears_the_secret(
    far_shop: Lakehouse, faulty: FaultyS3, method: str
) -> None:
    faulty.on(method, "", refuse_credentials, times=1_000)
    far_shop.deliver(1, "a.json", [order(1, 5)])
    report = far_shop.run(BRONZE, 1)
    assert report.outcome is Outcome.FAILED
    assert "credentials have expired" in report.message.splitlines()[0], report.message
    assert SECRET not in report.model_dump_json()


@pytest.mark.slow
def test_a_store_that_knows_no_conditional_puts_is_refused(far_shop: Lakehouse, faulty: FaultyS3) -> None:
    faulty.ignore("If-None-Match")
    far_shop.deliver(1, "a.json", [order(1, 5)])
    report = far_shop.run(BRONZE, 1)
    assert report.outcome is Outcome.FAILED
    assert "it replaces an object in spite of If-None-Match" in report.message
    assert latest_version(far_shop.paths.table(BRONZE)) == -1


@pytest.mark.slow
@pytest.mark.faults
def test_a_profile_is_enough_for_a_driver_of_its_own(shop: Lakehouse, store: Bucket, tmp_path: Path) -> None:
    keys = "aws_access_key_id = testing\naws_secret_access_key = testing\n"
    (tmp_path / "credentials").write_text(f"[lake]\n{keys}")
    (tmp_path / "config").write_text("[profile lake]\nregion = us-east-1\n")
    known = {name: value for name, value in clean_environment().items() if not name.startswith("AWS_")}
    reached = {
        "AWS_ENDPOINT_URL_S3": store.endpoint,
        "AWS_PROFILE": "lake",
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "LAKEHOUSE_RUNS": str(tmp_path / "runs"),
    }
    shop.deliver(1, "a.json", [order(1, 5)])
    command = ["lakehouse", "run", "--interval", "2013-01-01", "--table", BRONZE]
    environment = {**known, **shop.environment(), **reached}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert shop.rows(BRONZE, "order_id") == [("o1",)]
