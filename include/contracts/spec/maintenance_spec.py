"""What is done for a table beside its batches: its files kept in order, its refused rows not forgotten."""

from __future__ import annotations

from typing import Literal

from include.contracts.spec.part import SpecPart
from include.contracts.spec.values import Bytes, Retention


class VacuumSpec(SpecPart):
    """How long files that no version needs any more are kept.

    Attributes:
        retain: `<n> hours` or `<n> days`; older versions can then be neither read nor restored.
    """

    retain: Retention = "30 days"


class TombstonesSpec(SpecPart):
    """How long the deleted keys of a silver table are remembered.

    Attributes:
        retain: `<n> hours` or `<n> days` since the delete was merged; an older event that comes later inserts the key
            again. None keeps them for ever.
    """

    retain: Retention | None = None


class MaintenanceSpec(SpecPart):
    """What table maintenance does for the table.

    Attributes:
        optimize: `auto` bin-packs when there are many small files, and Z-orders, where `zorder_by` is set, when a fifth
            of the table was written since it last did; `off` never.
        target_file_size: how large data files should be, such as `64 MiB`; None for a thousandth of the table, from
            16 MiB to 1 GiB.
        vacuum: the retention below which no file is removed.
        change_data_feed: whether Delta records row changes, which the next layer reads.
    """

    optimize: Literal["auto", "off"] = "auto"
    target_file_size: Bytes | None = None
    vacuum: VacuumSpec = VacuumSpec()
    change_data_feed: bool = True


class SilverMaintenanceSpec(MaintenanceSpec):
    """What table maintenance does for a silver table.

    Attributes:
        tombstones: the retention after which vacuum forgets deleted keys.
    """

    tombstones: TombstonesSpec = TombstonesSpec()


class QuarantineSpec(SpecPart):
    """How long refused rows may wait for somebody.

    Attributes:
        warn_after: `<n> hours` or `<n> days`; from then on each run, and `lakehouse quarantine list`, warns of them.
    """

    warn_after: Retention = "7 days"
