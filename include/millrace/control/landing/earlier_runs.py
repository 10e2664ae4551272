"""What earlier runs have left of the files that a run loads: failures, and attempts that died before their commit."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from millrace.contracts.counted import counted
from millrace.control.ledger.events import Failure, FileEvent
from millrace.control.ledger.ledger import Ledger

log = logging.getLogger(__name__)

ONE_BY_ONE = 100
"""The most files of a dead attempt that are loaded one by one at once."""

_DIED_ALONE = "the driver or its Spark died while it loaded this file alone, in the run {}"


class EarlierRuns:
    """The failures of files of a table before one run, and the attempts that died since each file was loaded last.

    Nobody knows which of several files has killed a driver, or whether any did: a machine may have failed, or a person
    has stopped the run. So the files are loaded alone, and a death counts as a failure of a file only if it was.

    Attributes:
        largest_batches: path of a file of an attempt that died -> how many of these files a batch has at most.
        died_alone: the paths of those that were alone in it.

    Args:
        table: the table.
        table_id: its Delta table id.
        ledger: the ledger.
        notes: gets what the run does because of the deaths, for its report.
    """

    def __init__(self, table: str, table_id: str, ledger: Ledger, notes: list[str]) -> None:
        self._table = table
        self._table_id = table_id
        self._ledger = ledger
        self.largest_batches: dict[str, int] = {}
        self.died_alone: set[str] = set()
        self._notes = notes
        self._read: set[str] = set()
        self._failures: dict[str, Failure] = {}

    def failures(self, paths: Collection[str]) -> Mapping[str, Failure]:
        """Return the failures of files before the run: a failure in the run counts once, however often it plans.

        Call it under the lease of the stream: it records the deaths that count as failures, each of them once.
        """
        if new := set(paths) - self._read:
            self._count_deaths(new)
            self._failures |= self._ledger.failures(self._table, self._table_id, path=new)
            self._read |= new
        return self._failures

    def _count_deaths(self, paths: Collection[str]) -> None:
        attempts = self._ledger.loaded_files(self._table, self._table_id).open_attempts(paths)
        dead = self._ledger.attempts.dead(self._table, self._table_id, attempts)
        self.largest_batches |= {path: largest_batch(attempt.files) for path, attempt in dead.items()}
        self.died_alone |= {path for path, attempt in dead.items() if attempt.files == 1}
        for path in self.died_alone & dead.keys():
            if not (attempt := dead[path]).is_counted:
                intent, reason = attempt.intent, _DIED_ALONE.format(attempt.intent.run_id)
                interval = intent.interval
                files = [replace(file, defect=reason) for file in self._ledger.files_of(intent)]
                self._ledger.record_files(FileEvent.FAILED, self._table, self._table_id, interval, files, died=intent)
                self._note(f"{path}: {reason}; it is tried after all others")
        together = Counter(attempt.intent.run_id for attempt in dead.values() if attempt.files > 1)
        for run, number in together.items():
            self._note(
                f"{counted(number, 'file')} of the run {run}, whose driver or Spark died: loaded in small batches"
            )

    def _note(self, note: str) -> None:
        log.warning("%s: %s", self._table, note)
        self._notes.append(note)


def largest_batch(files: int) -> int:
    """Return how many files of an attempt that died are loaded together, by the number of files that it had.

    A death may take the Spark server from all tables, so that few deaths matter more than few commits. One by one finds
    the file that kills with one more death; halves would take ten for a thousand files. Many files are first loaded in
    as many batches as each of them has files: a second death more, and not a commit for each file.

    >>> [largest_batch(files) for files in (1, 2, 100, 1000)]
    [1, 1, 1, 31]
    """
    return 1 if files <= ONE_BY_ONE else math.isqrt(files)
