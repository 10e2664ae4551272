"""The image of a team; tests are skipped where Docker cannot make it."""

from __future__ import annotations

import pytest

from tests.support.docker_images import build_image


@pytest.fixture(scope="session")
def image() -> str:
    """The tag of our own image, built from this folder."""
    return build_image()
