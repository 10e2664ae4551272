"""Older versions are deleted at once: what a version since the erasure needs stays, whoever replaced it meanwhile."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from millrace.clock import utc_now
from millrace.control.ledger.erasures import ErasedTable
from millrace.control.log.stored_tables import identity
from millrace.control.ops_tables import OpsTables
from millrace.erase.finding import Part, find
from millrace.erase.older_versions import delete_older_versions
from millrace.erase.subjects import Subjects
from millrace.settings import Settings
from tests.support.documents.specs import bronze_document, catalog_of


def test_a_version_since_the_erasure_stays_whole_though_a_later_one_came_before_it_was_recorded(
    settings: Settings,
) -> None:
    path = settings.paths.table("bronze.orders")

    def write(*buyers: str) -> set[Path]:
        write_deltalake(str(path), pa.table({"order_id": buyers, "buyer": buyers}), mode="overwrite")
        return {Path(str(path)) / name for name in DeltaTable(str(path)).file_uris()}

    before, erased, newest = write("C-17", "C-18"), write("C-18"), write("C-18", "C-19")
    (abandoned := Path(str(path)) / "part-of-a-commit-to-come.parquet").write_text("")
    table_id, now = identity(DeltaTable(str(path))), utc_now()
    done = ErasedTable("x", "DSR-1", "bronze.orders", table_id, 1, 1, due=now, recorded_at=now)
    catalog = catalog_of(bronze_document())

    delete_older_versions(catalog.spec("bronze.orders"), done, catalog, OpsTables(settings.paths), "cli")

    assert [all(file.exists() for file in files) for files in (before, erased, newest)] == [False, True, True]
    assert abandoned.exists()


def test_nothing_stays_of_a_folder_whose_name_is_a_key(settings: Settings) -> None:
    path = Path(str(settings.paths.table("bronze.orders")))
    rows = pa.table({"order_id": ["1", "2"], "buyer": ["C-17", "C-18"]})
    write_deltalake(path, rows, partition_by=["buyer"])
    for file in list(path.glob("buyer=*/*.parquet")):
        file.with_name(f".{file.name}.crc").write_text("as Hadoop writes them")
    DeltaTable(path).delete("buyer = 'C-17'")
    table_id, now = identity(DeltaTable(path)), utc_now()
    done = ErasedTable("x", "DSR-1", "bronze.orders", table_id, 1, 1, due=now, recorded_at=now)
    catalog = catalog_of(bronze_document(subject_keys={"order_id": "customer"}))

    delete_older_versions(catalog.spec("bronze.orders"), done, catalog, OpsTables(settings.paths), "cli")

    assert [each.name for each in path.glob("buyer=*")] == ["buyer=C-18"]
    assert len(list(path.glob("buyer=C-18/.*.crc"))) == 1
    (path / "buyer=C-17").mkdir()
    found = find(Subjects("customer", ("C-17",)), catalog, settings, now)
    [place] = [each for each in found.places if each.part is Part.FILES]
    assert (place.name, place.files, place.mentions) == ("bronze.orders", 1, 1)
