"""What all tests share."""

from __future__ import annotations

import os
import sys

import pygal  # noqa: F401
import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from embedded.clone import DEMO

# The project of all that a test does not place elsewhere.
os.environ.setdefault("LAKEHOUSE_PROJECT", str(DEMO))

# A property says what is true, not how fast: a busy machine must not refute it.
settings.register_profile("millrace", deadline=None)
settings.load_profile("millrace")

# pygal adds a finder of modules without `find_spec`. Python passes over it, and pytest fails at it.
sys.meta_path[:] = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]


class OneWorkerForAirflow(LoadFileScheduling):
    """The tests of a file stay together, and all of Airflow's, whose database and API server take seconds to make."""

    def _split_scope(self, nodeid: str) -> str:
        return "tests/dags" if nodeid.startswith("tests/dags/") else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Return what divides tests among workers by their files; None for another way to divide them."""
    return OneWorkerForAirflow(config, log) if config.getvalue("dist") == "loadfile" else None
