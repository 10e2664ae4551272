"""Rows by the beginning of their ids, in the CLI and in the forms of DAGs."""

from __future__ import annotations

import pytest

from millrace.control.quarantine.row_ids import whole_id
from millrace.errors import UnknownNameError
from millrace.paths import LakehousePaths
from tests.support.ledger.quarantine_rows import quarantine, refused

ORDERS = "silver.orders"


def test_the_beginning_of_one_id_and_a_whole_id_name_a_row_and_no_other_text_does(paths: LakehousePaths) -> None:
    quarantine(paths, ORDERS, *(refused(number, "too low") for number in (1, 11, 20)))
    assert [whole_id(ORDERS, prefix, paths) for prefix in ("r2", "r11", "r1")] == ["r20", "r11", "r1"]
    for prefix, cause in (("r", "beginning of 3 ids"), ("r21", "did you mean"), ("' OR 1=1 --", "has no row")):
        with pytest.raises(UnknownNameError, match=cause) as error:
            whole_id(ORDERS, prefix, paths)
        assert "r11" not in str(error.value), "there may be thousands of ids"
