"""Views in a bucket: the same scripts and list as in a folder, without a folder that all machines share."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from embedded.servers.s3 import Bucket
from millrace.contracts.lake_path import S3Path
from millrace.control.views import folder as view_folder
from millrace.control.views.folder import INDEX, SCRIPTS
from millrace.errors import ExitCode
from millrace.paths import LakehousePaths
from tests.support.cli import Lakehouse
from tests.support.reading.certified_lake import ORDERS, orders, write_version

FILES = {INDEX, *(f"{engine}.sql" for engine in SCRIPTS)}


@pytest.fixture
def paths(bucket: Bucket, request: pytest.FixtureRequest) -> LakehousePaths:
    """A lakehouse in a bucket, with a place for views in it."""
    root = S3Path(f"s3://{bucket.name}/{request.node.name}")
    return LakehousePaths(root / "tables", views=root / "views")


def contents(bucket: Bucket, folder: Any) -> dict[str, str]:
    listed = bucket.client.list_objects_v2(Bucket=folder.bucket, Prefix=f"{folder.key}/").get("Contents", [])
    texts = {item["Key"]: bucket.client.get_object(Bucket=folder.bucket, Key=item["Key"]) for item in listed}
    return {key.removeprefix(f"{folder.key}/"): answer["Body"].read().decode() for key, answer in texts.items()}


def test_the_views_move_with_the_certificate_even_if_a_writer_has_died(
    paths: LakehousePaths, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_version(paths, orders("a"))
    first = contents(bucket, paths.views)
    assert first.keys() == FILES, "no lease and no mark is left"
    write_version(paths, orders("bad"), passed=False)
    assert contents(bucket, paths.views) == first
    with monkeypatch.context() as dies:
        dies.setattr(view_folder, "_write", lambda *_, **__: 1 / 0)
        write_version(paths, orders("b"))
    write_version(paths, orders("x"), table="silver.other")
    later = contents(bucket, paths.views)
    path = str(paths.table(ORDERS))
    index = json.loads(later[INDEX])
    assert index[ORDERS] == {"path": path, "version": 2, "certified_by_hand": None}
    assert index.keys() == {ORDERS, "silver.other"}
    assert f"delta_scan('{path}', version => 2)" in later["duckdb.sql"]
    assert "VERSION AS OF 2;" in later["spark.sql"]


def test_gates_that_pass_at_once_lose_no_view(paths: LakehousePaths, bucket: Bucket) -> None:
    tables = [f"silver.t{number}" for number in range(3)]
    with ThreadPoolExecutor(len(tables)) as gates:
        list(gates.map(lambda table: write_version(paths, orders("a"), table=table), tables))
    found = contents(bucket, paths.views)
    assert json.loads(found[INDEX]).keys() == set(tables)
    assert all(f'VIEW silver."{table.removeprefix("silver.")}"' in found["duckdb.sql"] for table in tables)


def test_the_command_writes_them_and_says_how_they_stay_up_to_date(
    paths: LakehousePaths, bucket: Bucket, place: dict[str, str], lakehouse: Lakehouse
) -> None:
    write_version(LakehousePaths(paths.root), orders("a"))
    place["LAKEHOUSE_ROOT"] = str(paths.root)
    wrote = lakehouse("views", "--write", str(paths.views))
    assert wrote.exit_code == 0, wrote.output
    assert wrote.stdout.startswith("wrote certified.json, duckdb.sql, spark.sql, trino.sql\n")
    assert f"Set LAKEHOUSE_VIEWS={paths.views} " in wrote.stdout
    assert contents(bucket, paths.views).keys() == FILES
    place["LAKEHOUSE_VIEWS"] = str(paths.views)
    again = lakehouse("views", "--write", str(paths.views)).stdout
    assert (again.startswith("up to date: certified.json"), "Set LAKEHOUSE_VIEWS" in again) == (True, False)
    assert lakehouse("views", "--write", "gs://lake/views").exit_code == ExitCode.WRONG_USAGE
