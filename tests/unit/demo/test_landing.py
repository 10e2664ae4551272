from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from demo.source_system.landing import csv_table, json_lines, write_whole


def test_json_lines_are_the_same_bytes_every_time_and_read_back() -> None:
    content = json_lines(['{"a":1}', '{"a":2}'])
    assert gzip.decompress(content) == b'{"a":1}\n{"a":2}\n'
    assert content[4:8] == bytes(4), "a time stamp in the header would make every layout another one"


def test_a_null_is_an_empty_field() -> None:
    assert csv_table(["a", "b"], [("1", None), ('x, "y"', "2")]) == b'a,b\n1,\n"x, ""y""",2\n'


def test_a_file_is_replaced_when_its_content_changes_and_left_alone_when_not(tmp_path: Path) -> None:
    path = tmp_path / "feed" / "file.csv"
    write_whole(path, b"one")
    before = path.stat()
    write_whole(path, b"one")
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert [file.name for file in path.parent.iterdir()] == ["file.csv"]


def test_a_file_that_cannot_be_put_in_place_leaves_no_part_behind(tmp_path: Path) -> None:
    target = tmp_path / "file.csv"
    (target / "in-the-way").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        write_whole(target, b"one")
    assert [file.name for file in tmp_path.iterdir()] == ["file.csv"]
