"""The image that the tests of this folder run, built once."""

from __future__ import annotations

import pytest

from tests.support.docker_images import build_image


@pytest.fixture(scope="session")
def image() -> str:
    """The tag of the image."""
    return build_image()
