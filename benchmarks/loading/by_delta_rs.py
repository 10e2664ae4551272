"""Arrow and delta-rs: read files, append them to a Delta table.

by_delta_rs.py FOLDER KIND OUT
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import write_deltalake
from pyarrow.csv import ConvertOptions

from benchmarks.loading.flights import COLUMNS

_TYPES = {"bigint": pa.int64(), "int": pa.int32(), "string": pa.string(), "timestamp": pa.timestamp("us", tz="UTC")}


def load(folder: str, kind: str, out: str) -> None:
    """Append the typed rows of the files of `folder` to the table `out`."""
    schema = pa.schema([(name, _TYPES[type_]) for name, type_ in COLUMNS.items()])
    # As the other readers do, an empty value of CSV is no text.
    csv = ds.CsvFileFormat(convert_options=ConvertOptions(strings_can_be_null=True))
    rows = ds.dataset(folder, schema=schema, format=csv if kind == "csv" else kind).scanner().to_reader()
    write_deltalake(out, rows, mode="append")


if __name__ == "__main__":
    load(*sys.argv[1:])
