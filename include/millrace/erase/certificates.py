"""`ops.erasures`: certificates of what a search did not find any more; each has the hash of the one before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic_core import to_json

from millrace.contracts.counted import counted
from millrace.contracts.time_format import MINUTE
from millrace.control.ledger.erasures import ERASURES, WHOLE, ErasureEvent
from millrace.control.ledger.ops_table import OpsTable
from millrace.erase.finding import Findings, Part, Place
from millrace.errors import MillraceError, NotReadyError
from millrace.paths import LakehousePaths

_TRIES = 8


class Erased(StrEnum):
    """What a search shows about subjects."""

    STORED = "stored"
    NEWEST = "erased from the newest versions"
    EVERYWHERE = "erased from all versions"


@dataclass(frozen=True)
class Certificate:
    """A certificate, which has no key of a subject.

    Attributes:
        number: its number, from 1.
        text: the certificate as JSON.
    """

    number: int
    text: str

    @property
    def content(self) -> dict[str, Any]:
        """The certificate."""
        content: dict[str, Any] = json.loads(self.text)
        return content

    @property
    def digest(self) -> str:
        """The SHA-256 of its text, which the next certificate has as `previous`."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def mentions_in(findings: Findings) -> list[Place]:
    """Return the places that only mention subjects, which a person may judge; not logs, which may have keys."""
    return [place for place in findings.places if not place.rows and place.part is not Part.LOG]


def state_of(findings: Findings, *, judged: bool = False) -> Erased:
    """Return what a search shows: older versions, and the log of their files, are deleted only later.

    What could not be searched counts as stored.

    Args:
        findings: what the search found.
        judged: whether a person has judged that the mentions of subjects may stay.
    """
    if findings.unread:
        return Erased.STORED
    places = [place for place in findings.places if not (judged and place in mentions_in(findings))]
    if not places:
        return Erased.EVERYWHERE
    is_old = all(place.part in (Part.OLDER, Part.LOG) for place in places)
    return Erased.NEWEST if is_old else Erased.STORED


class Certificates:
    """Reads and writes the certificates of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable.of(paths, "erasures", ERASURES)

    def all(self) -> list[Certificate]:
        """Return all certificates, the first one first."""
        rows = self._events.events(WHOLE, ("number", "certificate"), event=ErasureEvent.CERTIFIED.value)
        return sorted((Certificate(row["number"], row["certificate"]) for row in rows), key=lambda each: each.number)

    def write(self, findings: Findings, request: str, by: str, keys: str, judged: str = "") -> Certificate:
        """Write the certificate of a search that found nothing in the newest versions.

        Args:
            findings: what the search found.
            request: what the subjects' request is called elsewhere, such as `DSR-2026-17`; no personal value.
            by: who asked for it.
            keys: the digest of the keys, by which an erasure knows its certificates.
            judged: why mentions of the subjects may stay, as this person has judged; empty if nobody has.

        Raises:
            ValueError: something is still stored, or was not searched.
            MillraceError: an earlier certificate was changed or removed.
            NotReadyError: others wrote certificates all the time.
        """
        if (state := state_of(findings, judged=bool(judged))) is Erased.STORED:
            raise ValueError("what is stored, or was not searched, is not erased")
        for _ in range(_TRIES):
            require_chain(before := self.all())
            number = len(before) + 1
            content = {
                "number": number,
                "previous": before[-1].digest if before else "",
                "request": request,
                "by": by,
                "keys_digest": keys,
                "state": state.value,
                "judged": _judgement(findings, judged) if judged else None,
                **asdict(findings),
            }
            text = to_json(content).decode()
            row = {"event": ErasureEvent.CERTIFIED.value, "table": WHOLE, "number": number, "certificate": text}
            if self._events.append_once([row], f"certificate/{number}"):
                return Certificate(number, text)
        raise NotReadyError("others wrote certificates all the time", "Run this again.")


def _judgement(findings: Findings, why: str) -> dict[str, Any]:
    places = mentions_in(findings)
    return {
        "why": why,
        "mentions": sum(place.mentions for place in places),
        "places": [f"{place.name}, {place.part}" for place in places],
    }


def require_chain(certificates: list[Certificate]) -> None:
    """Check that no certificate was changed or removed.

    Raises:
        MillraceError: one was; the error names the first.
    """
    for problem in _breaks(certificates):
        raise MillraceError(problem, "Compare ops.erasures with the copies that you handed out.")


def _breaks(certificates: list[Certificate]) -> Iterator[str]:
    previous = ""
    for place, each in enumerate(certificates, 1):
        content = each.content
        if each.number != place or content["number"] != place:
            yield f"certificate {place} is missing"
        if content["previous"] != previous:
            yield f"certificate {place - 1} is another one than certificate {place} says"
        previous = each.digest


def in_words(certificate: Certificate) -> str:
    """Return a line on a certificate."""
    content = certificate.content
    at = datetime.fromisoformat(content["searched_at"])
    judged = content.get("judged")
    but = f" but for {counted(judged['mentions'], 'mention')} ({judged['why']})" if judged else ""
    facts = f"{content['subjects']} {content['kind']}, {content['state']}{but}, {at:{MINUTE}}, by {content['by']}"
    return f"{certificate.number}: {content['request']}: {facts}; {certificate.digest}"
