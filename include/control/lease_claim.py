"""What an object says that stands for a lease, or for somebody who waits for one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from include.control.objects import StoredObject


@dataclass(frozen=True)
class LeaseClaim:
    """What a lease object says.

    Attributes:
        holder: who holds it, for people: the run id and the process.
        nonce: makes each claim another object, so that two claims never have one etag.
        lasts_s: it expires so long after it was put, by the clock of where it is stored: holders' clocks may differ.
        beats: how often the heartbeat has renewed it; makes each renewal another object.
    """

    holder: str
    nonce: str
    lasts_s: float
    beats: int = 0

    def to_bytes(self) -> bytes:
        """The claim as it is stored."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> LeaseClaim:
        """The claim that was stored."""
        return cls(**json.loads(body))


def is_expired(stored: StoredObject) -> bool:
    """Whether a claim was not renewed for so long that it counts no more."""
    return stored.age_s > LeaseClaim.from_bytes(stored.body).lasts_s
