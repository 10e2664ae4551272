"""What differs between the rows of two table versions: of one table, or of two, in one lakehouse or in two.

DuckDB compares every value, not hashes, and writes to disk what does not fit into memory. Values are equal as in Spark:
null is equal to null, NaN to NaN, -0.0 to 0.0, 1.50 to 1.5, in structs, lists and maps too, and the order of the
entries of a map does not matter. Texts are equal if their bytes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from millrace.contracts.restricted import NOTHING_RESTRICTED, RESTRICTED, RestrictedColumns
from millrace.control.changes.table_columns import columns_of
from millrace.control.log.table_queries import identifiers, text_literals
from millrace.errors import QueryError, StorageError, first_line
from millrace.reading.comparable_types import canonical, common_type
from millrace.reading.datasets import in_small_steps
from millrace.reading.duckdb_in_utc import spilling_duckdb
from millrace.reading.stored_version import StoredVersion

Values = Mapping[str, str | None]
"""Column -> its value as a text of DuckDB, JSON if it is nested; None for null."""

_KEPT = "_rescued"
"""A column of Millrace's own that holds what a source has delivered."""

_CHANGED = "removed = 1 AND added = 1"


class Kind(StrEnum):
    """What happened to a row from the first version to the second."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True)
class SchemaDifference:
    """A column that one version lacks, or that has another type in it.

    Attributes:
        column: its name.
        before: its type in the first version, in Delta's names; None if the version lacks it.
        after: its type in the second version.
        is_compared: whether its values are compared: if every value of one type is one of the other.
    """

    column: str
    before: str | None
    after: str | None
    is_compared: bool = False


@dataclass(frozen=True)
class PartitionDifference:
    """The rows that differ in a partition. A row that changed and moved is removed in one, and added in the other."""

    partition: Values
    added: int
    removed: int
    changed: int


@dataclass(frozen=True)
class Sample:
    """A row that differs, or several with one key.

    Attributes:
        kind: what happened to it.
        key: its key; all compared columns if there is none.
        before: its other columns in the first version; of a changed row those that changed. None if it was added.
        after: the same in the second version. None if it was removed.
        rows: the number of rows with the key that were added or removed; `before` and `after` are of one of them.
    """

    kind: Kind
    key: Values
    before: Values | None
    after: Values | None
    rows: int = 1


@dataclass(frozen=True)
class DuplicateKeys:
    """Keys that several of the compared rows have.

    Attributes:
        before: the number of such keys in the first version.
        after: the number of such keys in the second version.
        samples: some of them, each with its number of rows in the two versions.
    """

    before: int = 0
    after: int = 0
    samples: tuple[tuple[Values, int, int], ...] = ()


@dataclass(frozen=True)
class TableDifference:
    """What differs between two table versions, from the first to the second.

    The rows of the second are those of the first, plus `added`, minus `removed`. A row is changed if its key has one
    row in each version that the other does not have; so several rows with a key are added and removed, not changed.

    Attributes:
        keys: the columns that identify a row; none if whole rows were compared, each as often as it occurs.
        rows_before: the number of rows in the first version.
        rows_after: the number of rows in the second version.
        added: the number of rows that only the second version has.
        removed: the number of rows that only the first version has.
        changed: the number of rows with a key of both versions, and other values.
        columns: column -> the number of changed rows in which it differs; without the columns that differ nowhere.
        partitions: the rows by partition, if both versions have the same partition columns.
        samples: the first rows of each kind, by key.
        duplicates: the keys that several of the compared rows have.
        schema: columns that differ themselves; the other columns were compared.
        files_read: the number of data files that were read.
        files_in_both: the number of data files that both versions have, and that were not read.
    """

    keys: tuple[str, ...]
    rows_before: int
    rows_after: int
    added: int
    removed: int
    changed: int
    columns: Mapping[str, int]
    partitions: tuple[PartitionDifference, ...]
    samples: tuple[Sample, ...]
    duplicates: DuplicateKeys
    schema: tuple[SchemaDifference, ...]
    files_read: int
    files_in_both: int

    @property
    def unchanged(self) -> int:
        """The number of rows that both versions have."""
        return self.rows_before - self.removed - self.changed

    @property
    def is_equal(self) -> bool:
        """Whether rows and columns are the same."""
        return not (self.added or self.removed or self.changed or self.schema)


def table_difference(
    before: StoredVersion,
    after: StoredVersion,
    keys: Sequence[str] = (),
    *,
    restricted: RestrictedColumns = NOTHING_RESTRICTED,
    samples: int = 5,
    own_columns: bool = False,
) -> TableDifference:
    """Compare the rows of two table versions. Of two versions of one table, files that both have are not read.

    Args:
        before: the first version.
        after: the second version.
        keys: the columns that identify a row; without them whole rows are compared, each as often as it occurs.
        restricted: the columns whose values are not in the result.
        samples: the most rows of each kind in the result.
        own_columns: whether to compare Millrace's own columns, such as `_batch_token`. `_rescued`, the period of a
            history, keys and partition columns always are.

    Raises:
        QueryError: a key is no column of both versions, or of types that cannot be compared; or DuckDB fails.
        UnknownNameError: there is no such table or version.
        NotReadyError: a version can no longer be read; the message names the nearest one that is whole.
        MisfitError: a version cannot be read by its files alone, as with deletion vectors.
        TornLogError: its log cannot be read.
        StorageError: a data file is damaged.
    """
    partitioned_by = _common_partition_columns(before, after)
    schema, columns = _columns(before, after, {*keys, *partitioned_by}, own_columns=own_columns)
    by_name = {column.name.lower(): column for column in columns}
    for key in keys:
        if key.lower() not in by_name:
            cause = f"{key} is no column of both versions that can be compared"
            raise QueryError(cause, f"They are: {', '.join(column.name for column in columns)}.")
    in_both = before.files.keys() & after.files.keys() if before.path == after.path else set[str]()
    sides = [(side, side.files.keys() - in_both) for side in (before, after)]
    with spilling_duckdb() as connection, _duckdb_errors(sides):
        comparison = _Comparison(
            connection,
            *(side.dataset_of_files(files) for side, files in sides),
            columns=columns,
            key=[by_name[key.lower()] for key in keys] or columns,
            partitioned_by=[by_name[name.lower()] for name in partitioned_by],
            restricted=restricted,
            most=samples,
        )
        comparison.find_differing_rows()
        added, removed, changed, of_columns = comparison.counts()
        return TableDifference(
            keys=tuple(by_name[key.lower()].name for key in keys),
            rows_before=before.count_rows(),
            rows_after=after.count_rows(),
            added=added,
            removed=removed,
            changed=changed,
            columns=of_columns,
            partitions=tuple(comparison.partitions()),
            samples=tuple(comparison.samples()),
            duplicates=comparison.duplicates() if keys else DuplicateKeys(),
            schema=tuple(schema),
            files_read=sum(len(files) for _, files in sides),
            files_in_both=len(in_both),
        )


@dataclass(frozen=True)
class _Column:
    """A compared column.

    Attributes:
        at: its number, by which the SQL here names it.
        name: its name in the second version.
        name_before: its name in the first version, which may differ in case.
        kind: the type in which it is compared.
        is_cast: whether a version has it in another type.
    """

    at: int
    name: str
    name_before: str
    kind: pa.DataType
    is_cast: bool


def _common_partition_columns(before: StoredVersion, after: StoredVersion) -> list[str]:
    of_before, of_after = (list(side.delta.metadata().partition_columns) for side in (before, after))
    return of_after if set(map(str.lower, of_before)) == set(map(str.lower, of_after)) else []


def _columns(
    before: StoredVersion, after: StoredVersion, always: set[str], *, own_columns: bool
) -> tuple[list[SchemaDifference], list[_Column]]:
    """Return how the columns themselves differ, and those whose values are compared."""
    needed = set(map(str.lower, always))
    first, second = (
        {
            field.name.lower(): (field.name, types[field.name], field.type)
            for types in [columns_of(side.delta)]
            for field in side.dataset.schema
            if own_columns or field.name.lower() in needed or not _is_own(field.name)
        }
        for side in (before, after)
    )
    schema = [SchemaDifference(name, None, kind) for key, (name, kind, _) in second.items() if key not in first]
    schema += [SchemaDifference(name, kind, None) for key, (name, kind, _) in first.items() if key not in second]
    columns = list[_Column]()
    for key in (key for key in second if key in first):
        (name_before, type_before, one), (name, type_after, other) = first[key], second[key]
        common = common_type(one, other)
        if type_before != type_after:
            schema.append(SchemaDifference(name, type_before, type_after, is_compared=common is not None))
        if common is not None:
            columns.append(_Column(len(columns), name, name_before, common, is_cast=not one.equals(other)))
    return schema, columns


def _is_own(name: str) -> bool:
    """Whether a column tells of the batch and not of the row; a history's `__START_AT` tells of the row."""
    return name.startswith("_") and not name.startswith("__") and name != _KEPT


