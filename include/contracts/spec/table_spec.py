"""The specs of the three layers: what a table is, and what its data must look like.

One YAML file under `include/tables/<layer>/<domain>/` is one spec. Names of change-data settings follow
Spark's AutoCDC (`keys`, `sequence_by`, `apply_as_deletes`, `stored_as_scd_type`). The models say what shape
a spec has; that the names in it agree, within a spec and between specs, is checked by `include.catalog`.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from include.contracts.spec.bronze_sources import BATCH_SIZES, BronzeSource, KafkaSource, LandingSource
from include.contracts.spec.change_data import ChangeData
from include.contracts.spec.column_spec import ColumnSpec
from include.contracts.spec.conflict_spec import ConflictSpec
from include.contracts.spec.expectation import Expectation
from include.contracts.spec.maintenance_spec import MaintenanceSpec, QuarantineSpec, SilverMaintenanceSpec
from include.contracts.spec.part import SpecPart
from include.contracts.spec.values import NAME, ColumnName, PropertyText

_NOT_OF_ROWS: Any = {
    **dict.fromkeys(("description", "owner", "classification", "maintenance", "evolve", "quarantine"), True),
    **dict.fromkeys(("max_rows_per_batch", "max_files_per_batch", "on_refusal", "conflicts"), True),
    "max_deleted_percent": True,
    "columns": {"__all__": {"required"}},
    "source": BATCH_SIZES,
}


class TableSpec(SpecPart):
    """What all layers share.

    Attributes:
        table: `<layer>.<name>`, the same in YAML, UI, ledger and folder.
        description: what one row is.
        owner: the team to ask.
        classification: who may see the data.
        domain: the business area, from the file's folder.
        expectations: what must hold of rows (`quarantine`, `drop`) and of a table version (`warn`, `fail`).
        on_refusal: what becomes of a version that the gate refuses: `keep` it as the newest, or `restore` the rows of
            the certified version on top of it (not in bronze, which keeps what it has received).
        partitioned_by: the columns whose values become folders; none is right below a terabyte or so.
        zorder_by: the columns that maintenance clusters the files by: those that queries and merges filter on.
        maintenance: what table maintenance does.
        conflicts: how long its writers put up with each other.
        delta: further Delta table properties, `delta.<name>: <value>`.
    """

    table: str
    description: str = ""
    owner: str = ""
    classification: Literal["public", "internal", "confidential", "restricted"] = "internal"
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
        """The tables this one reads, as `<layer>.<name>`."""
        return ()

    @property
    def row_rules(self) -> tuple[Expectation, ...]:
        """The expectations that take single rows out of a batch."""
        return tuple(rule for rule in self.expectations if rule.judges_rows)

    @property
    def table_rules(self) -> tuple[Expectation, ...]:
        """The expectations by which the gate judges a table version."""
        return tuple(rule for rule in self.expectations if not rule.judges_rows)

    @property
    def spec_hash(self) -> str:
        """A short digest of everything that decides the table's rows; descriptions and the size of batches do not."""
        return _digest(self.model_dump_json(exclude=_NOT_OF_ROWS))

    @property
    def suite_hash(self) -> str:
        """A short digest of the table rules: gate results are kept by (table id, version, suite hash)."""
        return _digest("".join(rule.model_dump_json() for rule in self.table_rules))


class BronzeSpec(TableSpec):
    """A bronze table: rows as received, appended once each, with where they came from.

    Attributes:
        source: where its files land, or the Kafka topics that it reads.
        on_drift: what becomes of a record with a value that fits no declared column: `rescue` keeps it, with the value
            in `_rescued`; `fail` does not load its file, and names it; `evolve` lets a field that no column is declared
            for become a column, as text, and keeps a value of another type in `_rescued`.
        evolve: whether a new field becomes a column at once (`auto`), or when somebody has approved it (`ask`); until
            then it is kept in `_rescued`.
        columns: the fields of a record, each with the type that its values should have; a value that does not fit is
            kept in `_rescued`.
        quarantine: how long refused rows may wait.
    """

    table: str = Field(pattern=rf"^bronze\.{NAME}$")
    source: BronzeSource
    on_drift: Literal["rescue", "fail", "evolve"] = "rescue"
    evolve: Literal["auto", "ask"] = "auto"
    columns: dict[ColumnName, ColumnSpec] = Field(min_length=1)
    quarantine: QuarantineSpec = QuarantineSpec()

    @model_validator(mode="after")
    def _keeps_what_it_received(self) -> Self:
        if self.on_refusal == "restore":
            msg = "on_refusal: restore is for silver and gold tables: a bronze table keeps what it has received"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _evolves_by_names(self) -> Self:
        if self.evolve == "ask" and self.on_drift != "evolve":
            msg = "evolve: ask is about tables with on_drift: evolve"
            raise ValueError(msg)
        if self.on_drift == "evolve" and not self.source.names_its_fields:
            msg = "on_drift: evolve needs records that name their fields: JSON, Parquet, or CSV files with a header"
            raise ValueError(msg)
        return self

    @property
    def asks_for_columns(self) -> bool:
        """Whether somebody is asked before a new field becomes a column."""
        return self.on_drift == "evolve" and self.evolve == "ask"

    @property
    def reads_kafka(self) -> bool:
        """Whether it reads Kafka topics; else it loads landing files."""
        return isinstance(self.source, KafkaSource)

    @property
    def landing_source(self) -> LandingSource:
        """Its source, of a table that loads landing files.

        Raises:
            TypeError: it reads Kafka topics.
        """
        if not isinstance(self.source, LandingSource):
            raise TypeError(f"{self.table} loads no landing files, it reads Kafka topics")
        return self.source

    @property
    def kafka_source(self) -> KafkaSource:
        """Its source, of a table that reads Kafka topics.

        Raises:
            TypeError: it loads landing files.
        """
        if not isinstance(self.source, KafkaSource):
            raise TypeError(f"{self.table} reads no Kafka topics, it loads landing files")
        return self.source


