"""What all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# A property says what is true, not how fast: a busy machine must not refute it.
settings.register_profile("millrace", deadline=None)
settings.load_profile("millrace")

OF_ONE_SESSION = ("tests/spark/", "tests/integration/pipeline/", "tests/integration/kafka/test_bronze")
OF_ONE_SERVER = ("tests/integration/commit_protocol/test_killed", "tests/integration/kafka/test_killed")


class SharedJvms(LoadScopeScheduling):
    """Gives tests that share something expensive to one worker, and any others file by file.

    A JVM takes a minute of CPU until it is warm: one serves all tests with a session of their own, another all those
    whose drivers are processes. (xdist's own groups, `--dist loadgroup`, do nothing under pytest 9.2.)
    """

    def _split_scope(self, nodeid: str) -> str:
        shared = [places[0] for places in (OF_ONE_SESSION, OF_ONE_SERVER) if nodeid.startswith(places)]
        return shared[0] if shared else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> SharedJvms:
    """Say which worker runs which tests."""
    return SharedJvms(config, log)
