"""The attempts to load landing files, or to close their batch, that ended with an error, or whose driver died."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from millrace.control.ledger.events import BatchEvent, FileEvent, batch_event, file_event
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.log.batch import FileFact, Intent
from millrace.errors import first_line

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeadAttempt:
    """An attempt whose driver, or whose Spark, died between its intent and its commit.

    Attributes:
        intent: what it was about to commit.
        is_counted: whether its death counts as a failure of the file already; only the death of an attempt that loaded
            one file alone ever does.
    """

    intent: Intent
    is_counted: bool

    @property
    def files(self) -> int:
        """The number of files that it loaded together."""
        return self.intent.sources.files


class Attempts:
    """Reads and writes the events of attempts that came to no end, in `ops.batches` and `ops.files`."""

    def __init__(self, batches: OpsTable, files: OpsTable) -> None:
        self._batches = batches
        self._files = files

    @contextmanager
    def outlived(self, intent: Intent, is_death: Callable[[Exception], bool]) -> Iterator[None]:
        """Record that an attempt to load files has failed, if the context ends with an error that is no death.

        Without that event, the next run takes the attempt for dead.
        """
        try:
            yield
        except Exception as error:
            if intent.sources.files and not is_death(error):
                self._record_failure(self._batches, [batch_event(BatchEvent.FAILED, intent)])
            raise

    @contextmanager
    def closing(self, intent: Intent, alone: FileFact | None, is_death: Callable[[Exception], bool]) -> Iterator[None]:
        """Record that records of a committed batch are read again to close it; and if the run lives on, that it does.

        Args:
            intent: the batch; its driver died after the commit.
            alone: the file that is read, without the others of the batch; None if all are read.
            is_death: whether an error is one of a Spark that died.
        """
        events = self._files if alone else self._batches

        def event(kind: str) -> list[dict[str, Any]]:
            return [file_event(FileEvent(kind), intent, alone) if alone else batch_event(BatchEvent(kind), intent)]

        events.append(event(FileEvent.CLOSING))
        try:
            yield
        except Exception as error:
            if not is_death(error):
                self._record_failure(events, event(FileEvent.OUTLIVED))
            raise
        events.append(event(FileEvent.OUTLIVED))

    def _record_failure(self, events: OpsTable, rows: list[dict[str, Any]]) -> None:
        try:
            events.append(rows)
        except Exception as error:  # noqa: BLE001  must not hide the error of the attempt, such as a full disk
            log.warning("%s: the next run takes this attempt for dead: %s", rows[0]["table"], first_line(error))

    def deaths_in_closing(self, intent: Intent) -> tuple[int, Counter[str]]:
        """Return how many runs died while they read a batch again to close it: all of it, and path -> a file alone."""
        of_batch: dict[str, list[Any]] = {"token": [intent.token], "batch_seq": [intent.batch_seq]}
        deaths, begun = Counter[str](), Counter({FileEvent.CLOSING.value: 1, FileEvent.OUTLIVED.value: -1})
        whole = self._batches.find(intent.table, ("event",), event=begun.keys(), **of_batch)
        for row in self._files.find(intent.table, ("event", "path"), event=begun.keys(), **of_batch):
            deaths[row["path"]] += begun[row["event"]]
        return sum(begun[row["event"]] for row in whole), deaths

    def dead(self, table: str, table_id: str, attempts: Mapping[str, Mapping[str, int]]) -> dict[str, DeadAttempt]:
        """Return path -> its last dead attempt, for paths that have one; an attempt without an intent wrote nothing.

        A later attempt that has failed says nothing about the file: no server may have answered.

        Args:
            table: the table.
            table_id: its Delta table id.
            attempts: path -> token and number of its attempts that did not win, oldest first.
        """
        if not attempts:
            return {}
        every = {token: number for of_file in attempts.values() for token, number in of_file.items()}
        of_attempts = {"table_id": [table_id], "token": every.keys(), "batch_seq": {*every.values()}}
        events = self._batches.find(table, ("event", "token", "intent"), **of_attempts)
        failed = {row["token"] for row in events if row["event"] == BatchEvent.FAILED}
        intents = {
            row["token"]: Intent.model_validate_json(row["intent"])
            for row in events
            if row["event"] == BatchEvent.INTENT and row["token"] not in failed
        }
        counted = set[str]()
        if any(intent.sources.files == 1 for intent in intents.values()):
            counts = self._files.find(table, ("token",), event=[FileEvent.FAILED], **of_attempts)
            counted = {row["token"] for row in counts}
        last = {path: token for path, of_file in attempts.items() for token in of_file if token in intents}
        return {path: DeadAttempt(intents[token], token in counted) for path, token in last.items()}
