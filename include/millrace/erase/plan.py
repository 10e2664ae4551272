"""What an erasure would do with each place that has something of the subjects: the dry run of `lakehouse erase run`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from shlex import quote
from typing import Any

from millrace.catalog import Catalog
from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.contracts.time_format import MINUTE
from millrace.control.ops_tables import OpsTables
from millrace.erase.feeds import most_careful
from millrace.erase.finding import OF_LANDING, Findings, Part, Place
from millrace.erase.ledger_texts import LEDGER_PLACES
from millrace.errors import BadInputError

OWN_FILES = ("reports", "driver logs", "data docs", "state")
"""The places of files that runs write for people, or can compute again."""


class Fate(StrEnum):
    """What an erasure does with a place."""

    DELETE_ROWS = "its rows are deleted"
    FOLLOW = "its rows follow by a run"
    EXPIRE = "VACUUM deletes it later"
    DELETE_FILES = "these files are deleted"
    REWRITE_FILES = "their records are taken out of these files"
    HIDE = "the keys are taken out"
    PERSON = "left for you"


_DECIDED = (Fate.DELETE_ROWS, Fate.FOLLOW, Fate.PERSON)
"""What happens to rows; the files of older versions and of runs come and go, and have always the same fate."""


_OF_POLICY = {"keep": Fate.PERSON, "rewrite": Fate.REWRITE_FILES, "delete": Fate.DELETE_FILES}


@dataclass(frozen=True)
class PlannedPlace:
    """A place that has something of the subjects, and what happens to it."""

    place: Place
    fate: Fate

    @property
    def is_decided(self) -> bool:
        """Whether the id of a plan stands for it: not for rows of others, which come and go."""
        is_of_others = self.place.part is Part.NEWEST and not self.place.rows
        return (self.fate in _DECIDED and not is_of_others) or self.place.name.startswith(OF_LANDING)

    @property
    def decided(self) -> PlannedPlace:
        """The place without the mentions in rows of others."""
        is_table = self.place.part is Part.NEWEST
        return replace(self, place=replace(self.place, mentions=0)) if is_table else self


@dataclass(frozen=True)
class ErasurePlan:
    """What an erasure would do.

    Attributes:
        kind: the kind of the subjects.
        request: the name of the request elsewhere.
        subjects: how many there are.
        digest: a keyed digest of their keys.
        tables: the tables that it changes, sources first -> their columns of keys; none follow by a run alone.
        places: what has something of the subjects.
        holds: the holds that forbid it, each in a line.
        not_covered: what cannot be found by a key, or is in none of the files that were searched.
        unread: what should have been searched, and could not be.
        versions: table, or what is beside it -> its newest version.
        now: whether older versions are deleted at once, and not when VACUUM may delete them.
        earlier: how many erasures of these subjects were done for the request: what came since is erased anew.
    """

    kind: str
    request: str
    subjects: int
    digest: str
    tables: Mapping[str, tuple[str, ...]]
    places: tuple[PlannedPlace, ...]
    holds: tuple[str, ...]
    not_covered: tuple[str, ...]
    unread: tuple[str, ...]
    versions: Mapping[str, int]
    now: bool = False
    earlier: int = 0

    @property
    def id(self) -> str:
        """The digest of what is decided: whose rows go from which tables, and what is left for a person.

        Rows of others may come meanwhile, runs may write their files, and maintenance may join and delete some: none of
        that changes it. A row of the subjects that comes or goes does.
        """
        places = sorted(
            (each.place.name, each.place.part, each.fate, each.place.rows, each.place.mentions) for each in self.decided
        )
        asked = self.kind, self.request, self.digest, self.now, self.earlier
        facts = [asked, self.tables, places, self.holds, self.not_covered]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def decided(self) -> list[PlannedPlace]:
        """The places for which its id stands."""
        return [each.decided for each in self.places if each.is_decided]

    @property
    def command(self) -> str:
        """The command that does exactly this, without the reason."""
        more = " --now" if self.now else ""
        request = quote(self.request)
        return f"lakehouse erase run {self.kind} --subjects FILE --request {request}{more} --execute {self.id}"

    @property
    def facts(self) -> dict[str, Any]:
        """All of it for other programs, with the id and the command."""
        return {"id": self.id, "command": self.command, **asdict(self)}


def plan_erasure(
    findings: Findings,
    tables: Mapping[str, tuple[str, ...]],
    request: str,
    digest: str,
    catalog: Catalog,
    ops: OpsTables,
    *,
    now: bool = False,
) -> ErasurePlan:
    """Return what an erasure would do, by what a search has found; nothing is written.

    Args:
        findings: what was found.
        tables: the tables that it changes, sources first -> their columns of keys.
        request: the name of the request elsewhere.
        digest: a keyed digest of the keys.
        catalog: the specs.
        ops: the ledger.
        now: whether older versions are deleted at once.
    """
    return ErasurePlan(
        kind=findings.kind,
        request=request,
        subjects=findings.subjects,
        digest=digest,
        tables=tables,
        places=tuple(PlannedPlace(place, fate_of(place, tables, catalog)) for place in findings.places),
        holds=tuple(f"{table}: {hold.words}" for table in tables for hold in ops.holds.on(table)),
        not_covered=findings.not_covered,
        unread=findings.unread,
        versions=findings.versions,
        now=now,
        earlier=sum(
            (each.request, each.digest) == (request, digest) and ops.erasures.is_done(each.id)
            for each in ops.erasures.all()
        ),
    )


def fate_of(place: Place, tables: Mapping[str, tuple[str, ...]], catalog: Catalog) -> Fate:
    """Return what an erasure does with a place; `tables` has the tables that it changes, with their columns of keys."""
    if place.name.startswith(OF_LANDING):
        names = place.name.removeprefix(OF_LANDING).split(" and ")
        loaders = [spec for spec in map(catalog.specs.get, names) if isinstance(spec, BronzeSpec)]
        if not any(spec.table in tables for spec in loaders):
            return Fate.PERSON
        return _OF_POLICY[most_careful(loaders).erase.landing_files]
    if place.part in (Part.OLDER, Part.LOG):
        return Fate.EXPIRE
    if place.part is Part.NEWEST:
        table, _, beside = place.name.partition(", ")
        if table not in tables:
            return Fate.PERSON
        if not place.rows:
            return Fate.PERSON
        return Fate.DELETE_ROWS if tables[table] or beside else Fate.FOLLOW
    if place.name in LEDGER_PLACES:
        return Fate.HIDE
    return Fate.DELETE_FILES if place.name in OWN_FILES else Fate.PERSON


def require_erasable(plan: ErasurePlan, catalog: Catalog, ops: OpsTables) -> None:
    """Require that nothing forbids an erasure.

    Raises:
        BadInputError: as `require_free`; or none of its tables was built.
    """
    require_free(plan.request, plan.tables, catalog, ops)
    if not plan.tables:
        raise BadInputError(f"{plan.request}: none of the tables with keys of {plan.kind} was built", "Run them first.")


def require_free(request: str, tables: Iterable[str], catalog: Catalog, ops: OpsTables) -> None:
    """Require that nothing keeps the rows of some tables, or would bring them back, and that nothing hides some.

    Raises:
        BadInputError: a table is held, or is being rebuilt; or a spec is wrong.
    """
    for table, invalid in catalog.invalid.items():
        cause = f"{request}: the spec of {table} is wrong, so that nobody knows which of its columns hold keys"
        raise BadInputError(cause, f"Correct it first: {invalid.cause}")
    for table in tables:
        for hold in ops.holds.on(table):
            way_out = "Release the hold (lakehouse hold release) when it has ended."
            raise BadInputError(f"{request}: {table}: {hold.words}", way_out)
    for rebuild in ops.rebuilds.active(catalog.specs):
        for table in set(rebuild.tables) & {*tables}:
            raise BadInputError(
                f"{request}: a rebuild of {table} is in progress, which may have read what is to be erased",
                f"Finish it: lakehouse rebuild {rebuild.table}. Or give it up, with --cancel.",
            )


def plan_lines(plan: ErasurePlan) -> Iterator[str]:
    """Yield the plan in words, without a key."""
    yield f"{plan.request}: {counted(plan.subjects, plan.kind)} would be erased. Nothing was written."
    yield from _lines(plan, plan.places)


def decision_lines(plan: ErasurePlan) -> Iterator[str]:
    """Yield what its id stands for in words, which changes only if the id does."""
    yield f"{plan.request}: {counted(plan.subjects, plan.kind)} would be erased"
    yield from _lines(plan, plan.decided)
    yield "Rows of others that mention one of them are left for you"
    when = "at once: nobody can read or restore them" if plan.now else "when VACUUM may delete them"
    yield f"Older versions go {when}"
    yield "Reports, driver logs and Data Docs that mention one of them are deleted"


def _lines(plan: ErasurePlan, places: Iterable[PlannedPlace]) -> Iterator[str]:
    yield "Rows are deleted by key, sources first:"
    for table, keys in plan.tables.items():
        yield f"  {table}: by {', '.join(keys)}" if keys else f"  {table}: has no key, and follows by a run"
    yield "Found:" if plan.places else "Nothing was found: they are only kept out of what comes."
    for each in places:
        place = each.place
        found = [
            counted(place.rows, "row") if place.rows else "",
            counted(place.mentions, "mention") if place.mentions else "",
        ]
        files = "" if each.is_decided else f"{counted(place.files, 'file')} ({in_bytes(place.size)})"
        is_now = plan.now and each.fate is Fate.EXPIRE
        due = f", from {place.due:{MINUTE}} on" if place.due and not is_now else ""
        shown = ", ".join(filter(None, (*found, files)))
        yield f"  {place.name}, {place.part}: {shown}: {'deleted at once' if is_now else each.fate}{due}"
        if each.fate is Fate.DELETE_ROWS and place.mentions:
            yield "    rows of others that mention a subject are left for you"
    yield from (f"Forbidden: {hold}" for hold in plan.holds)
    yield from (f"Not covered: {limit}" for limit in plan.not_covered)
    yield from (f"Not searched: {unread}" for unread in plan.unread)
