"""The address of a running stack: written when the stack is ready, read by `make up` and other commands."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from embedded.home import LOOPBACK, Home, free_port
from millrace.contracts.roots import LakeRoot, LandingRoot
from millrace.settings import Settings


class Address(BaseModel):
    """The ports of one stack, and its lakehouse.

    Attributes:
        web: port of Airflow's web server.
        worker_logs: port of the server of task logs.
        spark: port of the warm Spark server.
        root: the lakehouse root.
        landing: the landing root.
    """

    model_config = ConfigDict(frozen=True)

    web: int
    worker_logs: int
    spark: int
    root: LakeRoot
    landing: LandingRoot

    @property
    def url(self) -> str:
        """Airflow's address for the browser."""
        return f"http://{LOOPBACK}:{self.web}"

    @classmethod
    def free(cls, home: Home, settings: Settings) -> Address:
        """Return an address with free ports; the web server keeps its last port if that is free, for open tabs."""
        previous = cls.load(home)
        return cls(
            web=free_port(previous.web if previous else 0),
            worker_logs=free_port(),
            spark=free_port(),
            root=settings.root,
            landing=settings.landing,
        )

    def save(self, home: Home) -> None:
        """Write the address to the home."""
        home.address.write_text(self.model_dump_json(indent=1))

    @classmethod
    def load(cls, home: Home) -> Address | None:
        """Return the address of the stack that runs in `home`, or ran last; None if there was none."""
        return cls.model_validate_json(home.address.read_text()) if home.address.exists() else None
