"""Create the pools of Spark tasks when Airflow starts: Airflow never starts a task whose pool is missing."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Any

from airflow.listeners import hookimpl

log = logging.getLogger(__name__)

POOL = "spark"
"""The machine's Spark capacity. Leases, not the pool, keep writers of one table apart."""

MAINTENANCE_POOL = "maintenance"
"""One slot beside these: maintenance of one table at a time, for which no batch waits."""

DEFAULT_POOL = "default_pool"
"""Airflow's own pool, for tasks that start no Spark. Airflow's SDK has no public name for it."""


@hookimpl
def on_starting(component: Any) -> None:
    """Create the pools, unless they exist; a task starts as well, and creates nothing.

    A scheduler, a triggerer or a DAG processor is starting; at this time Airflow does not say which.
    """
    if type(component).__module__ != "airflow.jobs.job":
        return
    # Imported here: every task loads this module, and needs no database.
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session
    from sqlalchemy.exc import IntegrityError

    slots_of = {
        POOL: (os.cpu_count() or 2, "one slot per core of this machine; change it as you like"),
        MAINTENANCE_POOL: (1, "maintenance of one table at a time; change it as you like"),
    }
    for pool, (slots, text) in slots_of.items():
        # Another process may create it at the same moment.
        with suppress(IntegrityError), create_session() as session:
            if Pool.get_pool(pool, session=session) is None:
                Pool.create_or_update_pool(pool, slots, text, include_deferred=False, session=session)
                log.info("created the pool %s with %d slots", pool, slots)
