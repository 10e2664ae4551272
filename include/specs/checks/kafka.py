"""Check that a Kafka source provides a value for each column of its table."""

from __future__ import annotations

from collections.abc import Iterator

from include.specs.document import Document, mapping_at
from include.specs.problem import Defect, did_you_mean


def check_kafka(document: Document) -> Iterator[Defect]:
    """Find transforms of columns that the table does not have, and columns that raw bytes cannot provide."""
    source, columns = mapping_at(document, "source"), mapping_at(document, "columns")
    if "kafka" not in source or not columns:
        return
    transforms = mapping_at(source, "transforms")
    for name in (name for name in transforms if name not in columns):
        fix = f"{did_you_mean(name, columns)} A transform fills a column that `columns` declares"
        yield Defect(("source", "transforms", name), "the table has no such column", transforms[name], fix)
    if source.get("format") == "raw":
        for name in (name for name in columns if name not in {"value", *transforms}):
            fix = "add an expression for it to source.transforms, or name it `value` to keep the bytes"
            yield Defect(("columns", name), "raw bytes have no fields", name, fix)
