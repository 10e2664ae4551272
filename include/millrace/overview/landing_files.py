"""The landing files of a bronze table: which file was loaded when, and what became of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from millrace.contracts.file_status import FileStatus
from millrace.control.events.conditions import Span
from millrace.control.landing.file_states import FileState, file_states
from millrace.control.ledger.events import Failure
from millrace.control.ledger.ledger import Ledger

_TICK = timedelta(microseconds=1)
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True)
class FileFilter:
    """The files that a person wants to see.

    Attributes:
        day: only files of the intervals that start on this UTC day.
        prefix: only files whose path begins with this text.
        before: only files whose last event is older.
    """

    day: date | None = None
    prefix: str = ""
    before: datetime | None = None

    @property
    def conditions(self) -> dict[str, Span]:
        """The conditions on the events of such files."""
        conditions = {}
        if self.day:
            ends = (datetime.combine(self.day, moment, UTC) for moment in (time.min, time.max))
            conditions["interval_start"] = Span(*ends)
        if self.prefix:
            conditions["path"] = Span(self.prefix, self.prefix + _LAST_CHARACTER)
        return conditions

    def matches(self, file: FileState) -> bool:
        """Whether the last event of a file is one of those that the filter selects."""
        is_of_day = self.day is None or file.interval.start.date() == self.day
        return is_of_day and (self.before is None or file.changed_at < self.before)


@dataclass(frozen=True)
class LandingFiles:
    """A part of the landing files of a table, and all of its files that could not be loaded.

    Attributes:
        files: the files, the last changed first.
        next_before: the `FileFilter.before` of the next part; None if this is the last one.
        failures: path -> failure, for every file whose last attempt failed.
    """

    files: Sequence[FileState] = ()
    next_before: datetime | None = None
    failures: Mapping[str, Failure] = field(default_factory=dict)

    @property
    def answer(self) -> str:
        """One sentence: whether files are missing from the table.

        >>> LandingFiles().answer
        'No run has seen a landing file yet.'
        """
        given_up = sum(failure.given_up for failure in self.failures.values())
        failed = len(self.failures) - given_up
        if failed:
            files = "1 landing file" if failed == 1 else f"{failed:,} landing files"
            besides = f"; {given_up:,} more {'is' if given_up == 1 else 'are'} given up" if given_up else ""
            return (
                f"{files} could not be loaded: the records in {'it' if failed == 1 else 'them'} are missing{besides}."
            )
        if given_up:
            return f"A person gave up {'1 file' if given_up == 1 else f'{given_up:,} files'}; no other file failed."
        waiting = sum(file.status is not FileStatus.LOADED for file in self.files)
        if waiting:
            return f"No file failed; {waiting:,} of those below {'is' if waiting == 1 else 'are'} not loaded yet."
        return "No file failed: every file below is loaded." if self.files else "No run has seen a landing file yet."


def landing_files(ledger: Ledger, table: str, table_id: str, file_filter: FileFilter, count: int) -> LandingFiles:
    """Read about `count` files of a table that pass the filter, the last changed first, and its failures."""
    upto = file_filter.before - _TICK if file_filter.before else None
    last_of: dict[str, datetime] = {}
    oldest, has_more = upto, False
    for event in ledger.newest_files(table, table_id, upto, **file_filter.conditions):
        at = event["recorded_at"]
        # Files with events of the same moment stay together, since the next part begins before that moment.
        if len(last_of) >= count and at != oldest:
            has_more = True
            break
        last_of.setdefault(event["path"], at)
        oldest = at
    known = file_states(ledger, table, table_id, paths=last_of) if last_of else []
    states = [file for file in known if file_filter.matches(file)]
    states.sort(key=lambda file: (-file.changed_at.timestamp(), file.path))
    return LandingFiles(states, oldest if has_more else None, ledger.failed_files(table, table_id))
