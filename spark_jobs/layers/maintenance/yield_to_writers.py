"""Maintenance that takes long lets the batches go first that wait for its table (ADR 0022).

The lease keeps them apart, so that neither loses work to the other; but a batch is what people wait for, and OPTIMIZE
can be stopped at any moment: what it has committed stays, and the rest is done by its next turn.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from include.errors import MillraceError
from spark_jobs.delta_io.tables import OpenSession
from spark_jobs.layers.maintenance.maintenance import TableWork
from spark_jobs.runtime.session import interrupt

LOOKS_EVERY_S = 1.0
GIVES_WAY = 3
"""How often one run gives way. Then it goes on to its end: a table that is written all day is to be in order too."""

log = logging.getLogger(__name__)


class _GaveWayError(Exception):
    """The work was stopped, because batches wait for the table."""


Rewrite = Callable[[SparkSession], None]


def in_turns(work: TableWork, open_session: OpenSession, conf: dict[str, str], rewrite: Rewrite) -> None:
    """Run `rewrite`, in a session under `conf`, while `work` holds the lease; anew after batches were let in.

    Raises:
        LeaseLostError: the lease could not be had in time.
        ConflictError: writers that know no lease were faster again and again.
    """
    for _turn in range(GIVES_WAY):
        # Whoever waited is before us when we ask for the lease again.
        with suppress(_GaveWayError), work.leased(), open_session(conf) as session, _interruptible(work, session):
            return work.commit(lambda: rewrite(session))
    with work.leased(), open_session(conf) as session:
        work.commit(lambda: rewrite(session))


@contextmanager
def _interruptible(work: TableWork, session: SparkSession) -> Iterator[None]:
    """Stop what the session runs as soon as a batch waits for the table.

    Raises:
        _GaveWayError: it was stopped.
    """
    stop, asked_by = threading.Event(), list[str]()
    watch = threading.Thread(target=_interrupt_when_asked, args=(work, session, stop, asked_by), daemon=True)
    watch.start()
    try:
        yield
    except Exception as error:
        if not asked_by:
            raise
        work.gave_way_to.append(asked_by[0])
        log.info("%s: stopped for %s", work.table, asked_by[0])
        raise _GaveWayError from error
    finally:
        stop.set()
        watch.join()


def _interrupt_when_asked(work: TableWork, session: SparkSession, stop: threading.Event, asked_by: list[str]) -> None:
    """Look now and then; once asked, interrupt until the work has ended: it may be between two operations of Spark."""
    while not stop.wait(LOOKS_EVERY_S):
        try:
            if batches := work.leases.batches_waiting(work.table):
                asked_by.append(batches)
                interrupt(session)
        except (OSError, MillraceError, PySparkException) as error:  # to look is a courtesy; the work itself says more
            log.warning("%s: could not see whether a batch waits: %s", work.table, error)
