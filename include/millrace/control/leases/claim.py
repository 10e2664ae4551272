"""The content of an object that is a lease, or a note of a run that waits for a lease."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from millrace.control.storage.objects import StoredObject

LASTS_S = 30.0
"""The seconds after which a lease is free if nobody renews it."""


@dataclass(frozen=True)
class LeaseClaim:
    """The content of a lease object.

    Attributes:
        holder: the run id and the process of the holder, for people.
        nonce: a random text, so that two claims never have the same etag.
        lasts_s: the seconds after which it expires if it is not renewed.
        beats: the number of renewals, so that each renewal has another etag.
    """

    holder: str
    nonce: str
    lasts_s: float
    beats: int = 0

    def to_bytes(self) -> bytes:
        """Return the claim as the body of an object."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, body: bytes) -> LeaseClaim:
        """Return the claim in the body of an object; a body that is damaged gives a claim of nobody, which expires."""
        try:
            return _ADAPTER.validate_json(body)
        except ValidationError:
            return cls(holder="an unknown run: the lease cannot be read", nonce="", lasts_s=LASTS_S)


_ADAPTER = TypeAdapter(LeaseClaim)


def is_expired(stored: StoredObject) -> bool:
    """Whether a claim has expired, because it was not renewed in time."""
    return stored.age_s > LeaseClaim.from_bytes(stored.body).lasts_s
