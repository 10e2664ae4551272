"""Carry out an erasure exactly as its plan has shown it, or go on where that was interrupted.

Each step may be done again. Nothing but the file of its request has a key of a subject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from millrace.catalog import Catalog
from millrace.clock import utc_now
from millrace.contracts.counted import counted
from millrace.contracts.job.requests import ErasureRequest
from millrace.contracts.spec.common_settings import DEFAULT_CONFLICTS
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.erasures import DecidedErasure, Erasures
from millrace.control.log.stored_tables import is_table
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.dropped import dropped_tables
from millrace.control.storage.stored_files import delete_files
from millrace.erase.certificates import Erased, state_of
from millrace.erase.finding import DROPPED, OF_LANDING, Findings, FoundFile, find
from millrace.erase.landing import erase_landing
from millrace.erase.ledger_texts import forget_in_ledger
from millrace.erase.older_versions import delete_older_versions
from millrace.erase.plan import OWN_FILES, ErasurePlan, plan_erasure, require_erasable, require_free
from millrace.erase.reach import Reach, reach_of
from millrace.erase.search import FileSearch, Keys
from millrace.erase.subjects import Subjects, kinds_in, read_subjects
from millrace.erase.suppression import Suppressions
from millrace.errors import BadInputError
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from millrace.specs.problem import did_you_mean

EraseRows = Callable[[ErasureRequest], None]
"""Deletes the rows of a request from all tables by the job that does it; raises an error if it did not end well."""


@dataclass(frozen=True)
class Left:
    """What is left of subjects after an erasure.

    Attributes:
        findings: what is stored of them, in older versions and where only a person can judge.
        kept: the landing files that the spec would rewrite or delete, and why each stays.
    """

    findings: Findings
    kept: tuple[str, ...]

    @property
    def state(self) -> Erased:
        """The state of the erasure."""
        return state_of(self.findings)


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
        return Suppressions(self.settings.paths).digest_of(self.subjects)

    def find(self, found: list[FoundFile] | None = None) -> Findings:
        """Search for the subjects; raise the errors of `find`."""
        return find(self.subjects, self.catalog, self.settings, utc_now(), found)

    def plan(self) -> ErasurePlan:
        """Return what the erasure would do now; nothing is written but the salt of the digest, once."""
        return plan_erasure(self.find(), self.tables, self.request, self.digest, self.catalog, self.ops, now=self.now)

    def execute(self, plan_id: str, said_by: str, why: str, run_id: str, erase_rows: EraseRows) -> Left:
        """Erase the subjects as the plan with this id has shown it, or go on where that was interrupted.

        First they are suppressed, so that nothing of them comes in again; then their rows go, and then the files that
        runs wrote for people and that mention them.

        Raises:
            BadInputError: no reason is stated; or it would do something else than what was shown; or a hold forbids it.
            NotReadyError: older versions are to be deleted at once, and somebody needs one.
            MillraceError: as `erase_rows`, `find`.
        """
        if not why.strip() or self.subjects.are_named_in(why):
            cause = "why are they erased?" if not why.strip() else "the reason has a key of a subject"
            raise BadInputError(
                f"{self.request}: {cause}", "State the reason, for those who look later, without a key."
            )
        erasure = self.ops.erasures.decided(plan_id) or self._decide(plan_id, said_by, why, run_id)
        self._require_same(erasure)
        Suppressions(self.settings.paths).add(self.subjects, self.request, erasure.said_by)
        request = ErasureRequest(
            erasure=erasure.id, request=self.request, kind=self.subjects.kind, keys=self.subjects.values
        )
        erase_rows(request)
        kept = tuple(self._erase_landing(run_id))
        if self.now:
            for table in self.tables:
                for erased in self.ops.erasures.in_table(table):
                    if erased.erasure == erasure.id:
                        delete_older_versions(self.catalog.spec(table), erased, self.catalog, self.ops, run_id)
        left = self._erase_files()
        self.ops.erasures.finish(erasure, run_id)
        return Left(left, kept)

    def _decide(self, plan_id: str, said_by: str, why: str, run_id: str) -> DecidedErasure:
        plan = self.plan()
        if plan.id != plan_id:
            raise BadInputError(
                f"{self.request}: the erasure would do something else than what {plan_id} has shown; now it is "
                f"{plan.id}",
                "Rows of the subjects have come or gone, or a spec or a hold has changed: look at `erase plan` again.",
            )
        require_erasable(plan, self.catalog, self.ops)
        erasure = DecidedErasure(
            plan.id, self.request, plan.kind, plan.subjects, plan.digest, tuple(plan.tables), said_by, why, self.now
        )
        self._keep_dropped_away(plan, run_id)
        self.ops.erasures.decide(erasure, run_id)
        return erasure

    def _keep_dropped_away(self, plan: ErasurePlan, run_id: str) -> None:
        """Let no dropped table in which a subject was found come back."""
        found = {each.place.name.removesuffix(DROPPED) for each in plan.places if each.place.name.endswith(DROPPED)}
        for table in sorted(found):
            with lakehouse_leases(self.ops.paths, run_id, DEFAULT_CONFLICTS.wait_for_lease).table(table):
                for dropped in dropped_tables(self.ops.paths):
                    if dropped.record.table == table:
                        dropped.keep_away(self.request)

    def _require_same(self, erasure: DecidedErasure) -> None:
        """Require that an erasure that was decided is about these subjects, and that nothing keeps its rows since."""
        decided = erasure.request, erasure.kind, erasure.digest, erasure.at_once
        if decided != (self.request, self.subjects.kind, self.digest, self.now):
            cause = f"{self.request}: {erasure.id} was decided about other subjects, or in another way"
            raise BadInputError(cause, "Write the command as the plan has shown it, or look at `erase plan` again.")
        require_free(self.request, erasure.tables, self.catalog, self.ops)

    def _erase_landing(self, run_id: str) -> Iterator[str]:
        """Rewrite or delete the landing files, as the specs say; yield why one that was to be changed is kept."""
        for spec in map(self.catalog.spec, self.tables):
            if not isinstance(spec, BronzeSpec) or spec.reads_kafka or spec.erase.landing_files == "keep":
                continue
            leases = lakehouse_leases(self.ops.paths, run_id, spec.conflicts.wait_for_lease)
            places = self.settings.landing, self.catalog.specs, self.ops.ledger, leases
            for work in erase_landing(spec, self.subjects, *places):
                if work.why:
                    yield self.subjects.hide(f"{OF_LANDING}{spec.table}: {work.path}: {work.why}")

    def _erase_files(self) -> Findings:
        """Delete what runs wrote for people and mentions a subject, and return what is stored after that."""
        files = list[FoundFile]()
        received = {table: Keys(each.received, numbers=each.numbers) for table, each in self.reach.items()}
        searches = {table: FileSearch(self.subjects, keys) for table, keys in received.items()}
        forget_in_ledger(self.subjects, searches, self.ops.paths)
        found = self.find(files)
        deleted = {place for place in found.places if place.name in OWN_FILES}
        names = {place.name for place in deleted}
        for file in files:
            if file.place in names:
                delete_files(file.path.parent, [file.path.name])
        return replace(found, places=tuple(place for place in found.places if place not in deleted))


def asked_erasure(
    kind: str, subjects: bytes, request: str, catalog: Catalog, settings: Settings, *, now: bool
) -> Erasure:
    """Return the erasure that a person asks for, of the subjects that a text names.

    Raises:
        BadInputError: no spec states the kind, or the text names no subject, or the name of the request has a key.
    """
    require_kind(kind, catalog)
    named = read_subjects(kind, subjects)
    require_name(request, named)
    return Erasure(named, request, catalog, settings, OpsTables(settings.paths), now)


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
    if subjects.are_named_in(request):
        raise BadInputError("--request has a key of a subject", "Write a name that says nothing of the person.")


def require_decided(request: str, subjects: Subjects, paths: LakehousePaths) -> None:
    """Require that an erasure under the name of a request, if there was one, was about these subjects.

    Raises:
        BadInputError: it was about others.
    """
    decided = [each for each in Erasures(paths).all() if each.request == request]
    if decided and (subjects.kind, Suppressions(paths).digest_of(subjects)) not in (
        (each.kind, each.digest) for each in decided
    ):
        before = " and ".join(counted(each.subjects, each.kind) for each in decided)
        now = counted(len(subjects.values), subjects.kind)
        raise BadInputError(
            f"{request}: other keys were erased under this name: {before} then, {now} here",
            "Give the very keys of that erasure, or the name of the request of these subjects.",
        )