class _Comparison:
    """The queries of one comparison.

    `compared` has the rows of both versions. (DuckDB 1.5.5 also groups rows straight from Arrow, but then Arrow's
    memory grows with them.) `differing` has each row that does not occur equally often in both, with its two numbers,
    and `by_key` a line for each key of such a row.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        before: ds.FileSystemDataset,
        after: ds.FileSystemDataset,
        *,
        columns: Sequence[_Column],
        key: Sequence[_Column],
        partitioned_by: Sequence[_Column],
        restricted: RestrictedColumns,
        most: int,
    ) -> None:
        self._connection = connection
        self._columns = columns
        self._key = key
        self._values = [column for column in columns if column not in key]
        self._partitioned_by = partitioned_by
        self._restricted = restricted
        self._most = most
        kinds = pa.schema([pa.field(f"c{column.at}", column.kind) for column in columns])
        self._types = list(map(str, connection.from_arrow(kinds.empty_table()).types))
        connection.register("before", in_small_steps(before, [column.name_before for column in columns]))
        connection.register("after", in_small_steps(after, [column.name for column in columns]))

    def find_differing_rows(self) -> None:
        """Read the rows of both versions, and keep those that differ."""
        before = ", ".join(self._read(column, column.name_before) for column in self._columns)
        after = ", ".join(self._read(column, column.name) for column in self._columns)
        self._connection.execute(f"""
            CREATE TEMP TABLE compared AS
            SELECT {before}, false AS is_after FROM "before" UNION ALL SELECT {after}, true FROM "after"
        """)
        columns = ", ".join(f"c{column.at}" for column in self._columns)
        self._connection.execute(f"""
            CREATE TEMP TABLE differing AS
            SELECT {columns},
                count(*) FILTER (NOT is_after) AS rows_before, count(*) FILTER (is_after) AS rows_after
            FROM compared GROUP BY {columns} HAVING rows_before <> rows_after
        """)
        key = ", ".join(f"c{column.at}" for column in self._key)
        values = "".join(
            f", first(c{column.at}) FILTER (rows_before > rows_after) AS b{column.at}"
            f", first(c{column.at}) FILTER (rows_after > rows_before) AS a{column.at}"
            for column in self._values
        )
        self._connection.execute(f"""
            CREATE TEMP TABLE by_key AS
            SELECT {key}, sum(greatest(rows_before - rows_after, 0))::BIGINT AS removed,
                sum(greatest(rows_after - rows_before, 0))::BIGINT AS added{values}
            FROM differing GROUP BY {key}
        """)

    def counts(self) -> tuple[int, int, int, dict[str, int]]:
        """Return the rows that were added, removed and changed, and the changed rows by column."""
        differs = "".join(
            f", count(*) FILTER ({_CHANGED} AND b{column.at} IS DISTINCT FROM a{column.at})" for column in self._values
        )
        removed, added, changed, *of_columns = self._fetch(f"""
            SELECT coalesce(sum(removed), 0), coalesce(sum(added), 0), count(*) FILTER ({_CHANGED}){differs} FROM by_key
        """)[0]
        names = [column.name for column in self._values]
        by_column = {name: rows for name, rows in zip(names, of_columns, strict=True) if rows}
        return int(added) - changed, int(removed) - changed, changed, by_column

    def partitions(self) -> Iterator[PartitionDifference]:
        """Yield the rows that differ by partition, in the order of the values."""
        if not self._partitioned_by:
            return
        names = [f"p{at}" for at, _ in enumerate(self._partitioned_by)]
        of_row = [f"c{column.at}" for column in self._partitioned_by]
        before, after = (
            [f"c{column.at}" if column in self._key else f"{side}{column.at}" for column in self._partitioned_by]
            for side in "ba"
        )
        stays = " AND ".join(f"{one} IS NOT DISTINCT FROM {other}" for one, other in zip(before, after, strict=True))
        shown = [self._text(column, name) for column, name in zip(self._partitioned_by, names, strict=True)]
        texts = ", ".join(f"{text} AS t{at}" for at, text in enumerate(shown))
        groups = ", ".join(f"t{at}" for at, _ in enumerate(shown))
        order = ", ".join(f"min({name})" for name in names)
        found = self._fetch(f"""
            SELECT {groups}, sum(added), sum(removed), sum(changed) FROM (
                SELECT *, {texts} FROM (
                    SELECT {_named(of_row, names)}, greatest(rows_after - rows_before, 0) AS added,
                        greatest(rows_before - rows_after, 0) AS removed, 0 AS changed FROM differing
                    UNION ALL
                    SELECT {_named(after, names)}, -1, -1, 1 FROM by_key WHERE {_CHANGED} AND {stays}
                )
            ) GROUP BY {groups} ORDER BY {order}
        """)
        for row in found:
            *values, added, removed, changed = row
            partition = dict(zip((column.name for column in self._partitioned_by), values, strict=True))
            yield PartitionDifference(partition, int(added), int(removed), int(changed))

    def samples(self) -> Iterator[Sample]:
        """Yield the first rows of each kind, in the order of their keys."""
        order = ", ".join(f"c{column.at}" for column in self._key)
        texts = [self._text(column, f"c{column.at}") for column in self._key]
        for column in self._values:
            texts += [self._text(column, f"{side}{column.at}") for side in "ba"]
            texts.append(f"b{column.at} IS DISTINCT FROM a{column.at}")
        conditions = {
            Kind.ADDED: f"added > 0 AND NOT ({_CHANGED})",
            Kind.REMOVED: f"removed > 0 AND NOT ({_CHANGED})",
            Kind.CHANGED: _CHANGED,
        }
        for kind, condition in conditions.items():
            found = self._fetch(f"""
                SELECT {", ".join(["added", "removed", *texts])} FROM by_key
                WHERE {condition} ORDER BY {order} LIMIT {self._most}
            """)
            for added, removed, *values in found:
                yield self._sample(kind, removed if kind is Kind.REMOVED else added, values)

    def _sample(self, kind: Kind, rows: int, values: Sequence[Any]) -> Sample:
        key = dict(zip((column.name for column in self._key), values, strict=False))
        of_values = list(zip(*[iter(values[len(self._key) :])] * 3, strict=True))
        shown = [
            (column.name, before, after)
            for column, (before, after, differs) in zip(self._values, of_values, strict=True)
            if differs or kind is not Kind.CHANGED
        ]
        return Sample(
            kind,
            key,
            None if kind is Kind.ADDED else {name: before for name, before, _ in shown},
            None if kind is Kind.REMOVED else {name: after for name, _, after in shown},
            rows,
        )

    def duplicates(self) -> DuplicateKeys:
        """Return the keys that several of the compared rows have."""
        key = ", ".join(f"c{column.at}" for column in self._key)
        texts = ", ".join(self._text(column, f"c{column.at}") for column in self._key)
        self._connection.execute(f"""
            CREATE TEMP TABLE duplicates AS
            SELECT {key}, count(*) FILTER (NOT is_after) AS rows_before, count(*) FILTER (is_after) AS rows_after
            FROM compared GROUP BY {key} HAVING rows_before > 1 OR rows_after > 1
        """)
        (before, after), *_ = self._fetch(
            "SELECT count(*) FILTER (rows_before > 1), count(*) FILTER (rows_after > 1) FROM duplicates"
        )
        found = self._fetch(
            f"SELECT rows_before, rows_after, {texts} FROM duplicates ORDER BY {key} LIMIT {self._most}"
        )
        names = [column.name for column in self._key]
        samples = tuple((dict(zip(names, values, strict=True)), one, other) for one, other, *values in found)
        return DuplicateKeys(before, after, samples)

    def _read(self, column: _Column, name: str) -> str:
        value = identifiers([name])
        if column.is_cast:
            value = f"CAST({value} AS {self._types[column.at]})"
        return f"{canonical(value, column.kind)} AS c{column.at}"

    def _text(self, column: _Column, name: str) -> str:
        """Return the SQL of a value as a text; of a restricted column what stands in its place."""
        if column.name in self._restricted:
            return text_literals([RESTRICTED])
        is_nested = pa.types.is_nested(column.kind)
        return f"CASE WHEN {name} IS NOT NULL THEN to_json({name})::VARCHAR END" if is_nested else f"{name}::VARCHAR"

    def _fetch(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()


def _named(expressions: Sequence[str], names: Sequence[str]) -> str:
    return ", ".join(f"{expression} AS {name}" for expression, name in zip(expressions, names, strict=True))


@contextmanager
def _duckdb_errors(sides: Sequence[tuple[StoredVersion, set[str]]]) -> Iterator[None]:
    """Raise a typed error for one of DuckDB, whose cause may be that VACUUM has deleted a file meanwhile."""
    try:
        yield
    except duckdb.Error as error:
        for side, files in sides:
            side.dataset_of_files(files)
        _, is_of_file, reason = first_line(error).partition("get_next failed(): ")
        if is_of_file:
            reason = reason.partition(". Detail: Python exception")[0].rpartition("IOError: ")[2]
            way_out = "Restore the file from a backup, or compare another version."
            raise StorageError(f"a data file cannot be read: {reason}", way_out) from error
        raise QueryError(f"the comparison failed: {first_line(error)}") from error
