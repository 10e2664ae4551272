"""How a spec says that values are read, and what it may not say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from millrace.contracts.spec.common_settings import ColumnSpec

PATTERNS = (
    "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]", "dd/MMM/yyyy:HH:mm:ss Z", "d.M.yy", "yyyyMMddHHmmssSSS", "yyyy", "yyyyMM",
    "yyyy-DDD", "MMMM d, yyyy h:mm a", "dd''MM''yyyy", "yyyy-MM-dd HH:mm VV", "yyyy.MM.dd G 'at' HH", "yyyy-MM-dd[ HH",
)  # fmt: skip
REFUSED = {
    "uuuu-MM-dd": "by uuuu in", "EEE, dd MMM yyyy": "by EEE in", "YYYY-MM-dd": "by YYYY in", "q yyyy": "by q in",
    "MMMMM yyyy": "by MMMMM in", "yyyy-MM-ddd": "by ddd in", "yyyy-MM-dd V": "by V in", "yyyyyyy": "by yyyyyyy in",
    "yyyy-MM-dd HH:mm z": "by z in", "yyyy-MM-ddTHH:mm": "by T in", "yyyy-MM-dd]": "bracket", "yyyy{MM}": "bracket",
    "yyyy-mm-dd": "d and nothing of M, L", "yyyy-MM-dd HH:mm:SS": "S and nothing of s", "HH:mm": "no year",
    "yyyy-MM-dd hh:mm:ss": "h and nothing of a", "yyyy-MM-dd'T": "quote", "yyyy-MM-dd HH:mm:ss.SSSSSSS": "more digits",
}  # fmt: skip
SETTINGS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("string", {"epoch": "ms"}, "epoch is for date, timestamp, and this is string"),
    ("date", {"round": "down"}, "round is for"),
    ("timestamp", {"format": "yyyy", "epoch": "ms"}, "state one of them"),
    ("timestamp", {"round": "half_up"}, "down"),
    ("array<timestamp>", {"round": "up", "format": "yyyy"}, "down"),
    ("timestamp", {"format": []}, "it is empty"),
    ("timestamp", {"format": ""}, "it is empty"),
    ("timestamp", {"format": [""]}, "no year"),
    ("int", {"null_values": []}, "it is empty"),
    ("int", {"null_values": ""}, "null_values: \\[''\\]"),
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_that_spark_reads_is_accepted(pattern: str) -> None:
    assert ColumnSpec(type="timestamp", format=pattern).format == (pattern,)


@pytest.mark.parametrize(("pattern", "cause"), REFUSED.items())
def test_a_pattern_that_spark_refuses_or_reads_as_another_time_is_refused(pattern: str, cause: str) -> None:
    with pytest.raises(ValidationError, match=cause):
        ColumnSpec(type="timestamp", format=pattern)


@pytest.mark.parametrize(("kind", "settings", "cause"), SETTINGS)
def test_a_setting_that_means_nothing_for_the_type_is_refused(kind: str, settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(ValidationError, match=cause):
        ColumnSpec(type=kind, **settings)


def test_a_setting_for_some_part_of_a_type_is_accepted() -> None:
    ColumnSpec(type="struct<at: timestamp, price: decimal(9,2)>", round="half_up")
    ColumnSpec(type="timestamp", epoch="ns", round="half_up")


def test_an_empty_text_may_mean_that_there_is_no_value_and_is_read_again_as_it_is_written() -> None:
    column = ColumnSpec(type="int", null_values=[""])
    assert (column.null_values, ColumnSpec.model_validate(column.model_dump(mode="json"))) == (("",), column)
