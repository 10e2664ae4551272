"""What all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# A property says what is true, not how fast: a busy machine must not refute it.
settings.register_profile("millrace", deadline=None)
settings.load_profile("millrace")

OF_ONE_SERVER = (
    "tests/integration/commit_protocol/test_killed",
    "tests/integration/embedded/test_connect_server",
    "tests/integration/kafka/test_killed",
)


class OneServer(LoadScopeScheduling):
    """Gives the tests whose drivers are processes to one worker, and any others file by file.

    A JVM takes a minute of CPU until it is warm, and all those drivers can share one Spark server. (xdist's own groups,
    `--dist loadgroup`, do nothing under pytest 9.2.)
    """

    def _split_scope(self, nodeid: str) -> str:
        return "server" if nodeid.startswith(OF_ONE_SERVER) else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneServer:
    """Say which worker runs which tests."""
    return OneServer(config, log)
