"""What a deletion or a replacement of rows would change: the dry run of `lakehouse repair delete` and `replace`."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from millrace.catalog import Catalog
from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.job.requests import RepairRequest
from millrace.contracts.restricted import RestrictedColumns
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from millrace.control.ledger.repairs import DELETE, REPLACE
from millrace.control.log.stored_tables import open_table
from millrace.control.maintenance.retention import readers_of
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.following import why_snapshots_stay
from millrace.errors import RepairError
from millrace.repair.plan_text import some_lines
from millrace.repair.restore_plan import Downstream, ReaderPosition
from millrace.repair.restore_target import require_repairable
from millrace.specs.problem import brief, did_you_mean
from millrace.sql.changing_values import changing_values
from millrace.sql.closed_expression import closed_reasons
from millrace.sql.expression import expression_of


@dataclass(frozen=True)
class PartitionRows:
    """The rows of a partition that go.

    Attributes:
        partition: partition column -> value as text; empty for a table without partitions.
        rows: the rows that go.
        size: about how many bytes they have, by their share of their files.
        files: the files that have such rows.
        whole_files: how many of them have no other rows, so that they are not read or written.
    """

    partition: dict[str, str | None]
    rows: int
    size: int
    files: int
    whole_files: int


@dataclass(frozen=True)
class FoundRows:
    """The rows that a repair finds, counted by the engine that executes it.

    Attributes:
        rows: the rows of the table.
        partitions: those that go, by partition.
        samples: the keys of some of them.
        inserted: the rows that replace them.
    """

    rows: int
    partitions: tuple[PartitionRows, ...]
    samples: tuple[dict[str, Any], ...] = ()
    inserted: int = 0


@dataclass(frozen=True)
class RowRepairPlan:
    """What a deletion or a replacement would change. Its id is the digest of all of it.

    Attributes:
        table: the table.
        table_id: its id.
        newest: its newest version.
        where: the condition that the rows fulfil.
        source: `table@version`, whose rows replace them; empty for a deletion.
        is_of_partitions: whether the condition is about partition columns alone, so that only whole files go.
        certified: the version that readers use now.
        found: the rows.
        downstream: the tables that read the table, in the order of a run.
        readers: the readers of the table with their versions, the slowest first.
        comes_back: what brings the rows back.
    """

    table: str
    table_id: str
    newest: int
    where: str
    source: str
    is_of_partitions: bool
    certified: int | None
    found: FoundRows
    downstream: tuple[Downstream, ...]
    readers: tuple[ReaderPosition, ...]
    comes_back: str

    @property
    def action(self) -> str:
        """The name of the repair."""
        return REPLACE if self.source else DELETE

    @property
    def deleted(self) -> int:
        """The number of rows that go."""
        return sum(each.rows for each in self.found.partitions)

    @property
    def facts(self) -> dict[str, Any]:
        """All of it for other programs, with the id, the version that the repair makes, and the command."""
        own = {"id": self.id, "action": self.action, "makes_version": self.newest + 1, "command": self.command}
        return dict(json.loads(json.dumps({**own, "deleted": self.deleted, **asdict(self)}, default=str)))

    @property
    def command(self) -> str:
        """The command that does exactly this, without the reason."""
        source = f" --from {self.source}" if self.source else ""
        return (
            f"lakehouse repair {self.action} {self.table} --where {shlex.quote(self.where)}{source} --execute {self.id}"
        )

    @property
    def id(self) -> str:
        """The digest of all of it."""
        text = json.dumps(asdict(self), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def lines(self) -> Iterator[str]:
        """Yield the plan in words, without keys of rows."""
        after, found = self.newest + 1, self.found
        what = (
            f"replace the rows where {self.where} by those of {self.source}"
            if self.source
            else (f"delete the rows where {self.where}")
        )
        yield f"{self.table}: version {after} would {what}. Nothing was written."
        rows_after = found.rows - self.deleted + found.inserted
        yield f"Rows: {found.rows:,} now, {rows_after:,} after: {found.inserted:,} inserted, {self.deleted:,} deleted"
        yield from some_lines([_of_partition(each) for each in found.partitions])
        if self.is_of_partitions:
            yield "The condition names partitions alone: whole files leave the table, and none is read or written."
        yield self.comes_back
        yield f"Readers: version {self.certified} now, version {after} after, if its gate passes it"
        yield from some_lines([f"  {reader.name}: version {reader.version}" for reader in self.readers])
        yield "Downstream:" if self.downstream else "No table reads it."
        yield from (f"  {each}" for each in self.downstream)


def key_lines(keys: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the keys of some rows that go, each in a line; nothing for no keys."""
    lines = [f"  {', '.join(f'{name} {value}' for name, value in key.items())}" for key in keys]
    yield from ("Rows that go, such as:", *lines) if lines else ()


def _of_partition(each: PartitionRows) -> str:
    name = ", ".join(f"{column} {value}" for column, value in each.partition.items())
    files = f"{counted(each.files, 'file')}, {each.whole_files:,} of them whole"
    return f"  {name or 'All'}: {counted(each.rows, 'row')}, about {in_bytes(each.size)}, in {files}"


