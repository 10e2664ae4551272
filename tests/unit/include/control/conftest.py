"""A landing folder that a source system delivers into."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.deliveries import Deliver


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """The landing root; nothing is delivered yet."""
    return tmp_path / "landing"


@pytest.fixture
def deliver(landing: Path) -> Deliver:
    """The source system."""
    return Deliver(landing)
