"""The least and greatest values of a column in each data file, by the statistics of the log."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from include.control.log.file_bounds import FileBounds, file_bounds


def write(path: Path, *numbers: int | None) -> None:
    rows = {"n": pa.array(numbers, pa.int64()), "day": [date(2013, 1, 1)] * len(numbers), "flag": [True] * len(numbers)}
    write_deltalake(str(path), pa.table(rows), mode="append")


def test_each_file_has_its_extremes_in_the_version_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, 2**60 + 1, -7)
    write(tmp_path, 4, None)
    write(tmp_path, None)
    write(tmp_path, 9)
    assert file_bounds(tmp_path, 2, "n") == FileBounds(frozenset({-7, 4}), frozenset({2**60 + 1, 4}))
    assert file_bounds(tmp_path, 2, "day").least == {date(2013, 1, 1)}
    assert file_bounds(tmp_path, 2, "missing") == FileBounds()


def test_a_table_with_deletion_vectors_has_none(tmp_path: Path) -> None:
    write(tmp_path, 1)
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(protocol))
    assert file_bounds(tmp_path, 0, "n").least == {1}
    assert file_bounds(tmp_path, 1, "n") == FileBounds()