@dataclass(frozen=True)
class AskedRowRepair:
    """A repair that a person asks for, of a table that can be repaired so.

    Attributes:
        spec: the table's spec.
        request: the condition, and what replaces the rows.
        columns: the columns of the table, in order.
        named: those that the condition names.
        partitioned_by: the partition columns of the table.
    """

    spec: AnySpec
    request: RepairRequest
    columns: tuple[str, ...]
    named: frozenset[str]
    partitioned_by: tuple[str, ...] = field(default=())

    def plan(
        self, newest: int, table_id: str, found: FoundRows, source: str, catalog: Catalog, ops: OpsTables
    ) -> RowRepairPlan:
        """Return what the repair of a version would change.

        Args:
            newest: the newest version.
            table_id: the id of the table.
            found: the rows that it finds in that version.
            source: `table@version`, whose rows replace them; empty for a deletion.
            catalog: the specs.
            ops: the records of the lakehouse.

        Raises:
            RepairError: it would change nothing.
        """
        table = self.spec.table
        if not any(each.rows for each in found.partitions) and not found.inserted:
            raise RepairError(f"{table}: no row of version {newest} fulfils {self.request.where}", "Nothing is to do.")
        readers = sorted(readers_of(self.spec, catalog, ops), key=lambda reader: (reader.version, reader.name))
        reached = catalog.graph.downstream(table)
        return RowRepairPlan(
            table=table,
            table_id=table_id,
            newest=newest,
            where=self.request.where,
            source=source,
            is_of_partitions=not source and self.named <= {*self.partitioned_by},
            certified=ops.gates.certified(table),
            found=found,
            downstream=tuple(
                Downstream(name, _why_rebuild(catalog.specs.get(name), table))
                for name in catalog.tables
                if name in reached and name != table
            ),
            readers=tuple(ReaderPosition(reader.name, reader.version) for reader in readers),
            comes_back=_what_brings_back(self.spec),
        )


def asked_row_repair(
    table: str, request: RepairRequest, catalog: Catalog, ops: OpsTables, restricted: RestrictedColumns
) -> AskedRowRepair:
    """Return the repair that a person asks for, without looking at a row.

    Raises:
        SpecError: the spec is wrong, or there is no such table.
        NotReadyError: there is no table.
        RepairError: the table, or the condition, does not allow it.
    """
    spec = catalog.spec(table)
    if isinstance(spec, GoldSpec):
        raise RepairError(
            f"{table} is computed from {' and '.join(spec.source_tables)}, and would get the rows back",
            "Delete or replace the rows there; its next run follows.",
        )
    require_repairable(spec, catalog, ops)
    opened = open_table(ops.paths.table(table), without_files=True)
    columns = tuple(each.name for each in opened.schema().fields)
    named = _require_condition(table, request.where, columns, restricted)
    return AskedRowRepair(spec, request, columns, named, tuple(opened.metadata().partition_columns))


def _require_condition(
    table: str, where: str, columns: Collection[str], restricted: RestrictedColumns
) -> frozenset[str]:
    """Require that a condition follows from one row of a table alone, and is the same in each run.

    Delta writes the condition into the log of the table, so that it may not compare a restricted column.

    Args:
        table: the table.
        where: the condition, as Spark SQL.
        columns: the columns of the table.
        restricted: its restricted columns.

    Returns:
        The columns that it names, as the table writes them.

    Raises:
        RepairError: it is not allowed; the message says why.
    """
    refused = f"{table}: the condition {brief(where)} is refused"
    if reason := next(closed_reasons(where), ""):
        raise RepairError(f"{refused}: {reason}", "Write a condition over the columns of one row.")
    sql, known = expression_of(where), {name.lower(): name for name in columns}
    if changing := changing_values(sql, sql.tree):
        name, why = next(iter(changing.items()))
        raise RepairError(f"{refused}: {name} {why}", "Write the value itself, so that each run finds the same rows.")
    for name, *_ in sql.columns:
        if name.lower() not in known:
            hint = did_you_mean(name, dict.fromkeys(columns))
            raise RepairError(f"{refused}: there is no column {name!r}", f"{hint[0].upper()}{hint[1:]}")
        if name in restricted:
            raise RepairError(
                f"{refused}: {name} is restricted, and Delta would keep the values in the log of the table",
                "Name other columns, or erase the person: lakehouse erase.",
            )
    if not sql.columns:
        raise RepairError(f"{refused}: it names no column", "Name one: `_batch_seq IS NOT NULL` is true for all rows.")
    return frozenset(known[name.lower()] for name, *_ in sql.columns)


def _why_rebuild(spec: object, table: str) -> str:
    return why_snapshots_stay(spec) if isinstance(spec, SilverSpec) and table in spec.source_tables else ""


def _what_brings_back(spec: AnySpec) -> str:
    if isinstance(spec, BronzeSpec):
        return "No run loads the rows again; a rebuild does, as long as their source has them."
    sources = " and ".join(spec.source_tables)
    return f"Rows that {sources} still has come back with a run with reprocess, or a rebuild: delete them there, too."
