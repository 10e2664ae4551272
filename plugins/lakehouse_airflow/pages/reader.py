"""The reader of the lakehouse that all pages of a process share, and what it has read before."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from threading import BoundedSemaphore

from lakehouse_airflow.hooks.store_access import reach_store
from millrace.clock import utc_now
from millrace.control.storage.s3_access import store_access
from millrace.errors import MillraceError, NotReadyError
from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks
from millrace.settings import Settings

MOST_AT_ONCE = 8
"""The pages that may read at the same time. The API server has 40 threads for all pages, also for Airflow's own; a
store that does not answer would take them all."""

MOST_PLANS = 2
"""The pages among them that may plan at the same time: a plan lists landing folders, which no limit breaks off."""

_places, _plans = BoundedSemaphore(MOST_AT_ONCE), BoundedSemaphore(MOST_PLANS)


@contextmanager
def lakehouse() -> Iterator[LakehouseReader]:
    """Lend the reader of the lakehouse of the settings, with access to its store.

    The credentials of Airflow's connection are those of the block alone. The API server's environment does not get
    them: its other code, such as the reader of remote logs, may have another identity.

    Raises:
        NotReadyError: as many pages as may read at the same time wait for the store.
    """
    settings = Settings().absolute()
    if not _places.acquire(timeout=settings.page_wait_s):
        raise NotReadyError(f"{settings.root}: other pages wait for its storage", "Try again when the storage answers.")
    try:
        variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        reach_store(variables, settings)
        with store_access(variables) if settings.s3_connection else nullcontext():
            yield _reader(settings.model_dump_json(include={"root", "tables"}))
    finally:
        _places.release()


@contextmanager
def lakehouse_to_plan() -> Iterator[LakehouseReader]:
    """Lend the reader as `lakehouse` does, to a page that makes a plan.

    Raises:
        NotReadyError: as many pages as may plan at the same time do, or wait for a store.
    """
    if not _plans.acquire(timeout=Settings().page_wait_s):
        raise NotReadyError("Other plans are being made, or wait for their landing folders", "Try again in a moment.")
    try:
        with lakehouse() as reader:
            yield reader
    finally:
        _plans.release()


@cache
def _reader(_settings: str) -> LakehouseReader:
    """Return a reader that has read specs and states, out of reach of Python's garbage collector.

    A full collection looks at each object of the process, and stops all its threads meanwhile: for half a second, every
    few pages, with Airflow's modules and the specs and states of a thousand tables.
    """
    settings = Settings().absolute()
    reader = LakehouseReader(settings.paths, settings.tables)
    with suppress(MillraceError):  # The page that needs what cannot be read says so.
        reader.read(utc_now(), no_failed_tasks)
    gc.collect()
    gc.freeze()
    return reader
