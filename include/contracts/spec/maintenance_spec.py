"""The settings of table maintenance and of reminders about quarantined rows."""

from __future__ import annotations

from typing import Literal

from include.contracts.spec.values import Bytes, Retention
from include.contracts.strict_model import StrictModel


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


class QuarantineSpec(StrictModel):
    """The time that quarantined rows may wait.

    Attributes:
        warn_after: `<n> hours` or `<n> days`; after that, each run and `lakehouse quarantine list` warn of them.
    """

    warn_after: Retention = "7 days"
