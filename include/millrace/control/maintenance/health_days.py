"""The health of a table on each of the last days: a part of its state, for trends and for pages that read no log."""

from __future__ import annotations

from datetime import date, datetime
from functools import partial

from pydantic import BaseModel, ConfigDict

from millrace.catalog import Catalog
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.ledger.states.table_state import StatePart, tolerate_state_errors
from millrace.control.maintenance.health import StorageState, TableHealth, table_health
from millrace.control.maintenance.maintained import Maintained, completed
from millrace.control.ops_tables import OpsTables

_MOST_DAYS = 30


class HealthDay(BaseModel):
    """What maintenance last measured on one day.

    Attributes:
        day: the UTC day.
        storage: the state of the table's storage.
        files, small_files: the number of data files, and of those that are small.
        size: the bytes of the data files.
        old_size: the bytes of the files that the newest version does not need.
        log_size: the bytes of the log.
    """

    model_config = ConfigDict(frozen=True)

    day: date
    storage: StorageState
    files: int
    small_files: int
    size: int
    old_size: int
    log_size: int


class HealthDays(StatePart):
    """The last days on which maintenance measured a table, at most 30.

    Attributes:
        days: one entry a day, oldest first.
    """

    days: tuple[HealthDay, ...] = ()

    @property
    def newest(self) -> HealthDay | None:
        """The last day."""
        return self.days[-1] if self.days else None


def keep_health(
    spec: AnySpec, catalog: Catalog, ops: OpsTables, now: datetime, measured: TableHealth | None = None
) -> None:
    """Store the health of a table as that of the day; of several measures of a day the last one stays.

    What the log said of its maintenance is stored as well, so that nobody reads the same commits again.

    Args:
        spec: the table.
        catalog: all specs.
        ops: the ledger.
        now: the time.
        measured: what was just measured; None measures it.
    """
    with tolerate_state_errors(spec.table):
        if health := measured or table_health(spec, catalog, ops, now):
            ops.states.change(
                spec.table,
                (HealthDays, partial(_with_today, _day_of(health, now.date()), health)),
                (Maintained, partial(completed, known=health.maintained)),
            )


def _with_today(today: HealthDay, health: TableHealth, stored: HealthDays | None) -> HealthDays:
    table_id = health.maintained.table_id
    earlier = stored.days if stored and stored.table_id == table_id else ()
    days = (*(day for day in earlier if day.day < today.day), today)
    return HealthDays(table_id=table_id, days=days[-_MOST_DAYS:])


def _day_of(health: TableHealth, day: date) -> HealthDay:
    return HealthDay(
        day=day,
        storage=health.storage,
        files=health.layout.files,
        small_files=health.layout.small_files,
        size=health.layout.size,
        old_size=health.old.kept_bytes + health.old.due_bytes,
        log_size=health.log.size,
    )
