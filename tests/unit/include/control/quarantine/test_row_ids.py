"""Rows by the beginning of their ids, in the CLI and in the forms of DAGs."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.control.quarantine.row_ids import whole_id
from include.errors import UnknownNameError
from include.paths import LakehousePaths
from tests.support.ledger.quarantine_rows import quarantine, refused

ORDERS = "silver.orders"


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    paths = LakehousePaths(tmp_path)
    quarantine(paths, ORDERS, *(refused(number, "too low") for number in (1, 11, 20)))
    return paths


@pytest.mark.parametrize(("prefix", "row_id"), [("r2", "r20"), ("r11", "r11"), ("r1", "r1")])
def test_the_beginning_of_one_id_and_a_whole_id_name_a_row(paths: LakehousePaths, prefix: str, row_id: str) -> None:
    assert whole_id(ORDERS, prefix, paths) == row_id


@pytest.mark.parametrize(
    ("prefix", "said"), [("r", "beginning of 3 ids"), ("r21", "did you mean"), ("' OR 1=1 --", "has no row")]
)
def test_a_beginning_of_no_id_or_of_several_is_refused(paths: LakehousePaths, prefix: str, said: str) -> None:
    with pytest.raises(UnknownNameError, match=said) as error:
        whole_id(ORDERS, prefix, paths)
    assert "r11" not in str(error.value), "there may be thousands of ids"
