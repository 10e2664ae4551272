"""What differs between two table versions, compared with a model in plain Python, and for values that are hard."""

from __future__ import annotations

import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.restricted import RESTRICTED, RestrictedColumns
from millrace.errors import MisfitError, NotReadyError, QueryError, StorageError, UnknownNameError
from millrace.reading.datasets import in_small_steps
from millrace.reading.stored_version import StoredVersion
from millrace.reading.table_difference import Kind, TableDifference, table_difference
from tests.support.texts import texts

_POINT = pa.struct([("x", pa.float64()), ("tags", pa.map_(pa.string(), pa.int64()))])
_SCHEMA = pa.schema(
    [
        ("c1", pa.int64()),  # named like the columns of the comparison's own SQL
        ("k", pa.string()),
        ("p", pa.int32()),
        ("is_after", pa.float64()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("before", _POINT),
        ("items", pa.list_(pa.decimal128(5, 2))),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
_FLOATS = st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.5]) | st.none()
_ROW = st.fixed_dictionaries(
    {
        "c1": st.sampled_from([1, 2, 3]) | st.none(),
        "k": st.sampled_from(["a", "a ", "é", "e\u0301"]) | st.none(),
        "p": st.sampled_from([1, 2]) | st.none(),
        "is_after": _FLOATS,
        "text": st.none() | st.sampled_from(["", " "]) | texts(max_size=3),
        "raw": st.sampled_from([b"", b"\x00", b"\xff"]) | st.none(),
        "before": st.none()
        | st.fixed_dictionaries(
            {"x": _FLOATS, "tags": st.none() | st.dictionaries(st.sampled_from("ab"), st.sampled_from([1, None])).map(
                lambda tags: list(tags.items())
            )}
        ),
        "items": st.none() | st.lists(st.sampled_from([Decimal("1.00"), Decimal("1.10"), None]), max_size=2),
        "at": st.sampled_from([datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), None]),
    }
)  # fmt: skip
Row = dict[str, Any]


