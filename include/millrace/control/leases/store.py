"""The leases of a lakehouse and of its ledger, next to the tables or in a folder of their own.

Normally the conditional puts of the store decide who commits. For a store without them, `LAKEHOUSE_LEASE_STORE` names a
separate folder for leases: then a table has only one writer at a time, and each append to the ledger needs a lease.
This is weaker: a writer that pauses for longer than its lease may overwrite the commit of its successor (ADR 0021).
"""

from __future__ import annotations

import os
import socket
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path

from millrace.contracts.lake_path import LakePath, S3Path
from millrace.control.leases.leases import Leases
from millrace.control.storage.objects import LocalObjectStore
from millrace.control.storage.objects_on_s3 import object_store
from millrace.paths import LakehousePaths


def lakehouse_leases(paths: LakehousePaths, run_id: str, patience: timedelta) -> Leases:
    """Return the leases of a lakehouse for a run, which waits for a lease for at most `patience`."""
    store, one_writer = object_store(paths.lease_store or paths.leases), paths.lease_store is not None
    return Leases(store, _holder(run_id), patience_s=patience.total_seconds(), one_writer=one_writer)


def ledger_lease(table: LakePath, lease_store: Path | None) -> AbstractContextManager[object]:
    """Hold the lease of a table of the ledger; without a folder for leases, hold none.

    Raises:
        LeaseLostError: the lease was not free in time.
    """
    if lease_store is None:
        return nullcontext()
    return Leases(LocalObjectStore(lease_store), _holder("the ledger")).table(f"ops.{table.name}")


def views_lease(views: S3Path, lease_store: Path | None, patience: timedelta) -> AbstractContextManager[object]:
    """Hold the lease of views in a bucket; it is kept next to them, or in the folder for leases.

    Raises:
        LeaseLostError: the lease was not free in time.
    """
    leases = Leases(object_store(lease_store or views), _holder("views"), patience_s=patience.total_seconds())
    return leases.table("views")


def _holder(name: str) -> str:
    return f"{name} (process {os.getpid()} on {socket.gethostname()})"
