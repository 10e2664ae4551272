"""The lakehouse as a rebuild sees it."""

from __future__ import annotations

import shutil
from pathlib import Path

from include.control.batch import Stream
from include.control.gates import Gates
from include.control.ledger import Ledger
from include.control.resolution import resolve
from include.control.staging import bring_ledger, remove_staging, staged_paths
from include.paths import LakehousePaths
from tests.support.delta_tables import contents, judge, load_batch
from tests.support.specs import bronze_spec, silver_spec

BRONZE, SILVER = bronze_spec(), silver_spec()


def test_what_it_builds_lies_in_its_folder_and_all_else_where_it_is() -> None:
    staged = staged_paths(LakehousePaths(Path("/lake")), "r1", ["silver.orders"])
    folder = "/lake/_millrace/rebuilds/r1"
    assert staged.table("bronze.orders").as_posix() == "/lake/bronze/orders"
    assert staged.quarantine("bronze.orders").as_posix() == "/lake/bronze_quarantine/orders"
    assert staged.table("silver.orders").as_posix() == f"{folder}/silver/orders"
    assert staged.quarantine("silver.orders").as_posix() == f"{folder}/silver_quarantine/orders"
    assert staged.tombstones("silver.orders", "5b0e").as_posix() == f"{folder}/silver_tombstones/orders/5b0e"
    assert staged.ops("gates").as_posix() == f"{folder}/ops/gates"
    assert staged.leases.as_posix() == f"{folder}/_millrace/leases"


def test_its_ledger_knows_of_the_tables_that_it_reads_what_the_lakehouse_knows_and_nothing_goes_back(
    tmp_path: Path,
) -> None:
    live = LakehousePaths(tmp_path)
    staged = staged_paths(live, "r1", [SILVER.table])
    for versions in (1, 2):
        winner = load_batch(tmp_path, BRONZE)
        judge(tmp_path, BRONZE, winner.version)
        lake = contents(tmp_path / "ops")
        bring_ledger(live, staged, [BRONZE.table])
        assert contents(tmp_path / "ops") == lake
        assert Gates(staged).certified(BRONZE.table) == versions
        position = resolve(staged.table(BRONZE.table), Stream(BRONZE.table), Ledger(staged))
        assert position.last == winner
    remove_staging(staged)
    assert contents(tmp_path / "ops") == lake
    assert not list(live.rebuilds.iterdir())


def test_of_a_table_that_it_has_built_and_switched_it_knows_what_the_lakehouse_knows(tmp_path: Path) -> None:
    live, winner = LakehousePaths(tmp_path), load_batch(tmp_path, BRONZE)
    judge(tmp_path, BRONZE, winner.version)
    staged = staged_paths(live, "r1", [SILVER.table])
    for folder in ("bronze", "ops"):  # as if it were built here: the same id, and another history
        shutil.copytree(tmp_path / folder, Path(staged.staging) / folder)
    judge(Path(staged.staging), BRONZE, load_batch(Path(staged.staging), BRONZE).version)

    bring_ledger(live, staged, [BRONZE.table])

    assert Gates(staged).certified(BRONZE.table) == winner.version
    assert resolve(staged.table(BRONZE.table), Stream(BRONZE.table), Ledger(staged)).last == winner
