"""What became of each erasure: what is done, what is due when, and what holds it back; by the ledger and the logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from millrace.catalog import Catalog
from millrace.contracts.counted import counted
from millrace.contracts.time_format import MINUTE
from millrace.control.ledger.erasures import DecidedErasure, ErasedTable
from millrace.control.log.delta_log import commit_versions
from millrace.control.maintenance.health import TableHealth, table_health
from millrace.control.ops_tables import OpsTables
from millrace.erase.certificates import Certificate, Certificates
from millrace.erase.older_versions import files_before, older_files

HealthOf = Callable[[str], TableHealth | None]
"""Measures a table once, however many erasures have reached it; None if it has no spec, or is not there."""


@dataclass(frozen=True)
class TableStatus:
    """What became of an erasure in a table.

    Attributes:
        table: the table.
        version: the first version without the subjects; None if it is not done yet.
        rows: the number of rows that were deleted by key.
        due: when what only older versions need may be deleted; None if it is gone, or not known.
        is_gone: whether it is gone.
        held_by: the holds and readers for whose sake it stays, each in a line.
    """

    table: str
    version: int | None = None
    rows: int = 0
    due: datetime | None = None
    is_gone: bool = False
    held_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class ErasureStatus:
    """What became of an erasure.

    Attributes:
        id: the id of its plan.
        request: the name of its request.
        kind: the kind of its subjects.
        subjects: how many there are.
        decided_at: when it was decided.
        said_by: who decided it.
        why: the reason.
        is_done: whether all of its steps are done.
        tables: what became of it in each table.
        certificates: the numbers of the certificates of these subjects under the request, with what they say.
    """

    id: str
    request: str
    kind: str
    subjects: int
    decided_at: datetime | None
    said_by: str
    why: str
    is_done: bool
    tables: tuple[TableStatus, ...]
    certificates: tuple[str, ...]


def erasure_states(catalog: Catalog, ops: OpsTables, now: datetime) -> list[ErasureStatus]:
    """Return what became of each erasure, the first one first."""
    certificates = Certificates(ops.paths).all()

    @cache
    def health_of(table: str) -> TableHealth | None:
        spec = catalog.specs.get(table)
        return table_health(spec, catalog, ops, now) if spec else None

    return [_status(erasure, certificates, health_of, ops) for erasure in ops.erasures.all()]


def _status(
    erasure: DecidedErasure, certificates: list[Certificate], health_of: HealthOf, ops: OpsTables
) -> ErasureStatus:
    about = erasure.request, erasure.kind, erasure.digest
    names = "request", "kind", "keys_digest"
    own = [each for each in certificates if about == tuple(map(each.content.get, names))]
    return ErasureStatus(
        id=erasure.id,
        request=erasure.request,
        kind=erasure.kind,
        subjects=erasure.subjects,
        decided_at=erasure.decided_at,
        said_by=erasure.said_by,
        why=erasure.why,
        is_done=ops.erasures.is_done(erasure.id),
        tables=tuple(_of_table(table, erasure, health_of, ops) for table in erasure.tables),
        certificates=tuple(f"{each.number}, {each.content['state']}" for each in own),
    )


def _of_table(table: str, erasure: DecidedErasure, health_of: HealthOf, ops: OpsTables) -> TableStatus:
    done = next((each for each in ops.erasures.in_table(table) if each.erasure == erasure.id), None)
    if done is None:
        return TableStatus(table)
    if (health := health_of(table)) is None:
        return TableStatus(table, done.version, done.rows, done.due)
    return TableStatus(
        table=table,
        version=done.version,
        rows=done.rows,
        due=done.due,
        is_gone=_is_gone(done, health, ops),
        held_by=tuple(health.refusals),
    )


def _is_gone(done: ErasedTable, health: TableHealth, ops: OpsTables) -> bool:
    """Whether nothing is left of the versions before an erasure: no file, and no commit."""
    path, beside = ops.paths.table(done.table), (each.old for each in health.beside)
    has_files = any(older_files(old, done.recorded_at) for old in beside) or files_before(path, health.old, done)
    return not has_files and commit_versions(path)[0] >= done.version


def state_lines(status: ErasureStatus) -> Iterator[str]:
    """Yield what became of an erasure in words."""
    at = f"{status.decided_at:{MINUTE}}" if status.decided_at else ""
    goes_on = "" if status.is_done else ": interrupted; the same command goes on"
    who = f"{counted(status.subjects, status.kind)}, by {status.said_by}, {at}: {status.why}"
    yield f"{status.request} ({status.id}): {who}{goes_on}"
    for table in status.tables:
        if table.version is None:
            yield f"  {table.table}: not yet"
            continue
        done = f"  {table.table}: {counted(table.rows, 'row')} deleted by key, version {table.version}"
        if table.is_gone:
            yield f"{done}; no older version is left"
        else:
            held = f", held back: {'; '.join(table.held_by)}" if table.held_by else ""
            due = f"{table.due:{MINUTE}}" if table.due else "unknown"
            yield f"{done}; older versions may go from {due} on{held}"
    certified = status.certificates or ("none yet: lakehouse erase prove",)
    yield from (f"  certificate {each}" for each in certified)
