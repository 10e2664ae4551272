"""Docker for tests: whether it is here, the images that it must have, and the image of this folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from embedded.clone import CLONE

IMAGE = "millrace-tests"
BUILD_S, RUN_S = 1800, 900


def docker(*args: str, patience_s: float = RUN_S) -> subprocess.CompletedProcess[str]:
    """Run a command of Docker."""
    return subprocess.run(["docker", *args], capture_output=True, text=True, timeout=patience_s, check=False)


def require_docker() -> None:
    """Skip the test where no Docker daemon runs."""
    if shutil.which("docker") is None or docker("info", patience_s=60).returncode != 0:
        pytest.skip("no Docker daemon answers `docker info`")


def require_images(*names: str) -> None:
    """Skip the test if an image is neither here nor in a registry that can be reached."""
    for name in names:
        if docker("image", "inspect", name).returncode != 0 and docker("pull", "--quiet", name).returncode != 0:
            pytest.skip(f"Docker has no image {name} and cannot pull it")


def build_image() -> str:
    """Build the image of this folder; return its tag. Skip the test where this cannot work."""
    require_docker()
    pinned = re.search(r"^ARG MILLRACE_BASE_IMAGE=(\S+)$", (CLONE / "Dockerfile").read_text(), flags=re.MULTILINE)
    assert pinned is not None
    require_images(os.environ.get("MILLRACE_BASE_IMAGE", pinned[1]))
    options = ("--network", "host", "--build-arg", "MILLRACE_BASE_IMAGE", "--tag", IMAGE)
    built = docker("build", *options, str(CLONE), patience_s=BUILD_S)
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    return IMAGE
