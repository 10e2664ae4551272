"""The delays of a writer by other writers: waits for a lease, and commits that lost against others."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class LeaseWait(BaseModel):
    """A wait for a lease.

    Attributes:
        seconds: the time from the request to the lease.
        holders: run and process of those that held the lease at the request, joined by commas; empty if it was free.
    """

    model_config = ConfigDict(frozen=True)

    seconds: float = 0.0
    holders: str = ""

    def and_then(self, later: LeaseWait) -> LeaseWait:
        """Add a later wait of the same run.

        >>> LeaseWait(seconds=1, holders="manual__7").and_then(LeaseWait(seconds=2))
        LeaseWait(seconds=3.0, holders='manual__7')
        """
        holders = dict.fromkeys(name for name in (self.holders, later.holders) if name)
        return LeaseWait(seconds=self.seconds + later.seconds, holders=", ".join(holders))


class LostRace(BaseModel):
    """A commit that a writer could not make, because another writer committed first.

    Attributes:
        conflict: Delta's error class, such as `ConcurrentAppendException`.
        operation: the winner's operation in Delta's words, such as `OPTIMIZE`.
        run_id: the winner's run, from its commit; empty for a writer outside Millrace.
        version: the version that the winner made; None if Delta's error does not name the commit.
    """

    model_config = ConfigDict(frozen=True)

    conflict: str
    operation: str = ""
    run_id: str = ""
    version: int | None = None

    def __str__(self) -> str:
        """Return the lost race in one line.

        >>> str(LostRace(conflict="ConcurrentAppendException", operation="MERGE", run_id="manual__7", version=4))
        'ConcurrentAppendException with MERGE of manual__7 (version 4)'
        """
        if self.version is None:
            return self.conflict
        return f"{self.conflict} with {self.operation} of {self.run_id or 'another system'} (version {self.version})"
