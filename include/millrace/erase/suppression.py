"""`ops.suppressions`: whom new batches of bronze leave out, since they were erased; hashes, no keys."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from millrace.control.events.event_files import RECORDED_IN
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.storage.objects_on_s3 import object_store
from millrace.erase.subjects import NUMBER, TEXT, Subjects, digits_of, message, number_of
from millrace.errors import MillraceError, StorageError
from millrace.paths import LakehousePaths

SUPPRESSIONS = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("event", pa.string()),
        ("table", pa.string()),
        ("kind", pa.string()),
        ("hash", pa.string()),
        ("salt", pa.string()),
        ("request", pa.string()),
        ("by", pa.string()),
    ]
)

_ALL = "lakehouse"
"""What the events are about: no single table."""

_SALT, _SALT_BYTES = "salt", 32
_OWNER_ONLY = 0o600


@dataclass(frozen=True)
class Suppressed:
    """The subjects of one kind that are left out.

    Attributes:
        kind: their kind.
        salt: the key of the hashes.
        hashes: the HMAC-SHA256 of `message` of their keys, in hexadecimal digits.
    """

    kind: str
    salt: bytes = field(repr=False)
    hashes: frozenset[str]


class Suppressions:
    """Reads and writes the list of one lakehouse; a rebuild, which has its own ledger, reads that of the lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        of_lakehouse = LakehousePaths(paths.root)
        self._events = OpsTable.of(of_lakehouse, "suppressions", SUPPRESSIONS)
        self._salts = LakehouseSalt(of_lakehouse)

    def add(self, subjects: Subjects, request: str, by: str) -> None:
        """Leave these subjects out of every batch that is planned from now on; do nothing if the request did before.

        Args:
            subjects: the subjects.
            request: what their request is called elsewhere; no personal value.
            by: who asked for it.

        Raises:
            MillraceError: the salt of an earlier list is gone.
            StorageError: this user may not read the salt.
        """
        salt, hashes = self._salt(), sorted(self.hashes_of(subjects))
        own = {"event": "suppressed", "table": _ALL, "kind": subjects.kind, "salt": _id_of(salt)}
        rows = [{**own, "hash": each, "request": request, "by": by} for each in hashes]
        content = hashlib.sha256("\n".join((request, *hashes)).encode()).hexdigest()
        self._events.append_once(rows, f"suppression/{content}")

    def hashes_of(self, subjects: Subjects) -> frozenset[str]:
        """Return the hashes of the keys of subjects, whether they are on the list or not; make the salt if it is new.

        Raises:
            MillraceError: the salt of an earlier list is gone.
            StorageError: this user may not read the salt.
        """
        salt = self._salt()
        return frozenset(_hash(salt, form) for key in subjects.values for form in _messages(subjects.kind, key))

    def digest_of(self, subjects: Subjects) -> str:
        """Return a digest of all keys of subjects, which nobody can compute without the salt; raise as `hashes_of`."""
        return hashlib.sha256("\n".join(sorted(self.hashes_of(subjects))).encode()).hexdigest()

    def newest(self, kinds: Collection[str]) -> int:
        """Return the number of the last event about these kinds, which `of` takes; 0 if there is none."""
        rows = self._events.events(_ALL, ("kind", RECORDED_IN))
        return max((row[RECORDED_IN] for row in rows if row["kind"] in kinds), default=0)

    def of(self, kind: str, upto: int) -> Suppressed | None:
        """Return the subjects of a kind by the events up to a number; None if there are none.

        Raises:
            MillraceError: the salt is gone.
            StorageError: this user may not read it.
        """
        rows = self._events.events(_ALL, ("hash", "salt", RECORDED_IN), kind=kind)
        listed = [row for row in rows if row[RECORDED_IN] <= upto]
        if not listed:
            return None
        return Suppressed(kind, self._salt_of(listed[0]["salt"]), frozenset(row["hash"] for row in listed))

    def _salt(self) -> bytes:
        """Return the salt of the list; of an empty list a new one."""
        known = self._events.events(_ALL, ("salt",))
        return self._salt_of(known[0]["salt"]) if known else self._salts.read() or self._salts.make()

    def _salt_of(self, digest: str) -> bytes:
        """Return the salt by which hashes were made."""
        salt = self._salts.read()
        if salt is None or _id_of(salt) != digest:
            raise MillraceError(
                f"{self._salts.path} is gone, or another one: nobody can tell whom ops.suppressions leaves out",
                "Restore it from a backup. Without one, move ops/suppressions away, and suppress all requests again.",
            )
        return salt


class LakehouseSalt:
    """The random key of all hashes of a lakehouse, which only the owner of its file may read."""

    def __init__(self, paths: LakehousePaths) -> None:
        self.path = paths.suppressions / _SALT
        self._objects = object_store(paths.suppressions, mode=_OWNER_ONLY)

    def read(self) -> bytes | None:
        """Return it; None if there is none."""
        try:
            stored = self._objects.get(_SALT)
        except PermissionError as error:
            raise StorageError(
                f"{self.path} may not be read by this user ({error.strerror})",
                "Let one user erase, and run the tables that state subject_keys: the file is for its owner alone.",
            ) from error
        return stored.body if stored else None

    def make(self) -> bytes:
        """Make it, or return the one that another process has just made."""
        salt = secrets.token_bytes(_SALT_BYTES)
        return salt if self._objects.put_if_absent(_SALT, salt) else self.read() or salt


def _messages(kind: str, key: str) -> Iterator[str]:
    yield message(kind, TEXT) + key
    if (number := number_of(key)) is not None and (digits := digits_of(number)):
        yield message(kind, NUMBER) + digits


def _hash(salt: bytes, text: str) -> str:
    return hmac.digest(salt, text.encode(), "sha256").hex()


def _id_of(salt: bytes) -> str:
    return hashlib.sha256(b"id of " + salt).hexdigest()[:16]
