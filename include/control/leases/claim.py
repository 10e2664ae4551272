"""What an object says that stands for a lease, or for somebody who waits for one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from include.control.storage.objects import StoredObject

LASTS_S = 30.0
"""A lease that is not renewed for so many seconds is free."""


@dataclass(frozen=True)
class LeaseClaim:
    """What a lease object says.

    Attributes:
        holder: who holds it, for people: the run id and the process.
        nonce: makes each claim another object, so that two claims never have one etag.
        lasts_s: it expires when it was not renewed for so many seconds.
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
        """The claim that was stored; one that cannot be read (a disk cut it) is nobody's, and expires as any other."""
        try:
            return _STORED.validate_json(body)
        except ValidationError:
            return cls(holder="nobody who is known: the lease cannot be read", nonce="", lasts_s=LASTS_S)


_STORED = TypeAdapter(LeaseClaim)


def is_expired(stored: StoredObject) -> bool:
    """Whether a claim was not renewed for so long that it counts no more."""
    return stored.age_s > LeaseClaim.from_bytes(stored.body).lasts_s
