"""The settings that several layers share: columns, maintenance, reminders, and the limits of retries and waits."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from millrace.contracts.spec.bronze_sources import BATCH_SIZES
from millrace.contracts.spec.duration import RETENTION
from millrace.contracts.spec.expectation import Expectation
from millrace.contracts.spec.value_reading import VALUE_RULE, ValueReading
from millrace.contracts.spec.values import NAME, Bytes, ColumnName, ColumnType, PlainText, PropertyText, Retention, Wait
from millrace.contracts.strict_model import StrictModel

Classification = Literal["public", "internal", "confidential", "restricted"]
"""Who may see values."""

SubjectKind = Annotated[str, Field(pattern=rf"^{NAME}$")]
"""The kind of what the values of a column identify."""


class ColumnSpec(ValueReading):
    """One column, and how its values are read.

    Attributes:
        type: the Spark SQL type of the stored column, also `struct<name: type, ...>`, `array<type>` and
            `map<string, type>`.
        nullable: `false` quarantines a row without a value (reason `<column> is null`).
        required: bronze: whether a file without the column is broken; if not, the column is null in the file's rows.
        description: the meaning of the values, with their unit.
        classification: who may see the values. Without it the table's counts; or `restricted`, if the column comes from
            a restricted column.
        expression: bronze: the field that it reads, or the path of a part of it; silver: Spark SQL over
            the source's columns. By default the field or the column of the same name.
    """

    model_config = ConfigDict(populate_by_name=True)

    type: ColumnType = "string"
    nullable: bool = True
    required: bool = False
    description: PlainText = ""
    classification: Classification | None = None
    expression: str | None = Field(default=None, alias="from")

    @model_validator(mode="after")
    def _reading_fits_type(self) -> Self:
        self.check_type(self.type)
        return self


class VacuumSpec(StrictModel):
    """The retention of files that the newest version does not need.

    Attributes:
        retain: how long old versions can be read and restored.
        readers: readers outside of Millrace, such as a dashboard or a share: name -> how long it reads one version, at
            most half of `retain`.
    """

    retain: Retention = "30 days"
    readers: dict[PlainText, Retention] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _readers_fit(self) -> Self:
        for name, time in self.readers.items():
            if 2 * RETENTION.parse(time) > RETENTION.parse(self.retain):
                raise ValueError(
                    f"the reader {name!r} reads a version for {time}, which is more than half of retain: {self.retain}"
                )
        return self


class TombstonesSpec(StrictModel):
    """The retention of the tombstones of a silver table.

    Attributes:
        retain: how long after its merge a delete is remembered; after that, a late event that is older than the delete
            inserts the key again. Without it, for ever. For tables with `apply_as_deletes`, without history and without
            `ignore_null_updates`.
    """

    retain: Retention | None = None


class MaintenanceSpec(StrictModel):
    """The maintenance of the table.

    Attributes:
        optimize: `auto` bin-packs when there are many small files and, if `zorder_by` is set, Z-orders when a fifth of
            the table was written since the last time; `off` does neither.
        target_file_size: the size that data files should have; by default a thousandth of the table, from 16 MiB, or
            2 MiB if it is computed from other tables, to 1 GiB.
        vacuum: how long unused files are kept, and for whom.
        change_data_feed: whether Delta records row changes; without them a downstream table reads all of this one each
            time.
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
            others each time; `off` or 0 compares nothing. By default 10, and nothing for a table that each run computes
            whole.
    """

    verify: Annotated[int, Field(ge=0)] | Literal["off"] | None = None


class QuarantineSpec(StrictModel):
    """The time that quarantined rows may wait.

    Attributes:
        warn_after: how long refused rows may wait before each run and `lakehouse quarantine list` warn of them.
    """

    warn_after: Retention = "7 days"


class ConflictSpec(StrictModel):
    """The limits of retries and waits because of other writers; after them a run ends as a conflict.

    Attributes:
        max_commit_retries: the number of retries of a write that lost against another commit.
        retry_for: how long retries may begin; a retry that has begun is not interrupted.
        wait_for_lease: how long a run waits while another run or maintenance works on the table.
    """

    max_commit_retries: int = Field(default=7, ge=0)
    retry_for: Wait = Field(default=timedelta(hours=1), json_schema_extra={"default": "60 minutes"})
    wait_for_lease: Wait = Field(default=timedelta(minutes=10), json_schema_extra={"default": "10 minutes"})


DEFAULT_CONFLICTS = ConflictSpec()
"""The limits of a spec without `conflicts`."""

_NOT_HASHED: Any = {
    **dict.fromkeys(("description", "owner", "contact", "classification", "maintenance"), True),
    **dict.fromkeys(("evolve", "quarantine"), True),
    **dict.fromkeys(("max_rows_per_batch", "max_files_per_batch", "on_refusal", "conflicts"), True),
    **dict.fromkeys(("max_deleted_percent", "concurrent_by", "classifications", "subject_keys", "erase"), True),
    "columns": {"__all__": {"required", "classification"}},
    "source": BATCH_SIZES,
    "sources": {"__all__": {"partitions"}},
}


class TableSpec(StrictModel):
    """The settings of all layers.

    Attributes:
        table: `<layer>.<name>`, with the layer of the folder and the name of the file.
        description: what one row is; shown in Airflow, and stored with the table.
        owner: the team to ask; the owner of the table's tasks in the DAG of its domain.
        contact: where to reach the owner, such as an address, a channel or a page.
        classification: who may see the data. Values of a column that is `restricted` are shown nowhere but in the
            tables and their quarantine; the other three are labels.
        subject_keys: column -> the kind of person, or of anything else, that its values identify, such as `customer`:
            by them `lakehouse erase` finds what is stored of one. A copy of the column in a table downstream needs no
            statement.
        domain: the business area, from the file's folder.
        expectations: the rules for rows (`quarantine`, `drop`) and for table versions (`warn`, `fail`).
        on_refusal: what happens to a version that the gate refuses: `keep` it as the newest, or `restore` the rows of
            the certified version on top of it (not in bronze, which keeps everything that it has received).
        partitioned_by: the columns whose values become folders; leave it out for tables below about a terabyte.
        zorder_by: the columns by which maintenance clusters the files: those that queries and merges filter on.
        maintenance: what table maintenance does.
        conflicts: how long writers of the table retry and wait because of each other.
        delta: further Delta table properties, `delta.<name>: <value>`. Refused are those that some readers do not
            support (deletion vectors, column mapping, ...), those that a key above sets, and a retention of the log
            below that of the files.
    """

    table: str
    description: PlainText = ""
    owner: PlainText = ""
    contact: PlainText = ""
    classification: Classification = "internal"
    subject_keys: dict[ColumnName, SubjectKind] = Field(default_factory=dict)
    domain: str = ""
    expectations: tuple[Expectation, ...] = ()
    on_refusal: Literal["keep", "restore"] = "keep"
    partitioned_by: tuple[ColumnName, ...] = ()
    zorder_by: tuple[ColumnName, ...] = ()
    maintenance: MaintenanceSpec = MaintenanceSpec()
    conflicts: ConflictSpec = ConflictSpec()
    delta: dict[str, PropertyText] = Field(default_factory=dict)

    @property
    def layer(self) -> str:
        """`bronze`, `silver` or `gold`."""
        return self.table.split(".")[0]

    @property
    def name(self) -> str:
        """The table's name without its layer."""
        return self.table.split(".")[1]

    @property
    def source_tables(self) -> tuple[str, ...]:
        """The tables from which its rows come, as `<layer>.<name>`."""
        return ()

    @property
    def references(self) -> tuple[Expectation, ...]:
        """The row rules that look into another table, at its certified version."""
        return tuple(rule for rule in self.expectations if rule.is_reference)

    @property
    def upstream_tables(self) -> tuple[str, ...]:
        """The tables that must be built before it: those from which its rows come, and those that references look into.

        Its own rows follow from the first alone: a rebuild of another table changes no row that was accepted.
        """
        referenced = (table for rule in self.references for table in rule.other_tables)
        return tuple(dict.fromkeys((*self.source_tables, *referenced)))

    @property
    def named_tables(self) -> frozenset[str]:
        """The tables that its rows or any of its checks read."""
        compared = (table for rule in self.expectations for table in (*rule.other_tables, rule.arguments.get("source")))
        return frozenset((*self.source_tables, *(table for table in compared if isinstance(table, str))))

    @property
    def row_rules(self) -> tuple[Expectation, ...]:
        """The expectations that check single rows."""
        return tuple(rule for rule in self.expectations if rule.is_row_rule)

    @property
    def table_rules(self) -> tuple[Expectation, ...]:
        """The expectations by which the gate checks a table version."""
        return tuple(rule for rule in self.expectations if not rule.is_row_rule)

    @property
    def converted_columns(self) -> tuple[str, ...]:
        """The columns whose values may be converted, so that `VALUE_RULE` matters for them."""
        return ()

    @property
    def spec_hash(self) -> str:
        """A short digest of all settings that decide the table's rows; descriptions and batch sizes do not."""
        rule = VALUE_RULE if self.converted_columns else ""
        return _digest(self.model_dump_json(exclude=_NOT_HASHED) + rule)

    @property
    def suite_hash(self) -> str:
        """A short digest of the table rules: gate results are kept by (table id, version, suite hash)."""
        return _digest("".join(rule.definition for rule in self.table_rules))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
