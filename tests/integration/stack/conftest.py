"""What the tests of whole stacks share: homes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from embedded.home import Home
from tests.support.airflow.homes import new_homes


@pytest.fixture(scope="module")
def new_home() -> Iterator[Callable[[], Home]]:
    with new_homes() as made:
        yield made
