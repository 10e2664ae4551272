"""The tables of the domain whose DAGs are built."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the specs of one bronze, one silver and one gold table of the domain `shop`."""
    folder = tmp_path / "tables"
    monkeypatch.setenv("LAKEHOUSE_TABLES", str(folder))
    return write_specs(folder, bronze_document(), silver_document(owner="sales"), gold_document())
