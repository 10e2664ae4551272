"""Carry out an erasure exactly as its plan has shown it, or go on where that was interrupted.

Each step may be done again. Nothing but the file of its request has a key of a subject.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from millrace.catalog import Catalog
from millrace.clock import utc_now
from millrace.contracts.job.requests import ErasureRequest
from millrace.control.ledger.erasures import DecidedErasure
from millrace.control.log.stored_tables import is_table
from millrace.control.ops_tables import OpsTables
from millrace.control.storage.stored_files import delete_files
from millrace.erase.finding import Findings, FoundFile, find
from millrace.erase.older_versions import delete_older_versions
from millrace.erase.plan import ErasurePlan, Fate, fate_of, plan_erasure, require_erasable
from millrace.erase.reach import Reach, kinds_in, reach_of
from millrace.erase.subjects import Subjects
from millrace.erase.suppression import Suppressions
from millrace.errors import BadInputError
from millrace.settings import Settings
from millrace.specs.problem import did_you_mean

EraseRows = Callable[[ErasureRequest], None]
"""Deletes the rows of a request from all tables by the job that does it; raises an error if it did not end well."""


@dataclass(frozen=True)
class Erasure:
    """An erasure that a person asks for.

    Attributes:
        subjects: whom to erase.
        request: the name of the request elsewhere, such as `DSR-2026-17`; no key.
        catalog: the specs.
        settings: the places.
        ops: the ledger.
        now: whether older versions are deleted at once.
    """

    subjects: Subjects
    request: str
    catalog: Catalog
    settings: Settings
    ops: OpsTables
    now: bool = False

    def __post_init__(self) -> None:
        require_kind(self.subjects.kind, self.catalog)
        require_name(self.request, self.subjects)

    @cached_property
    def reach(self) -> dict[str, Reach]:
        """Table -> what it has of the keys."""
        return reach_of(self.subjects.kind, self.catalog.specs)

    @cached_property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """The tables that have keys, or are computed from such, and that were built -> their columns of keys."""
        return {table: each.keys for table, each in self.reach.items() if is_table(self.ops.paths.table(table))}

    @cached_property
    def digest(self) -> str:
        """A digest of the keys, which nobody can compute without the salt of the lakehouse."""
        hashes = sorted(Suppressions(self.settings.paths).hashes_of(self.subjects))
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()

    def find(self, found: list[FoundFile] | None = None) -> Findings:
        """Search for the subjects; raise the errors of `find`."""
        return find(self.subjects, self.catalog, self.settings, utc_now(), found)

    def plan(self) -> ErasurePlan:
        """Return what the erasure would do now; nothing is written but the salt of the digest, once."""
        return plan_erasure(self.find(), self.tables, self.request, self.digest, self.ops, now=self.now)

    def execute(self, plan_id: str, said_by: str, why: str, run_id: str, erase_rows: EraseRows) -> Findings:
        """Erase the subjects as the plan with this id has shown it, or go on where that was interrupted.

        First they are suppressed, so that nothing of them comes in again; then their rows go, and then the files that
        runs wrote for people and that mention them.

        Returns:
            What is stored of them after that.

        Raises:
            BadInputError: no reason is stated; or it would do something else than what was shown; or a hold forbids it.
            NotReadyError: older versions are to be deleted at once, and somebody needs one.
        MillraceError: as `erase_rows`, `find`.
        """
        if not why.strip():
            raise BadInputError(f"{self.request}: why are they erased?", "State the reason, for those who look later.")
        erasure = self.ops.erasures.decided(plan_id) or self._decide(plan_id, said_by, why, run_id)
        self._require_same(erasure)
        Suppressions(self.settings.paths).add(self.subjects, self.request, erasure.said_by)
        request = ErasureRequest(
            erasure=erasure.id, request=self.request, kind=self.subjects.kind, keys=self.subjects.values
        )
        erase_rows(request)
        if self.now:
            for table in self.tables:
                for erased in self.ops.erasures.in_table(table):
                    if erased.erasure == erasure.id:
                        delete_older_versions(self.catalog.spec(table), erased, self.catalog, self.ops, run_id)
        left = self._erase_files()
        self.ops.erasures.finish(erasure, run_id)
        return left

    def _decide(self, plan_id: str, said_by: str, why: str, run_id: str) -> DecidedErasure:
        plan = self.plan()
        if plan.id != plan_id:
            raise BadInputError(
                f"{self.request}: the erasure would do something else than what {plan_id} has shown; now it is "
                f"{plan.id}",
                "Rows of the subjects have come or gone, or a spec or a hold has changed: look at `erase plan` again.",
            )
        require_erasable(plan, self.catalog)
        erasure = DecidedErasure(
            plan.id, self.request, plan.kind, plan.subjects, plan.digest, tuple(plan.tables), said_by, why
        )
        self.ops.erasures.decide(erasure, run_id)
        return erasure

    def _require_same(self, erasure: DecidedErasure) -> None:
        """Require that an erasure that was decided is about these subjects, and that nobody holds its tables since."""
        if (erasure.request, erasure.kind, erasure.digest) != (self.request, self.subjects.kind, self.digest):
            cause = f"{self.request}: {erasure.id} was decided about other subjects, or for {erasure.request}"
            raise BadInputError(cause, "Name the file and the request of the plan, or look at `erase plan` again.")
        for table in erasure.tables:
            for hold in self.ops.holds.on(table):
                cause = f"{self.request}: {table}: {hold.words}"
                raise BadInputError(cause, "Release the hold (lakehouse hold release) when it has ended.")

    def _erase_files(self) -> Findings:
        """Delete what mentions a subject and nothing reads again, and return what is stored after that."""
        files = list[FoundFile]()
        found = self.find(files)
        deleted = {place for place in found.places if fate_of(place, self.tables) is Fate.DELETE_FILES}
        names = {place.name for place in deleted}
        for file in files:
            if file.place in names:
                delete_files(file.path.parent, [file.path.name])
        return replace(found, places=tuple(place for place in found.places if place not in deleted))


def require_kind(kind: str, catalog: Catalog) -> None:
    """Require that a spec states keys of a kind.

    Raises:
        BadInputError: none does.
    """
    if kind not in (known := kinds_in(catalog.specs)):
        raise BadInputError(
            f"no spec states subject_keys of the kind {kind!r}",
            did_you_mean(kind, known) or "State it in the tables that deliver the key: subject_keys: {column: kind}",
        )


def require_name(request: str, subjects: Subjects) -> None:
    """Require that the name of a request says nothing of its subjects.

    Raises:
        BadInputError: it has a key, or is empty.
    """
    if not request.strip():
        raise BadInputError("--request is empty", "Name the request as it is called elsewhere, such as DSR-2026-17.")
    if subjects.hide(request) != request:
        raise BadInputError("--request has a key of a subject", "Write a name that says nothing of the person.")
