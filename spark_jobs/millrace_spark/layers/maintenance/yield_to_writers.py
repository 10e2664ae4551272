"""Long maintenance of a table yields to the batches that wait for the table (ADR 0022).

The lease keeps both apart, so that neither loses work to the other; but people wait for a batch, and OPTIMIZE can be
stopped at any moment: what it has committed stays, and its next turn does the rest.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millrace.contracts.lake_path import LakePath
from millrace.errors import MillraceError
from millrace_spark.delta_io.tables import OpenSession
from millrace_spark.layers.maintenance.maintenance import LeasedTable
from millrace_spark.runtime.session import interrupt

CHECK_PERIOD_S = 1.0
MAX_YIELDS = 3
"""How often a run yields. Then it goes on to its end, because a table that is written all day needs maintenance too."""

log = logging.getLogger(__name__)


class _YieldedError(Exception):
    """The work was stopped, because batches wait for the table."""


Rewrite = Callable[[SparkSession], None]


def in_turns(
    work: LeasedTable, open_session: OpenSession, conf: dict[str, str], rewrite: Rewrite, path: LakePath
) -> None:
    """Run `rewrite` in a session under `conf` and under the table's lease; run it again after it yielded to batches.

    Args:
        work: the work on the table.
        open_session: opens a session.
        conf: its settings.
        rewrite: rewrites the files at the path in any number of commits.
        path: the table, or one beside it.

    Raises:
        LeaseLostError: the lease was not free in time.
        ConflictError: writers without a lease committed first too often.
    """
    for _turn in range(MAX_YIELDS):
        # A batch that waits gets the lease before this run gets it again.
        with suppress(_YieldedError), work.leased(), open_session(conf) as session, _interruptible(work, session):
            return work.commit(lambda: rewrite(session), path)
    with work.leased(), open_session(conf) as session:
        work.commit(lambda: rewrite(session), path)


@contextmanager
def _interruptible(work: LeasedTable, session: SparkSession) -> Iterator[None]:
    """Stop the session's operations as soon as a batch waits for the table.

    Raises:
        _YieldedError: they were stopped.
    """
    stop, waiting = threading.Event(), list[str]()
    watch = threading.Thread(target=_interrupt_for_batches, args=(work, session, stop, waiting), daemon=True)
    watch.start()
    try:
        yield
    except Exception as error:
        if not waiting:
            raise
        work.yielded_to.append(waiting[0])
        log.info("%s: stopped for %s", work.table, waiting[0])
        raise _YieldedError from error
    finally:
        stop.set()
        watch.join()


def _interrupt_for_batches(work: LeasedTable, session: SparkSession, stop: threading.Event, waiting: list[str]) -> None:
    """Add batches that wait to `waiting`, and interrupt the session each time: it may be between two operations."""
    while not stop.wait(CHECK_PERIOD_S):
        try:
            if batches := work.leases.waiting_batches(work.table):
                waiting.append(batches)
                interrupt(session)
        except (OSError, MillraceError, PySparkException) as error:  # If the storage fails, the work itself fails too.
            log.warning("%s: could not check whether a batch waits: %s", work.table, error)
