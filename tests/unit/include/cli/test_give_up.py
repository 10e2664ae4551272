"""`lakehouse give-up`: runs and full snapshots continue without a failed file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
import typer
from deltalake import DeltaTable, write_deltalake

from include.cli.replay import give_up_files
from include.contracts.file_status import FileStatus
from include.control.landing.matching import given_up_files, given_up_notes
from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact
from include.errors import UnknownNameError
from include.paths import LakehousePaths
from include.settings import Settings
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day


@pytest.fixture
def settings(place: Mapping[str, str]) -> Settings:
    """A file that has failed once."""
    return Settings(**{name: Path(place[f"LAKEHOUSE_{name.upper()}"]) for name in ("root", "landing", "tables")})


@pytest.fixture
def ledger(settings: Settings) -> Ledger:
    bronze = LakehousePaths(settings.root).table("bronze.orders")
    write_deltalake(bronze, pa.table({"amount": [1]}))
    ledger = Ledger(LakehousePaths(settings.root))
    ledger.record_files(
        FileEvent.FAILED, "bronze.orders", identity(settings), day(2), [FileFact("orders/b.gz", 7, 1, "aa", "torn")]
    )
    return ledger


def identity(settings: Settings) -> str:
    return str(DeltaTable(str(LakehousePaths(settings.root).table("bronze.orders"))).metadata().id)


def test_a_file_is_given_up_with_a_reason_until_it_is_replayed(settings: Settings, ledger: Ledger) -> None:
    (file,) = give_up_files(["orders/b.gz"], "the shop was closed", settings)
    assert (file.status, file.interval) == (FileStatus.GIVEN_UP, day(2))
    failures = ledger.failures("bronze.orders", identity(settings))
    (note,) = given_up_notes([*given_up_files(failures, bronze_spec().landing_source).values()])
    assert note.startswith("orders/b.gz was given up by ")
    assert "the shop was closed (torn)" in note
    ledger.record_files(
        FileEvent.REPLAYED, "bronze.orders", identity(settings), day(2), [FileFact("orders/b.gz", 7, 1, "aa")]
    )
    assert not ledger.failures("bronze.orders", identity(settings))
    assert not ledger.failed_files("bronze.orders", identity(settings))["orders/b.gz"].given_up


@pytest.mark.usefixtures("ledger")
def test_other_content_under_its_name_is_tried_again(settings: Settings, ledger: Ledger) -> None:
    give_up_files(["orders/b.gz"], "closed", settings)
    ledger.record_files(
        FileEvent.FAILED, "bronze.orders", identity(settings), day(2), [FileFact("orders/b.gz", 8, 2, "bb", "torn")]
    )
    assert not ledger.failed_files("bronze.orders", identity(settings))["orders/b.gz"].given_up


@pytest.mark.usefixtures("ledger")
def test_it_needs_a_reason_and_a_file_that_failed(settings: Settings) -> None:
    with pytest.raises(typer.BadParameter, match="why should runs go on"):
        give_up_files(["orders/b.gz"], " ", settings)
    with pytest.raises(UnknownNameError, match="has no landing file"):
        give_up_files(["orders/c.gz"], "closed", settings)
