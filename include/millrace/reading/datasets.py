"""The data files of a table version as an Arrow dataset, which reads only the columns and row groups it needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import FileSystem, LocalFileSystem, S3FileSystem, SubTreeFileSystem

from millrace.contracts.lake_path import LakePath
from millrace.control.log.stored_tables import logged_files
from millrace.control.storage.s3_access import arrow_options
from millrace.errors import MisfitError, first_line

_IN_ORDER = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_string,
)
"""The types that the log and Arrow order alike, and whose bounds in the log are not below or above the rows' own."""

_TRUNCATED = pa.scalar(1000, pa.duration("us"))
"""Spark cuts the bounds of times off after the millisecond."""

_MOST_PARTS = 4

Part = tuple[ds.Dataset, frozenset[str]]
"""Files of a table, and the columns by which Arrow must not filter them."""


def dataset_of(delta: DeltaTable, path: LakePath) -> ds.FileSystemDataset:
    """Return the files of an open table at `path` as a dataset; its list of files never changes.

    The dataset of deltalake itself loses rows: of a file without a usable bound, such as NaN, it promises Arrow
    `c >= null` or `c <= NaN`, and Arrow skips the file. It also fails at dates that Python does not know.

    Raises:
        MisfitError: the files alone do not have the rows: there are deletion vectors, or columns with other names.
        TornLogError: the log has something that delta-rs cannot read.
    """
    protocol = delta.protocol()
    features = protocol.reader_features or (["columnMapping"] if protocol.min_reader_version == 2 else [])
    if unknown := sorted({*features} - {"timestampNtz"}):
        cause = f"{path} cannot be read by its files alone: it has the feature {', '.join(unknown)}"
        raise MisfitError(cause, "Read it by Spark, or drop the feature: ALTER TABLE ... DROP FEATURE ...")
    schema, files = pa.schema(delta.schema().to_arrow()), logged_files(delta, flatten=False)
    # Without a file system, delta-rs reads files through Python. Then Arrow's threads, which may still read when the
    # process ends, abort it or never let it end.
    file_system = _files_below(path)
    parquet = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True))
    fragments = [
        parquet.make_fragment(unquote(file), file_system, promise)
        for file, promise in zip(files["path"].to_pylist(), _promises(files), strict=True)
    ]
    return ds.FileSystemDataset(fragments, schema, parquet, file_system)


def only_files(rows: ds.FileSystemDataset, files: Set[str]) -> ds.FileSystemDataset:
    """Return the part of a dataset that has these files, named as in the log."""
    paths = set(map(unquote, files))
    fragments = [fragment for fragment in rows.get_fragments() if fragment.path in paths]
    return ds.FileSystemDataset(fragments, rows.schema, rows.format, rows.filesystem)


def in_small_steps(rows: ds.FileSystemDataset, columns: Sequence[str]) -> pa.RecordBatchReader:
    """Return some columns of a dataset, of which one row group after the other is decoded when it is needed.

    PyArrow 26 decodes a whole dataset in advance, whatever its readahead, while its consumer is busy. If a file cannot
    be read, the error of the batch names it.
    """
    schema = pa.schema([rows.schema.field(name) for name in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for file in rows.get_fragments():
            try:
                for group in file.split_by_row_group():
                    yield from group.to_batches(schema=rows.schema, columns=list(columns))
            except (OSError, pa.ArrowInvalid) as error:
                raise OSError(f"{file.path}: {first_line(error)}") from error

    return pa.RecordBatchReader.from_batches(schema, batches())


def filtered_parts(delta: DeltaTable, rows: ds.FileSystemDataset, *, only_nan: bool = False) -> list[Part]:
    """Divide the dataset of an open table by the floating point numbers by which Arrow must not filter a file.

    To Arrow, NaN is not greater than a number, null is `<= NaN`, and -0.0 is not in a list with 0.0. To Spark, DuckDB
    and Polars it is otherwise. So Arrow may filter by a column where the log says that a file has none of these three,
    or no NaN with `only_nan`.
    """
    files, columns = logged_files(delta, flatten=False), frozenset(float_columns(rows.schema))
    unfit = [set(columns) for _ in range(len(files))]
    partition, nulls = _columns(files, "partition"), _columns(files, "null_count")
    least, greatest = ({**_columns(files, kind), **partition} for kind in ("min", "max"))
    for name in columns & least.keys() & greatest.keys():
        low, high = least[name], greatest[name]
        if not pa.types.is_floating(low.type):
            continue
        are_fit = pc.invert(pc.is_nan(high))
        if not only_nan:
            are_fit = pc.and_(are_fit, pc.or_(pc.greater(low, 0), pc.less(high, 0)))
            if name not in partition:
                are_fit = pc.and_(are_fit, pc.equal(nulls[name], 0))
        for at, is_fit in enumerate(are_fit.to_pylist()):
            if is_fit:
                unfit[at].remove(name)
    common = dict(Counter(map(frozenset, unfit)).most_common(_MOST_PARTS - 1))
    parts = defaultdict[frozenset[str], list[ds.Fragment]](list)
    for fragment, names in zip(rows.get_fragments(), map(frozenset, unfit), strict=True):
        parts[names if names in common else columns].append(fragment)
    return [
        (ds.FileSystemDataset(fragments, rows.schema, rows.format, rows.filesystem), names)
        for names, fragments in parts.items()
    ] or [(rows, columns)]


def float_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that are floating point numbers, or structs with such fields."""
    return [field.name for field in schema if _has_floats(field.type)]


def _has_floats(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_floats(field.type) for field in kind)
    return bool(pa.types.is_floating(kind))


def _files_below(path: LakePath) -> FileSystem:
    if isinstance(path, Path):
        return SubTreeFileSystem(str(path.absolute()), LocalFileSystem())
    return SubTreeFileSystem(f"{path.bucket}/{path.key}", S3FileSystem(**arrow_options()))


def _promises(files: pa.Table) -> list[ds.Expression]:
    """Return for each file what is true of all its rows, by which Arrow skips files without opening them."""
    promises = [ds.scalar(True)] * len(files)
    for name, values in _columns(files, "partition").items():
        column = ds.field(name)
        for at, value in enumerate(values):
            promises[at] &= column == value if value.is_valid else column.is_null()
    nulls, greatest = _columns(files, "null_count"), _columns(files, "max")
    for name, least in _columns(files, "min").items():
        if name not in greatest or not any(is_type(least.type) for is_type in _IN_ORDER):
            continue
        most = pc.add(greatest[name], _TRUNCATED) if pa.types.is_timestamp(least.type) else greatest[name]
        if pa.types.is_floating(least.type):
            # Where the greatest is NaN, there are numbers of which Arrow says that they are not above the least either.
            are_numbers = pc.invert(pc.is_nan(most))
            least, most = (pc.if_else(are_numbers, bound, None) for bound in (least, most))
        column, counts = ds.field(name), nulls[name].to_pylist() if name in nulls else [None] * len(files)
        for at, (low, high, null) in enumerate(zip(least, most, counts, strict=True)):
            bounds = [column >= low] * low.is_valid + [column <= high] * high.is_valid
            for bound in bounds:
                promises[at] &= bound if null == 0 else bound | column.is_null()
    return promises


def _columns(files: pa.Table, kind: str) -> dict[str, pa.Array]:
    """Return column -> its partition values or statistics of one kind, one for each file."""
    if kind not in files.column_names:
        return {}
    parts = files[kind].combine_chunks()
    return {field.name: pc.struct_field(parts, at) for at, field in enumerate(parts.type)}
