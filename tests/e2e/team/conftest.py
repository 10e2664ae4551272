"""The images of docker-compose.yaml; tests are skipped where Docker does not have them."""

from __future__ import annotations

import pytest

from containers.compose import Compose
from tests.support.docker_images import build_image, require_images


@pytest.fixture(scope="session")
def image() -> str:
    """The tag of our own image, built from this folder; the images of others are there, too."""
    tag = build_image()
    every = Compose("millrace-tests", 0, profiles=("*",)).call("config", "--images").split()
    require_images(*sorted({*every} - {"millrace"}))
    return tag
