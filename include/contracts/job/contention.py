"""What a writer met of others: the lease that it waited for, and the commits that it lost to."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Waited(BaseModel):
    """How long a lease was waited for.

    Attributes:
        seconds: from asking for it to having it.
        for_whom: who held it when it was asked for, run and process, joined by commas; empty where it was free.
    """

    model_config = ConfigDict(frozen=True)

    seconds: float = 0.0
    for_whom: str = ""

    def and_then(self, later: Waited) -> Waited:
        """This wait and a later one of the same run.

        >>> Waited(seconds=1, for_whom="manual__7").and_then(Waited(seconds=2))
        Waited(seconds=3.0, for_whom='manual__7')
        """
        whom = dict.fromkeys(name for name in (self.for_whom, later.for_whom) if name)
        return Waited(seconds=self.seconds + later.seconds, for_whom=", ".join(whom))


class LostRace(BaseModel):
    """A commit that a writer could not make, because another one was first.

    Attributes:
        conflict: Delta's class of it, such as `ConcurrentAppendException`.
        operation: what the winner did, as Delta names it, such as `OPTIMIZE`.
        run_id: the run that the winner belongs to, as its commit says; empty for a writer that is not Millrace's.
        version: the version that the winner made; None where Delta's error does not tell which commit it was.
    """

    model_config = ConfigDict(frozen=True)

    conflict: str
    operation: str = ""
    run_id: str = ""
    version: int | None = None

    def __str__(self) -> str:
        """It in one line.

        >>> str(LostRace(conflict="ConcurrentAppendException", operation="MERGE", run_id="manual__7", version=4))
        'ConcurrentAppendException with MERGE of manual__7 (version 4)'
        """
        if self.version is None:
            return self.conflict
        return f"{self.conflict} with {self.operation} of {self.run_id or 'another system'} (version {self.version})"
