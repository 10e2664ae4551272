"""An installation of its own for the `lakehouse` command."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
import typer.testing
from click.testing import Result
from typer.testing import CliRunner

from millrace.cli.app import app
from millrace.settings import Settings
from tests.support.cli import Lakehouse, installation

# Typer's runner builds all commands anew for each call, which costs more than most of them.
typer.testing._get_command = cache(typer.testing._get_command)


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """The environment of an installation of its own."""
    return installation(tmp_path)


@pytest.fixture
def settings(place: Mapping[str, str]) -> Settings:
    """The settings of the installation."""
    return Settings(**{name: place[f"LAKEHOUSE_{name.upper()}"] for name in ("root", "landing", "tables")})


@pytest.fixture
def lakehouse(place: Mapping[str, str]) -> Lakehouse:
    """The command, run in this process."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), env=dict(place))

    return run
