"""Who may commit: the store decides, by its conditional puts; or, where it knows none, whoever holds a lease.

With `LAKEHOUSE_LEASE_STORE` leases lie in a folder apart from the tables, each table of a layer has one writer at a
time, and each append to the ledger is leased too. It is weaker than a store that decides: a writer that is paused for
longer than its lease lasts, and then goes on, may replace the commit of whom took over (ADR 0021).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from include.contracts.lake_path import LakePath
from include.control.leases.leases import Leases
from include.control.storage.objects import LocalObjectStore
from include.control.storage.objects_on_s3 import object_store
from include.paths import LakehousePaths
from include.settings import Settings


def stores_decide() -> bool:
    """Whether commits rest on what the store promises, and not on leases."""
    return Settings().lease_store is None


def lakehouse_leases(paths: LakehousePaths, run_id: str, patience: timedelta) -> Leases:
    """The leases of a lakehouse in the name of a run.

    Args:
        paths: the lakehouse.
        run_id: the run.
        patience: how long to wait for a lease before giving up.
    """
    apart = Settings().lease_store
    store = object_store(apart or paths.leases)
    return Leases(store, _holder(run_id), patience_s=patience.total_seconds(), one_writer=apart is not None)


@contextmanager
def ledger_lease(table: LakePath) -> Iterator[None]:
    """Hold the lease of a table of the ledger, where the store does not decide.

    Raises:
        LeaseLostError: it could not be had in time.
    """
    apart = Settings().lease_store
    if apart is None:
        yield
        return
    with Leases(LocalObjectStore(apart), _holder("the ledger")).table(f"ops.{table.name}"):
        yield


def _holder(name: str) -> str:
    return f"{name} (process {os.getpid()} on {socket.gethostname()})"
