"""The specs of the three layers: what a table is, and what its data must look like.

One YAML file under `tables/<layer>/<domain>/` is one spec. The models define the shape of a spec.
`millrace.catalog` checks that the names in a spec, and in different specs, agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from millrace.contracts.spec.bronze_sources import BronzeSource, KafkaSource, LandingSource
from millrace.contracts.spec.change_data import ChangeData
from millrace.contracts.spec.common_settings import (
    Classification,
    ColumnSpec,
    GoldMaintenanceSpec,
    QuarantineSpec,
    SilverMaintenanceSpec,
    TableSpec,
)
from millrace.contracts.spec.expectation import Expectation, rules_of_keys
from millrace.contracts.spec.gold_query import GoldQuery, GoldSource, SilverOfQuery
from millrace.contracts.spec.value_reading import may_be_converted
from millrace.contracts.spec.values import NAME, ColumnName, ColumnNames
from millrace.contracts.strict_model import StrictModel
from millrace.sql.query.groups import groups_as_query


class EraseSpec(StrictModel):
    """What an erasure does besides deleting rows.

    Attributes:
        landing_files: what happens to landing files with records of an erased subject: `keep` leaves them for a person,
            `rewrite` takes these records out of JSON, CSV and Parquet files, `delete` deletes the files, also with
            records of others: for a landing that nobody loads again.
    """

    landing_files: Literal["keep", "rewrite", "delete"] = "keep"


class BronzeSpec(TableSpec):
    """A bronze table: rows as received, each appended once, together with their origin.

    Attributes:
        source: its landing files, or the Kafka topics that it reads.
        on_drift: what happens to a record with a value that fits no declared column: `rescue` loads the record and
            keeps the value in `_rescued`; `fail` does not load the file, and names it; `evolve` makes an undeclared
            field a text column, and keeps a value of another type in `_rescued`.
        evolve: whether a new field becomes a column at once (`auto`), or after somebody has approved it (`ask`); until
            then its values are kept in `_rescued`.
        columns: the fields of a record, each with the type that its values should have.
        concurrent_by: `interval` lets runs of different intervals load the table at the same time; without it the table
            takes one batch at a time.
        quarantine: how long quarantined rows may wait.
        erase: what an erasure does besides deleting rows.
    """

    table: str = Field(pattern=rf"^bronze\.{NAME}$")
    source: BronzeSource
    on_drift: Literal["rescue", "fail", "evolve"] = "rescue"
    evolve: Literal["auto", "ask"] = "auto"
    columns: dict[ColumnName, ColumnSpec] = Field(min_length=1)
    concurrent_by: Literal["interval"] | None = None
    quarantine: QuarantineSpec = QuarantineSpec()
    erase: EraseSpec = EraseSpec()

    @model_validator(mode="after")
    def _settings_fit_one_another(self) -> Self:
        if self.erase.landing_files != "keep" and self.reads_kafka:
            raise ValueError("erase.landing_files is for landing files: a topic forgets by its own retention")
        if self.on_refusal == "restore":
            msg = "on_refusal: restore is for silver and gold tables: a bronze table keeps everything it has received"
            raise ValueError(msg)
        if self.evolve == "ask" and self.on_drift != "evolve":
            raise ValueError("evolve: ask needs on_drift: evolve")
        if self.on_drift == "evolve" and not self.source.has_field_names:
            msg = "on_drift: evolve needs records that name their fields: JSON, Parquet, or CSV files with a header"
            raise ValueError(msg)
        return self

    @property
    def converted_columns(self) -> tuple[str, ...]:
        """The columns whose values may be converted."""
        read_as = self.source.format
        return tuple(name for name, column in self.columns.items() if may_be_converted(column.type, read_as))

    @property
    def has_restricted_columns(self) -> bool:
        """Whether values of a column are shown nowhere."""
        return "restricted" in (self.classification, *(column.classification for column in self.columns.values()))

    @property
    def needs_column_approval(self) -> bool:
        """Whether a new field needs approval before it becomes a column."""
        return self.on_drift == "evolve" and self.evolve == "ask"

    @property
    def reads_kafka(self) -> bool:
        """Whether it reads Kafka topics; else it loads landing files."""
        return isinstance(self.source, KafkaSource)

    @property
    def landing_source(self) -> LandingSource:
        """The source of a table that loads landing files.

        Raises:
            TypeError: the table reads Kafka topics.
        """
        if not isinstance(self.source, LandingSource):
            raise TypeError(f"{self.table} loads no landing files, it reads Kafka topics")
        return self.source

    @property
    def kafka_source(self) -> KafkaSource:
        """The source of a table that reads Kafka topics.

        Raises:
            TypeError: the table loads landing files.
        """
        if not isinstance(self.source, KafkaSource):
            raise TypeError(f"{self.table} reads no Kafka topics, it loads landing files")
        return self.source


class SilverSpec(TableSpec, ChangeData):
    """A silver table: the last state of each key (SCD type 1), or every state (type 2).

    Attributes:
        snapshot: `full` means that each interval delivers the whole table: keys that are missing are deleted. The
            newest interval counts, in whatever order intervals arrive. Not with `sequence_by` or deletes.
        max_rows_per_batch: the most rows that a batch reads from each source, but at least one commit; the run makes
            further batches. Without it one batch reads everything that is new, as `reprocess` always does.
        max_files_per_batch: the same, in data files of the source.
        max_deleted_percent: the largest share of the table's keys that a batch may delete without an event for each: by
            a full snapshot, a truncate or a replaced file. Above it the batch stops before its commit and asks for
            approval; 0 asks about every such delete, 100 about none.
        concurrent_by: a key and partition column whose values the sources share out (`partitions`): runs then merge
            several sources at the same time.
        maintenance: what table maintenance does, and how long tombstones are kept.
        quarantine: how long quarantined rows may wait.
    """

    table: str = Field(pattern=rf"^silver\.{NAME}$")
    snapshot: Literal["full"] | None = None
    max_rows_per_batch: int | None = Field(default=None, gt=0)
    max_files_per_batch: int | None = Field(default=None, gt=0)
    max_deleted_percent: int = Field(default=20, ge=0, le=100)
    concurrent_by: ColumnName | None = None
    maintenance: SilverMaintenanceSpec = SilverMaintenanceSpec()
    quarantine: QuarantineSpec = QuarantineSpec()

    @model_validator(mode="after")
    def _requires_no_columns(self) -> Self:
        if required := [name for name, column in self.columns.items() if column.required]:
            raise ValueError(
                f"required is for bronze columns, which files may lack: write nullable: false for {', '.join(required)}"
            )
        return self

    @property
    def converted_columns(self) -> tuple[str, ...]:
        """The columns whose values may be converted, unless their source has the same type."""
        return tuple(name for name, column in self.columns.items() if may_be_converted(column.type))

    @property
    def source_tables(self) -> tuple[str, ...]:
        """The bronze tables that it is merged from, in the order of the spec."""
        return (self.source,) if self.source else tuple(source.table for source in self.sources)


VALUES_TO_VERIFY = 10
"""The number of values of `refresh_by` whose groups maintenance compares, if the spec does not state it."""


class GoldSpec(TableSpec, GoldQuery):
    """A gold table: measures by group, recomputed for what changed; or the rows of one query.

    Attributes:
        sources: alias -> silver or gold table; the rows of the first source are counted.
        refresh_by: the group column, or the columns of the query, whose changed values are recomputed, such as a date.
            A query may leave it out: then it is the first column that can be traced through most of the sources.
        refresh_from: alias -> Spark SQL over that source's own columns that gives the value of `refresh_by` that a
            changed row affects, where the joins do not say it; for each source but lookups.
        group_by: group column -> Spark SQL over `<alias>.<column>`.
        measures: measure -> Spark SQL aggregate over `<alias>.<column>`. It may name an earlier measure or a group,
            but not within an aggregate or a window; a column of a source with that name comes first.
        classifications: column -> who may see its values, such as `internal` for a count of restricted ones. Without
            it the table's classification counts; or `restricted`, if the column comes from a restricted column.
        maintenance: what table maintenance does, and how many values it verifies.
    """

    table: str = Field(pattern=rf"^gold\.{NAME}$")
    sources: dict[ColumnName, GoldSource] = Field(min_length=1)
    refresh_by: ColumnNames | None = None
    refresh_from: dict[ColumnName, str] = Field(default_factory=dict)
    group_by: dict[ColumnName, str] = Field(default_factory=dict, min_length=1)
    measures: dict[ColumnName, str] = Field(default_factory=dict, min_length=1)
    classifications: dict[ColumnName, Classification] = Field(default_factory=dict)
    maintenance: GoldMaintenanceSpec = GoldMaintenanceSpec()

    @property
    def source_tables(self) -> tuple[str, ...]:
        """The silver and gold tables that it reads, in the order of the spec."""
        return tuple(source.table for source in self.sources.values())

    @property
    def refresh_columns(self) -> tuple[str, ...]:
        """The columns of `refresh_by`; none if the spec states none."""
        return self.refresh_by or ()

    @property
    def values_to_verify(self) -> int:
        """The number of values of `refresh_by` whose groups maintenance compares; 0 compares nothing.

        A query that states nothing may be refreshed by a column that is found.
        """
        stated = self.maintenance.verify
        if stated is None:
            is_in_parts = self.refresh_columns or (self.query is not None and self.refresh is None)
            return VALUES_TO_VERIFY if is_in_parts else 0
        return 0 if stated == "off" else stated

    @property
    def select(self) -> str:
        """The SELECT that computes its rows: its query, or that of its groups."""
        return self.query or groups_as_query(self.sources, self.group_by, self.measures)

    @property
    def refreshed_group(self) -> str:
        """The column of `refresh_by` of a table with groups; empty if there is none."""
        return self.refresh_columns[0] if self.query is None and self.refresh_columns else ""

    @property
    def expressions(self) -> dict[tuple[str | int, ...], str]:
        """The SQL of a table with groups, each by the keys that lead to it in the spec."""
        of_columns = {"refresh_from": self.refresh_from, "group_by": self.group_by, "measures": self.measures}
        found: dict[tuple[str | int, ...], str] = {
            (key, name): text for key, texts in of_columns.items() for name, text in texts.items()
        }
        for alias, source in self.sources.items():
            texts = {"where": source.where, "on": source.on}
            found |= {("sources", alias, key): text for key, text in texts.items() if text}
        return found


class SilverQuerySpec(GoldSpec):
    """A silver table that a query computes from other silver tables, such as orders with what is known of a customer.

    It is refreshed and compared with its sources as a gold table is, and has keys as a silver table has.

    Attributes:
        sources: alias -> silver table; the query has everything else.
        query: one SELECT in Spark SQL over the aliases of `sources`.
        keys: the columns of the query that identify a row: the gate refuses a version with a key twice, or without one.
    """

    table: str = Field(pattern=rf"^silver\.{NAME}$")
    sources: dict[ColumnName, SilverOfQuery] = Field(min_length=1)  # type: ignore[assignment]
    query: str
    keys: tuple[ColumnName, ...] = Field(min_length=1)

    @property
    def table_rules(self) -> tuple[Expectation, ...]:
        """The expectations by which the gate checks a table version; the first ones are about the keys."""
        return (*rules_of_keys(self.keys), *super().table_rules)


AnySpec = BronzeSpec | SilverSpec | GoldSpec

SPEC_OF_LAYER: dict[str, type[BronzeSpec] | type[SilverSpec] | type[GoldSpec]] = {
    "bronze": BronzeSpec,
    "silver": SilverSpec,
    "gold": GoldSpec,
}
"""The model of each layer's specs; that of a silver table with a query is `SilverQuerySpec`."""


def model_of(layer: str, document: Mapping[str, Any]) -> type[AnySpec]:
    """Return the model of a spec in a layer."""
    return SilverQuerySpec if layer == "silver" and "query" in document else SPEC_OF_LAYER[layer]


def parse_spec(document: dict[str, Any]) -> AnySpec:
    """Validate a YAML document as the spec of its layer, which is the first part of `table`.

    Raises:
        pydantic.ValidationError: with every error of the document, by key path.
        ValueError: `table` is missing or names no layer.
    """
    layer = str(document.get("table", "")).split(".")[0]
    if layer not in SPEC_OF_LAYER:
        raise ValueError(f"table must be bronze.<name>, silver.<name> or gold.<name>, got {document.get('table')!r}")
    return model_of(layer, document).model_validate(document)
