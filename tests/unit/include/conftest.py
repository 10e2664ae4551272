"""An installation of its own for the `lakehouse` command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from include.cli.app import app
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """The environment of an installation of its own: the sound domain `shop`, nothing landed, no tables."""
    write_specs(tmp_path / "tables", bronze_document(), silver_document(), gold_document())
    (tmp_path / "landing").mkdir()
    return {f"LAKEHOUSE_{name.upper()}": str(tmp_path / name) for name in ("root", "landing", "tables", "jars")}


@pytest.fixture
def lakehouse(place: Mapping[str, str]) -> Lakehouse:
    """The command, run in this process."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), env=dict(place))

    return run
