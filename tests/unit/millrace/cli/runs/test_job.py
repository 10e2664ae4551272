"""What a person sees of a verification."""

from __future__ import annotations

from millrace.cli.output import console
from millrace.cli.runs.job import difference_table
from millrace.errors import ExitCode
from millrace.settings import Settings
from tests.support.cli import Lakehouse


def test_each_difference_is_a_line_with_its_group_its_column_and_both_values() -> None:
    group = {"day": "2013-01-02", "kind": None}
    lost = {"group": group, "column": "", "stored": "no row", "computed": "a row"}
    changed = {"group": group, "column": "revenue", "stored": None, "computed": "[red]7"}
    out = console()
    with out.capture() as shown:
        out.print(difference_table([changed, lost]))
    lines = [line.split() for line in shown.get().split("\n")]
    assert ["day", "2013-01-02,", "kind", "-", "revenue", "-", "[red]7"] in lines
    assert ["day", "2013-01-02,", "kind", "-", "-", "no", "row", "a", "row"] in lines


def test_a_table_that_is_no_gold_table_is_refused_before_spark_starts(lakehouse: Lakehouse, settings: Settings) -> None:
    answer = lakehouse("verify", "silver.orders")
    assert (answer.exit_code, "silver.orders is merged from events" in answer.stderr) == (ExitCode.WRONG_USAGE, True)
    assert not settings.root.exists(), "a driver writes its report there"
