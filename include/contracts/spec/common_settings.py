"""The settings that several layers share: columns, maintenance, reminders, and the limits of retries and waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import ConfigDict, Field

from include.contracts.spec.values import Bytes, ColumnType, Retention, Wait
from include.contracts.strict_model import StrictModel


class ColumnSpec(StrictModel):
    """One column.

    Attributes:
        type: the Spark SQL type of the stored column, also `struct<name: type, ...>`, `array<type>` and
            `map<string, type>`.
        nullable: false refuses a row without a value (reason `<column> is null`).
        required: bronze: whether a file without the column is broken; if not, the column is null in the file's rows.
        description: the meaning of the values, with their unit.
        expression: `from` in YAML. Bronze: the field that it reads, or the path of a part of it; silver: Spark SQL over
            the source's columns. By default the field or the column of the same name.
    """

    model_config = ConfigDict(populate_by_name=True)

    type: ColumnType = "string"
    nullable: bool = True
    required: bool = False
    description: str = ""
    expression: str | None = Field(default=None, alias="from")


class VacuumSpec(StrictModel):
    """The retention of files that the newest version does not need.

    Attributes:
        retain: `<n> hours` or `<n> days`; older versions can be neither read nor restored.
    """

    retain: Retention = "30 days"


class TombstonesSpec(StrictModel):
    """The retention of the tombstones of a silver table.

    Attributes:
        retain: `<n> hours` or `<n> days` after the merge of the delete; after that, a late event that is older than the
            delete inserts the key again. None keeps tombstones for ever.
    """

    retain: Retention | None = None


class MaintenanceSpec(StrictModel):
    """The maintenance of the table.

    Attributes:
        optimize: `auto` bin-packs when there are many small files and, if `zorder_by` is set, Z-orders when a fifth of
            the table was written since the last time; `off` does neither.
        target_file_size: the size that data files should have, such as `64 MiB`; None for a thousandth of the table,
            from 16 MiB to 1 GiB.
        vacuum: how long unused files are kept.
        change_data_feed: whether Delta records row changes, which the next layer reads.
    """

    optimize: Literal["auto", "off"] = "auto"
    target_file_size: Bytes | None = None
    vacuum: VacuumSpec = VacuumSpec()
    change_data_feed: bool = True


class SilverMaintenanceSpec(MaintenanceSpec):
    """The maintenance of a silver table.

    Attributes:
        tombstones: how long the tombstones of deleted keys are kept; vacuum deletes older tombstones.
    """

    tombstones: TombstonesSpec = TombstonesSpec()


class GoldMaintenanceSpec(MaintenanceSpec):
    """The maintenance of a gold table.

    Attributes:
        verify: of how many values of `refresh_by` maintenance compares the groups with a computation from scratch,
            others each time; None compares nothing.
    """

    verify: int | None = Field(default=None, gt=0)


class QuarantineSpec(StrictModel):
    """The time that quarantined rows may wait.

    Attributes:
        warn_after: `<n> hours` or `<n> days`; after that, each run and `lakehouse quarantine list` warn of them.
    """

    warn_after: Retention = "7 days"


class ConflictSpec(StrictModel):
    """The limits of retries and waits because of other writers; after them a run ends as a conflict.

    Attributes:
        max_commit_retries: the number of retries of a write that lost against another commit.
        retry_for: how long retries may begin; a retry that has begun is not interrupted: `<n> seconds`, `<n> minutes`
            or `<n> hours`.
        wait_for_lease: how long a run waits while another run or maintenance works on the table, in the same units.
    """

    max_commit_retries: int = Field(default=7, ge=0)
    retry_for: Wait = Field(default=timedelta(hours=1), json_schema_extra={"default": "60 minutes"})
    wait_for_lease: Wait = Field(default=timedelta(minutes=10), json_schema_extra={"default": "10 minutes"})


DEFAULT_CONFLICTS = ConflictSpec()
"""The limits of a spec without `conflicts`."""
