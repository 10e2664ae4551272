"""The rows of a table version as a lazy frame of Polars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from polars.io.plugins import register_io_source

from millrace.reading.datasets import Part, float_columns


def frame_of(parts: Sequence[Part]) -> pl.LazyFrame:
    """Return the rows of a table's parts as a lazy frame, whose filters Polars applies.

    Arrow only leaves out rows that do not fit: alone, it would find nulls by `~column.is_in(...)`. Polars' own
    `scan_delta` finds no file below a folder with a space or a letter beyond ASCII in its name.
    """
    schema = parts[0][0].schema
    floats = float_columns(schema)

    def batches(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        shown = columns if columns is not None else schema.names
        used = [] if predicate is None else predicate.meta.root_names()
        of_arrow = None if predicate is None or "NaN" in str(predicate) else _in_arrow(predicate, schema)
        if of_arrow is not None and "is_in(" in str(predicate):
            # To Arrow, -0.0 is not in a list with 0.0.
            of_arrow = reduce(or_, [ds.field(name) == 0.0 for name in floats if name in used], of_arrow)
        for rows, unfit in parts:
            filter_ = None if unfit.intersection(used) else of_arrow
            size = {} if batch_size is None else {"batch_size": batch_size}
            for batch in rows.to_batches(columns=list(dict.fromkeys([*shown, *used])), filter=filter_, **size):
                frame = pl.DataFrame(pl.from_arrow(batch))
                frame = (frame if predicate is None else frame.filter(predicate)).select(shown)
                yield frame if n_rows is None else frame.head(n_rows)
                if n_rows is not None and (n_rows := max(n_rows - len(frame), 0)) == 0:
                    return

    return register_io_source(batches, schema=pl.DataFrame(schema.empty_table()).schema, is_pure=True)


class _Asked:
    """A dataset without rows, which keeps the filter that Polars gives it."""

    filter: ds.Expression | None = None

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def to_batches(self, *, filter: ds.Expression | None, **_: object) -> Iterator[pa.RecordBatch]:
        self.filter = filter
        return iter(())


def _in_arrow(predicate: pl.Expr, schema: pa.Schema) -> ds.Expression | None:
    """Return the filter that Polars gives Arrow for a predicate; None if Arrow has no such expression."""
    asked = _Asked(schema)
    pl.scan_pyarrow_dataset(asked).filter(predicate).collect()
    return asked.filter
