"""Create the pool of Spark tasks when Airflow starts: Airflow never starts a task whose pool is missing."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Any

from airflow.listeners import hookimpl

log = logging.getLogger(__name__)

POOL = "spark"
"""The machine's Spark capacity. Leases, not the pool, keep writers of one table apart."""

DEFAULT_POOL = "default_pool"
"""Airflow's own pool, for tasks that start no Spark. Airflow's SDK has no public name for it."""


@hookimpl
def on_starting(component: Any) -> None:
    """Create the pool with one slot per core, unless it exists; a task starts as well, and creates nothing.

    A scheduler, a triggerer or a DAG processor is starting; at this time Airflow does not say which.
    """
    if type(component).__module__ != "airflow.jobs.job":
        return
    # Imported here: every task loads this module, and needs no database.
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session
    from sqlalchemy.exc import IntegrityError

    slots = os.cpu_count() or 2
    # Another process may create it at the same moment.
    with suppress(IntegrityError), create_session() as session:
        if Pool.get_pool(POOL, session=session) is None:
            text = "one slot per core of this machine; change it as you like"
            Pool.create_or_update_pool(POOL, slots, text, include_deferred=False, session=session)
            log.info("created the pool %s with %d slots", POOL, slots)
