"""The days and instants of `--interval` and `--to`, and the tables that a command names."""

from __future__ import annotations

import pytest

from millrace.cli.selection import parse_intervals
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, write_specs

FIRST_DAY = "[2013-01-01T00:00:00Z, 2013-01-02T00:00:00Z)"


@pytest.mark.parametrize(
    ("text", "to", "expected"),
    [
        ("2013-01-01", None, [FIRST_DAY]),
        ("2013-01-01", "2013-01-01", [FIRST_DAY]),
        ("2012-12-31", "2013-01-01", ["[2012-12-31T00:00:00Z, 2013-01-01T00:00:00Z)", FIRST_DAY]),
        ("2013-01-01/2013-01-03", None, ["[2013-01-01T00:00:00Z, 2013-01-03T00:00:00Z)"]),
        ("2013-01-01T06:00Z/2013-01-01T12:00Z", None, ["[2013-01-01T06:00:00Z, 2013-01-01T12:00:00Z)"]),
        ("2013-01-01T00:00-05:00/2013-01-02T00:00-05:00", None, ["[2013-01-01T05:00:00Z, 2013-01-02T05:00:00Z)"]),
    ],
)
def test_days_and_instants_are_understood(text: str, to: str | None, expected: list[str]) -> None:
    assert [str(interval) for interval in parse_intervals(text, to)] == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--interval", "2013-02-30"], "'2013-02-30' is no day Write a day as 2013-01-01"),
        (["--interval", "2013-01-02", "--to", "2013-01-01"], "Swap them: --interval 2013-01-01 --to 2013-01-02"),
        (["--interval", "2013-01-01T00:00Z/2013-01-02T00:00Z", "--to", "2013-01-03"], "Leave --to out"),
        (["--interval", "2013-01-01/noon"], "'noon' is no instant"),
        (["--interval", "2013-01-01T00:00/2013-01-02T00:00"], "has no time zone"),
        (["--interval", "2013-01-02/2013-01-01"], "must end after it starts"),
    ],
)
def test_anything_else_is_wrong_usage_with_a_hint(lakehouse: Lakehouse, options: list[str], message: str) -> None:
    answer = lakehouse("plan", *options)
    assert answer.exit_code == 2
    assert message in " ".join(answer.stderr.replace("│", " ").split())


def test_a_table_needs_no_domain_beside_it_and_a_misspelt_one_is_told_from_it(
    lakehouse: Lakehouse, settings: Settings
) -> None:
    write_specs(settings.tables, bronze_document("bronze.bills"), domain="billing")
    for table in ("bronze.bills", "bronze.orders"):
        assert lakehouse("plan", "--table", table, "--interval", "2013-01-01").exit_code in (0, 12), table
    for options, said in (
        (("--table", "bronze.bill"), "did you mean 'bronze.bills'?"),
        ((), "several domains have tables"),
        (("--table", "bronze.bills", "--table", "bronze.orders"), "several domains have these tables"),
    ):
        answer = lakehouse("plan", *options, "--interval", "2013-01-01")
        assert said in answer.stderr, answer.stderr
