"""The leases of a lakehouse, and of its views in a bucket."""

from __future__ import annotations

import os
import socket
from contextlib import AbstractContextManager
from datetime import timedelta

from millrace.contracts.lake_path import S3Path
from millrace.control.leases.leases import Leases
from millrace.control.storage.objects_on_s3 import object_store
from millrace.paths import LakehousePaths


def lakehouse_leases(paths: LakehousePaths, run_id: str, patience: timedelta) -> Leases:
    """Return the leases of a lakehouse for a run, which waits for a lease for at most `patience`."""
    return Leases(object_store(paths.leases), _holder(run_id), patience_s=patience.total_seconds())


def views_lease(views: S3Path, patience: timedelta) -> AbstractContextManager[object]:
    """Hold the lease of views in a bucket; it is kept next to them.

    Raises:
        LeaseLostError: the lease was not free in time.
    """
    leases = Leases(object_store(views), _holder("views"), patience_s=patience.total_seconds())
    return leases.table("views")


def _holder(name: str) -> str:
    return f"{name} (process {os.getpid()} on {socket.gethostname()})"