class SilverSpec(TableSpec, ChangeData):
    """A silver table: what is known of each key, now (SCD type 1) or ever since (type 2).

    Attributes:
        source: the bronze table it is merged from.
        snapshot: `full` says that each interval delivers the whole table: keys that are missing are deleted.
        columns: the table's columns, typed.
        max_rows_per_batch: a batch reads so many rows of the source at most, and at least one of its commits; the run
            goes on with further batches until all are in.
        max_files_per_batch: the same, in data files of the source.
        max_deleted_percent: a batch stops before its commit, and asks, where more of the table's keys would go though
            no event deletes them: a full snapshot lacks them, a truncate or a replaced file takes them away.
        maintenance: what table maintenance does, and how long deleted keys are remembered.
        quarantine: how long refused rows may wait.
    """

    table: str = Field(pattern=rf"^silver\.{NAME}$")
    source: str = Field(pattern=rf"^bronze\.{NAME}$")
    snapshot: Literal["full"] | None = None
    columns: dict[ColumnName, ColumnSpec] = Field(min_length=1)
    max_rows_per_batch: int | None = Field(default=None, gt=0)
    max_files_per_batch: int | None = Field(default=None, gt=0)
    max_deleted_percent: int = Field(default=20, ge=0, le=100)
    maintenance: SilverMaintenanceSpec = SilverMaintenanceSpec()
    quarantine: QuarantineSpec = QuarantineSpec()

    @model_validator(mode="after")
    def _receives_rows_and_no_files(self) -> Self:
        if required := [name for name, column in self.columns.items() if column.required]:
            msg = f"required is of bronze columns, which files may lack: {', '.join(required)} wants nullable: false"
            raise ValueError(msg)
        return self

    @property
    def source_tables(self) -> tuple[str, ...]:
        """The one bronze table it is merged from."""
        return (self.source,)

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """The columns that the table has, in their order."""
        return tuple(name for name in self.columns if name not in self.except_column_list)

    @property
    def tracked_columns(self) -> tuple[str, ...]:
        """The columns of which a change begins a new period, of a table with history."""
        if self.track_history_column_list:
            return self.track_history_column_list
        untracked = {*self.keys, *self.track_history_except_column_list}
        return tuple(name for name in self.stored_columns if name not in untracked)


class GoldSource(SpecPart):
    """One silver table that a gold table reads.

    Attributes:
        table: the silver table.
        where: Spark SQL that keeps rows, over the table's own columns.
        join: how it joins the sources above it; left out for the first.
        on: Spark SQL of the join, columns written `<alias>.<column>`.
    """

    table: str = Field(pattern=rf"^silver\.{NAME}$")
    where: str | None = None
    join: Literal["inner", "left"] | None = None
    on: str | None = None

    @model_validator(mode="after")
    def _join_has_its_condition(self) -> Self:
        if (self.join is None) != (self.on is None):
            msg = "join and on go together: a joined source needs both, the first source neither"
            raise ValueError(msg)
        return self


class GoldSpec(TableSpec):
    """A gold table: measures by group, recomputed for what changed.

    Attributes:
        sources: alias -> silver table; the first is the one that is counted.
        refresh_by: the group column whose changed values are recomputed, such as a date.
        refresh_from: alias -> Spark SQL over that source's own columns that gives the value of `refresh_by`
            which a changed row of it touches.
        group_by: group column -> Spark SQL over `<alias>.<column>`.
        measures: measure -> Spark SQL aggregate over `<alias>.<column>`.
    """

    table: str = Field(pattern=rf"^gold\.{NAME}$")
    sources: dict[ColumnName, GoldSource] = Field(min_length=1)
    refresh_by: ColumnName
    refresh_from: dict[ColumnName, str]
    group_by: dict[ColumnName, str] = Field(min_length=1)
    measures: dict[ColumnName, str] = Field(min_length=1)

    @property
    def source_tables(self) -> tuple[str, ...]:
        """The silver tables it reads, in the order of the spec."""
        return tuple(source.table for source in self.sources.values())


AnySpec = BronzeSpec | SilverSpec | GoldSpec

SPEC_OF_LAYER: dict[str, type[BronzeSpec] | type[SilverSpec] | type[GoldSpec]] = {
    "bronze": BronzeSpec,
    "silver": SilverSpec,
    "gold": GoldSpec,
}
"""The model of each layer's specs."""


def parse_spec(document: dict[str, Any]) -> AnySpec:
    """The spec that a YAML document states; its layer is the first part of `table`.

    Raises:
        pydantic.ValidationError: with every error of the document, by key path.
        ValueError: `table` is missing or names no layer.
    """
    layer = str(document.get("table", "")).split(".")[0]
    if layer not in SPEC_OF_LAYER:
        msg = f"table must be bronze.<name>, silver.<name> or gold.<name>, got {document.get('table')!r}"
        raise ValueError(msg)
    return SPEC_OF_LAYER[layer].model_validate(document)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
