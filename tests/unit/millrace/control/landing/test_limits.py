"""The limits of a landing file: one that asks for more than its readers have is broken, and no other file is."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace
from typing import Any

import pytest
import zstandard

from millrace.control.landing.inspection import inspect
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.log.batch import MIXED_LINE_ENDS
from tests.support.deliveries import Deliver, orders_spec_of
from tests.support.ledger.delta_tables import day
from tests.support.listing import inspected, list_files

HEADER = "order_id,amount,day,event_at,event_seq"
LOW = {"record": 100, "header": 60, "columns": 8, "expansion": 20}


def defect_of(deliver: Deliver, name: str, content: bytes | str, limits: dict[str, Any] = LOW, **source: Any) -> str:
    """Deliver a file of the format that its name says first, and return its defect."""
    spec = orders_spec_of(name.partition(".")[0], limits=limits, **source)
    return inspected(deliver, spec, name, content).defect


def line(size: int, end: str = "\n") -> str:
    return f'{{"order_id": "{"x" * (size - 16)}"}}{end}'


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_of_json_over_the_limit_is_found_at_any_place_packed_or_not(deliver: Deliver, end: str) -> None:
    over = "it has a record of more than 100 B, and source.limits.record is 100 B; correct the file or raise the limit"
    for before, after in ((0, 1), (50, 0), (50_000, 7)):
        sound, broken = (line(40, end) * before + line(size) + line(40, end) * after for size in (100, 101))
        for suffix, pack in (("", bytes), (".gz", gzip.compress), (".zst", zstandard.compress)):
            limits = {**LOW, "expansion": 10_000}
            assert defect_of(deliver, f"json{suffix}", pack(sound.encode()), limits) == "", (before, suffix)
            assert defect_of(deliver, f"json{suffix}", pack(broken.encode()), limits) == over, (before, suffix)


def value(size: int, first: str = "") -> str:
    """Return a record of CSV of this size without its line end."""
    return f"{first},{'7' * (size - len(first) - 4)},,,"


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16"])
def test_a_record_of_csv_over_the_limit_is_found_also_over_several_lines(deliver: Deliver, encoding: str) -> None:
    def defect(*records: str, **source: Any) -> str:
        return defect_of(
            deliver, "csv", "\n".join((HEADER, *records, "")).encode(encoding), encoding=encoding, **source
        )

    short = value(30)
    assert defect(short, value(99), short) == ""
    assert defect(short, value(102), short).startswith("it has a record of more than 100 B, and source.limits.record")
    lines = '"{}"'.format("\n".join(["a line"] * 12))
    assert defect(short, value(98, lines)) == "", "quotes"
    assert defect(short, value(104, lines)).startswith("it has a record of more than 100 B")
    assert defect(short, 'the 5" pipe,,,,', *[short] * 99) == "", "a quote that is no beginning of a value"
    assert defect(short, '"never closed,,,,', *[short] * 99).startswith("it has a record of more than 100 B")
    if encoding == "UTF-8":
        assert defect(short, '"never closed,,,,', *[short] * 99, multi_line=False) == "", "a line is a record"


def test_files_of_several_line_ends_and_with_an_escape_have_limits_too(deliver: Deliver) -> None:
    ends = "".join(f"{value(30)}{end}" for end in ("\n", "\r\n") * 50)
    spec = orders_spec_of("csv", limits=LOW)
    assert inspected(deliver, spec, "a.csv", f"{HEADER}\n{ends}").layout == MIXED_LINE_ENDS
    escaped = "".join(f'"a \\"quote",{number},,,\n' for number in range(99))
    assert defect_of(deliver, "csv", f"{HEADER}\n{escaped}", escape="\\") == ""


def test_a_header_has_a_size_and_a_number_of_columns(deliver: Deliver) -> None:
    assert defect_of(deliver, "csv", f"{HEADER},a,b,c\n") == ""
    assert defect_of(deliver, "csv", f"{HEADER},a,b,c,d\n") == (
        "it has 9 columns, and source.limits.columns is 8; correct the file or raise the limit"
    )
    of_long = f"{HEADER},{'x' * 30}\n"
    assert defect_of(deliver, "csv", of_long).startswith("it has a header of more than 60 characters, and source.lim")
    assert defect_of(deliver, "csv", of_long, header=False) == ""
    assert defect_of(deliver, "csv", f'"{HEADER}\n1,,,,\n2,,,,\n3,,,,\n4,,,,\n').startswith(
        "it has a header of more than 60"
    ), "not closed"


def test_many_columns_take_little_time_and_their_names_make_no_long_defect(deliver: Deliver) -> None:
    names, start = ",".join(f"column_{number}" for number in range(50_000)), time.process_time()
    defect = defect_of(deliver, "csv", f"{names}\n", {"columns": 50_000})
    assert time.process_time() - start < 5
    assert defect.startswith("has no column order_id, ")
    assert "its columns are column_0, column_1, " in defect
    assert defect.endswith(" and 49980 more: correct the file or the spec")
    assert len(defect_of(deliver, "csv", f"{'x' * 9_999},b\n", {})) <= 1_000


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.compress)])
def test_a_packed_file_may_not_become_many_times_as_large(deliver: Deliver, suffix: str, pack: Any) -> None:
    content = (line(20) * 5_000).encode()
    times = len(content) // len(pack(content))
    for name in (f"json{suffix}", f"csv{suffix}"):
        defect = defect_of(deliver, name, pack(content))
        assert defect.startswith("it has more than ")
        assert defect.endswith(
            " bytes unpacked, and source.limits.expansion is 20; correct the file or raise the limit"
        )
    assert defect_of(deliver, f"json{suffix}", pack(content), {**LOW, "expansion": times + 1}) == ""
    few = (line(20) * 4).encode()
    assert defect_of(deliver, f"json{suffix}", pack(few), {**LOW, "expansion": 1}) == "", (
        "no larger than a record may be"
    )


def test_an_empty_file_that_grows_while_it_is_read_is_over_the_limit(deliver: Deliver) -> None:
    path = deliver("a.json.gz", gzip.compress(line(20).encode() * 50))
    place, spec = LocalLanding(str(deliver.landing)), orders_spec_of("json", limits=LOW)
    [file] = list_files(spec, place, day())
    assert path.stat().st_size == file.size
    assert inspect(replace(file, size=0), place, spec).defect.startswith("it has more than ")
