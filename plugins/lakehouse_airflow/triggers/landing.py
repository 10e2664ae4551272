"""Wait in Airflow's triggerer until the folder of an interval's landing files exists."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from lakehouse_airflow.hooks.store_access import reach_store
from millrace.clock import utc_now
from millrace.control.landing.landing import landing_of
from millrace.errors import NotReadyError, StorageError
from millrace.settings import Settings

# Triggers of all DAGs share the event loop and its own threads: a store that does not answer must not hold those.
_THREADS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="landing")


class LandingTrigger(BaseTrigger):
    """Looks for a landing folder every now and then, in a thread, until it exists or the time is up.

    All parameters are stored in Airflow's database, so that another triggerer continues the wait after a restart.

    :param feed: the source's folder below the landing root, or a prefix of a bucket.
    :param folder: the interval's folder, relative to the landing root.
    :param root: the landing root.
    :param first_look: when to look for the first time.
    :param poke_interval: seconds between two looks.
    :param until: when the wait ends without the folder.
    :param s3_connection: the Airflow connection with the credentials of a bucket; empty if the environment has them.
    """

    def __init__(
        self,
        *,
        feed: str,
        folder: str,
        root: str,
        first_look: datetime,
        poke_interval: float,
        until: datetime,
        s3_connection: str = "",
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.feed = feed
        self.folder = folder
        self.root = root
        self.first_look = first_look
        self.poke_interval = poke_interval
        self.until = until
        self.s3_connection = s3_connection

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the path of this class and the parameters."""
        names = ("feed", "folder", "root", "first_look", "poke_interval", "until", "s3_connection")
        return f"{LandingTrigger.__module__}.{LandingTrigger.__name__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: until when it would have waited (`until`), and why the storage refused to show the folder.

        The event does not say whether the folder is there: the worker looks again.
        """
        refused = ""
        await self._sleep((self.first_look - utc_now()).total_seconds())
        try:
            while not await self._sees_folder() and self._seconds_left > 0:
                await self._sleep(self.poke_interval)
        except StorageError as error:
            refused = str(error)
        yield TriggerEvent({"until": self.until.isoformat(), "refused": refused})  # type: ignore[no-untyped-call]

    async def _sees_folder(self) -> bool:
        """Return whether the folder exists; a store that does not answer now may answer the next time."""
        loop = asyncio.get_running_loop()
        try:
            # A dead network drive never answers; the wait ends all the same.
            async with asyncio.timeout(max(self._seconds_left, self.poke_interval)):
                return await loop.run_in_executor(_THREADS, self._has_folder)
        except (NotReadyError, TimeoutError) as error:
            self.log.warning("%s", str(error) or f"{self.folder}: the storage does not answer")
            return False

    def _has_folder(self) -> bool:
        # The triggerer waits for many tasks: no credentials in its own environment.
        variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        reach_store(variables, Settings(s3_connection=self.s3_connection))
        landing = landing_of(self.feed, self.root, variables)
        return landing.files(self.folder, lambda _: True) is not None

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, min(seconds, self._seconds_left)))

    @property
    def _seconds_left(self) -> float:
        return (self.until - utc_now()).total_seconds()
