"""Spark servers that died so often that they are not started again for a while: a cause that concerns all tables."""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from millrace.alerts.shared_object import SharedObject
from millrace.contracts.interval import Instant
from millrace.contracts.time_format import MINUTE
from millrace.overview.attention import Attention
from millrace.paths import LakehousePaths

_GRACE = timedelta(minutes=15)
"""How long after the time of its next start a server is still listed; then nobody is left who would start it."""


class DownServer(BaseModel):
    """A server that is not started again before some time.

    Attributes:
        name: names the server among those of the lakehouse.
        restarts: how often it was started again within the last hour.
        since: when it died last.
        again_at: when it is started again.
        log: the file with its output.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    restarts: int
    since: Instant
    again_at: Instant
    log: str

    @property
    def table(self) -> None:
        """None: it concerns all tables."""

    @property
    def kind(self) -> str:
        """The kind of trouble."""
        return "no Spark server"

    @property
    def cause(self) -> str:
        """What is wrong, in one sentence."""
        return (
            f"the Spark server was started {self.restarts} times within an hour and died again; it starts at "
            f"{self.again_at:{MINUTE}} UTC, and no job runs on it until then"
        )

    @property
    def way_out(self) -> str:
        """What helps."""
        return (
            f"Its log {self.log} says what it died of; `lakehouse files --status failed` lists the landing files that "
            "it died with. `make down` and `make up` start it at once."
        )

    @property
    def names(self) -> list[str]:
        """The name of the cause, by which alerts remember what they have told."""
        return [f"{self.kind} {self.name} {self.since:%Y-%m-%dT%H:%M:%S}"]


Cause = Attention | DownServer
"""What people are told: something that needs a person, about one table or about all."""


class DownServers:
    """Reads and changes the servers of one lakehouse that are down."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._servers = SharedObject(paths, "servers")

    def add(self, server: DownServer) -> None:
        """Add a server, or replace what was known of it.

        Raises:
            ConflictError: other processes were first a hundred times.
            StorageError, OSError: the storage of the lakehouse refuses it.
        """
        self._servers.change(DownServer, lambda stored: {**stored, server.name: server})

    def remove(self, name: str) -> None:
        """Forget a server, which runs again or was stopped; raise the errors of `add`."""
        self._servers.change(DownServer, lambda stored: {key: each for key, each in stored.items() if key != name})

    def at(self, now: datetime) -> list[DownServer]:
        """Return the servers that are down, in the order of their deaths."""
        servers = self._servers.read(DownServer).values()
        return sorted((each for each in servers if now < each.again_at + _GRACE), key=lambda each: each.since)
