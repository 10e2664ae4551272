"""The specs are read again after a change, whatever else lies in their folder."""

from __future__ import annotations

from pathlib import Path

from include.overview.known_catalog import KnownCatalog
from tests.support.documents.specs import bronze_document, write_specs


def test_the_lock_of_an_editor_hides_no_table(tmp_path: Path) -> None:
    known = KnownCatalog(write_specs(tmp_path, bronze_document(table="bronze.orders")))
    (tmp_path / "bronze" / "shop" / ".#orders.yaml").symlink_to("ann@laptop.4711")
    assert known.read().tables == ("bronze.orders",)
