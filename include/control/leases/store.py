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
from pathlib import Path

from include.contracts.lake_path import LakePath
from include.control.leases.leases import Leases
from include.control.storage.objects import LocalObjectStore
from include.control.storage.objects_on_s3 import object_store
from include.paths import LakehousePaths


def lakehouse_leases(paths: LakehousePaths, run_id: str, patience: timedelta) -> Leases:
    """The leases of a lakehouse in the name of a run.

    Args:
        paths: the lakehouse.
        run_id: the run.
        patience: how long to wait for a lease before giving up.
    """
    store, one_writer = object_store(paths.lease_store or paths.leases), paths.lease_store is not None
    return Leases(store, _holder(run_id), patience_s=patience.total_seconds(), one_writer=one_writer)


@contextmanager
def ledger_lease(table: LakePath, lease_store: Path | None) -> Iterator[None]:
    """Hold the lease of a table of the ledger; without a folder for leases the store's conditional puts decide.

    Raises:
        LeaseLostError: it could not be had in time.
    """
    if lease_store is None:
        yield
        return
    with Leases(LocalObjectStore(lease_store), _holder("the ledger")).table(f"ops.{table.name}"):
        yield


def _holder(name: str) -> str:
    return f"{name} (process {os.getpid()} on {socket.gethostname()})"