def _plain(value: Any) -> Hashable:
    """A value of a row such that equal values are equal in Python, too."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return frozenset(value)
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple((name, _plain(part)) for name, part in sorted(value.items()))
    return value if isinstance(value, Hashable) else repr(value)


def _counted(rows: Iterable[Row]) -> Counter[Hashable]:
    return Counter(tuple((name, _plain(row[name])) for name in _SCHEMA.names) for row in rows)


def _model(before: Sequence[Row], after: Sequence[Row], keys: Sequence[str]) -> dict[str, Any]:
    """The numbers of rows that were added, removed and changed, and of changed rows by column and by partition."""
    old, new = _counted(before), _counted(after)
    by_key: dict[Hashable, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((old - new, new - old)):
        for row in rows.elements():
            values = dict(row)  # type: ignore[call-overload]
            by_key[tuple(values[key] for key in keys or values)][side].append(values)
    changed = [(gone[0], come[0]) for gone, come in by_key.values() if len(gone) == len(come) == 1]
    columns = Counter(name for gone, come in changed for name in gone if gone[name] != come[name])
    removed, added = (sum(len(rows[side]) for rows in by_key.values()) - len(changed) for side in (0, 1))
    partitions = defaultdict[Any, list[int]](lambda: [0, 0, 0])
    for side, rows in enumerate((new - old, old - new)):
        for row in rows.elements():
            partitions[dict(row)["p"]][side] += 1  # type: ignore[call-overload]
    for one, other in changed:
        if one["p"] == other["p"]:
            partitions[one["p"]] = [
                number + step for number, step in zip(partitions[one["p"]], (-1, -1, 1), strict=True)
            ]
    return {
        "rows": (added, removed, len(changed)),
        "columns": dict(columns),
        "partitions": {value and str(value): tuple(numbers) for value, numbers in partitions.items()},
    }


def _counts(found: TableDifference) -> dict[str, Any]:
    by = {each.partition["p"]: (each.added, each.removed, each.changed) for each in found.partitions}
    return {"rows": (found.added, found.removed, found.changed), "columns": found.columns, "partitions": by}


def _table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=_SCHEMA)


def _write(path: Path, *versions: pa.Table, partition_by: Sequence[str] = ()) -> list[StoredVersion]:
    """Write each table as a version; return the versions."""
    for rows in versions:
        write_deltalake(str(path), rows, mode="overwrite", schema_mode="overwrite", partition_by=list(partition_by))
    return [StoredVersion(path, version) for version in range(len(versions))]


@settings(max_examples=30)
@given(
    kept=st.lists(_ROW, max_size=4),
    gone=st.lists(_ROW, max_size=4),
    come=st.lists(_ROW, max_size=4),
    keys=st.sampled_from([[], ["c1"], ["c1", "k"], ["is_after"], ["before"], ["items", "at"]]),
    by=st.sampled_from([[], ["p"]]),
)
def test_two_versions_differ_as_a_model_says(
    tmp_path_factory: pytest.TempPathFactory,
    kept: list[Row],
    gone: list[Row],
    come: list[Row],
    keys: list[str],
    by: list[str],
) -> None:
    path, other = tmp_path_factory.mktemp("table"), tmp_path_factory.mktemp("other")
    # The file of the kept rows is in both versions; rows in other files may equal them, or have their keys.
    for rows in (kept, gone):
        write_deltalake(str(path), _table(rows), mode="append", partition_by=by)
    DeltaTable(str(path)).restore(0)
    write_deltalake(str(path), _table(come), mode="append", partition_by=by)
    before, after = StoredVersion(path, 1), StoredVersion(path, 3)
    write_deltalake(str(other), _table([*kept, *come]), partition_by=by)
    old, new = [*gone, *kept], [*kept, *come]
    by_files = table_difference(before, after, keys)
    whole = table_difference(before, StoredVersion(other, 0), keys)
    expected = _model(old, new, keys)
    for found in (by_files, whole):
        assert _counts(found) == (expected if by else {**expected, "partitions": {}})
        assert (found.rows_before, found.rows_after) == (len(old), len(new))
        assert found.unchanged == sum((_counted(old) & _counted(new)).values())
        assert found.is_equal == (_counted(old) == _counted(new))
    assert by_files.files_in_both == len(StoredVersion(path, 0).files)


def test_files_are_decoded_when_their_rows_are_needed(tmp_path: Path) -> None:
    for at in range(20):
        write_deltalake(str(tmp_path), pa.table({"n": range(at, at + 50_000)}), mode="append")
    version, used = StoredVersion(tmp_path, 19), pa.total_allocated_bytes()
    rows = in_small_steps(version.dataset, ["n"])
    batches = [rows.read_next_batch()]
    time.sleep(0.2)
    assert pa.total_allocated_bytes() - used < 4 * batches[0].nbytes
    assert batches[0].num_rows + sum(batch.num_rows for batch in rows) == 1_000_000


def _orders(*rows: tuple[int | None, str | None, str]) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("amount", pa.decimal128(10, 2)), ("city", pa.string())])
    return pa.Table.from_pylist(
        [{"id": key, "amount": amount and Decimal(amount), "city": city} for key, amount, city in rows], schema=schema
    )


def test_samples_have_the_two_values_of_what_changed(tmp_path: Path) -> None:
    before, after = _write(
        tmp_path,
        _orders((None, "1.00", "no id"), (1, "1.00", "same"), (2, "2.00", "Oslo"), (3, "3.00", "gone")),
        _orders((None, None, "no id"), (1, "1.00", "same"), (2, "2.50", "Oslo "), (4, "4.00", "new")),
    )
    found = table_difference(before, after, ["ID"])
    assert (found.keys, found.rows_before, found.rows_after, found.unchanged) == (("id",), 4, 4, 1)
    assert found.columns == {"amount": 2, "city": 1}
    assert [(each.kind, each.key["id"], each.before, each.after) for each in found.samples] == [
        (Kind.ADDED, "4", None, {"amount": "4.00", "city": "new"}),
        (Kind.REMOVED, "3", {"amount": "3.00", "city": "gone"}, None),
        (Kind.CHANGED, "2", {"amount": "2.00", "city": "Oslo"}, {"amount": "2.50", "city": "Oslo "}),
        (Kind.CHANGED, None, {"amount": "1.00"}, {"amount": None}),
    ]
    assert len(table_difference(before, after, ["id"], samples=1).samples) == 3
    back = table_difference(after, before, ["id"])
    assert (back.added, back.removed, back.changed, back.columns) == (1, 1, 2, found.columns)
    with pytest.raises(QueryError, match=r"^order is no column of both .*\nThey are: id, amount, city\.$"):
        table_difference(before, after, ["order"])


def test_a_key_of_several_rows_is_said_and_its_rows_are_not_paired(tmp_path: Path) -> None:
    before, after = _write(
        tmp_path,
        _orders((1, "1.00", "a"), (1, "1.00", "b"), (2, "2.00", "a")),
        _orders((1, "1.00", "c"), (1, "1.00", "d"), (1, "1.00", "d"), (2, "2.00", "a"), (2, "2.00", "a")),
    )
    found = table_difference(before, after, ["id"])
    assert (found.added, found.removed, found.changed) == (4, 2, 0)
    assert (found.duplicates.before, found.duplicates.after) == (1, 2)
    assert found.duplicates.samples == (({"id": "1"}, 2, 3), ({"id": "2"}, 1, 2))
    assert [(each.kind, each.key, each.rows) for each in found.samples] == [
        (Kind.ADDED, {"id": "1"}, 3),
        (Kind.ADDED, {"id": "2"}, 1),
        (Kind.REMOVED, {"id": "1"}, 2),
    ]


def test_columns_that_differ_are_said_and_values_are_compared_where_no_value_is_lost(tmp_path: Path) -> None:
    rows = {"id": pa.array([1, 2], pa.int32()), "price": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2))}
    old = pa.table({**rows, "note": ["1", "2"], "old": [1, 2], "_batch_token": ["x", "x"], "_rescued": ["{}", None]})
    new = pa.table(
        {
            "ID": pa.array([1, 2], pa.int64()),
            "price": pa.array([Decimal("1.5"), None], pa.decimal128(12, 1)),
            "note": [1, 2],
            "new": [None, date(2013, 1, 1)],
            "_batch_token": ["y", "y"],
            "_rescued": ["{}", "{}"],
        }
    )
    before, after = _write(tmp_path, old, new)
    found = table_difference(before, after, ["id"])
    assert (found.added, found.removed, found.changed, found.columns) == (0, 0, 1, {"_rescued": 1})
    assert [(each.column, each.before, each.after, each.is_compared) for each in found.schema] == [
        ("new", None, "date", False),
        ("old", "long", None, False),
        ("ID", "integer", "long", True),
        ("price", "decimal(10,2)", "decimal(12,1)", True),
        ("note", "string", "long", False),
    ]
    assert table_difference(before, after, own_columns=True).removed == 2
    with pytest.raises(QueryError, match=r"^note is no column of both versions that can be compared"):
        table_difference(before, after, ["note"])


def test_no_value_of_a_restricted_column_is_in_the_result(tmp_path: Path) -> None:
    rows = [_orders(*((at, "7.77", f"secret {side}{at}") for at in range(2))) for side in "ab"]
    before, after = _write(tmp_path, *rows, partition_by=["city"])
    restricted = RestrictedColumns(frozenset({"city"}), frozenset({"id", "amount", "city"}), others=True)
    for keys in (["id"], ["city"], []):
        found = table_difference(before, after, keys, restricted=restricted)
        assert "secret" not in repr(found)
        assert RESTRICTED in repr(found)
        assert len(found.partitions) == 1


def test_a_version_that_cannot_be_read_names_the_nearest_whole_one(tmp_path: Path) -> None:
    *_, newest = versions = _write(tmp_path, *(_orders((1, f"{at}.00", "a")) for at in range(5)))
    for version in (9, 10**20):
        with pytest.raises(UnknownNameError, match=rf"has no version {version}\nThe newest version is 4\.$"):
            table_difference(versions[0], StoredVersion(tmp_path, version))
    with pytest.raises(UnknownNameError, match=r"^there is no table at"):
        table_difference(StoredVersion(tmp_path / "other", 0), newest)
    for gone in versions[1:4:2]:
        (tmp_path / next(iter(gone.files))).unlink()
    for gone, nearest in ((1, 2), (3, 4)):
        reason = (
            rf"version {gone} can no longer be read: 1 data file is gone: .*\nRead version {nearest} or a later one"
        )
        with pytest.raises(NotReadyError, match=reason):
            table_difference(StoredVersion(tmp_path, gone), newest)
    assert table_difference(versions[2], newest).added == 1
    damaged = next(iter(versions[2].files))
    (tmp_path / damaged).write_text("no Parquet, and longer than its magic number")
    with pytest.raises(StorageError, match=rf"^a data file cannot be read: {damaged}: [^\n]*\nRestore"):
        table_difference(versions[2], newest)
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
    commit = json.dumps({"protocol": {**protocol, "writerFeatures": ["deletionVectors"]}})
    (tmp_path / "_delta_log" / f"{5:020d}.json").write_text(commit)
    with pytest.raises(MisfitError, match=r"it has the feature deletionVectors\nRead it by Spark"):
        table_difference(newest, StoredVersion(tmp_path, 5))
    (tmp_path / "_delta_log" / f"{5:020d}.json").unlink()
    DeltaTable(str(tmp_path)).create_checkpoint()
    for commit in (0, 1, 2, 3):
        (tmp_path / "_delta_log" / f"{commit:020d}.json").unlink()
    with pytest.raises(NotReadyError, match=r"version 2 can no longer be read: .*\nRead version 4 or a later one\.$"):
        table_difference(StoredVersion(tmp_path, 2), newest)
    (tmp_path / next(iter(newest.files))).unlink()
    with pytest.raises(NotReadyError, match=r"No later version is whole either\.$"):
        table_difference(StoredVersion(tmp_path, 2), newest)
