"""`lakehouse quarantine fix` and `replay`: what they ask of their driver, and what they refuse to ask."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from include.cli.quarantine.jobs import request_for
from include.contracts.job.quarantine_request import QuarantineRequest
from include.errors import BadInputError, ExitCode, SpecError
from include.paths import LakehousePaths
from include.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.ledger.quarantine_rows import FIRST, quarantine, refused

ORDERS = "silver.orders"


@pytest.fixture
def settings(place: Mapping[str, str]) -> Settings:
    settings = Settings(**{name: place[f"LAKEHOUSE_{name.upper()}"] for name in ("root", "landing", "tables")})
    quarantine(LakehousePaths(settings.root), ORDERS, refused(10, "too low"), refused(20, "too low", of_day=2))
    return settings


def asked(settings: Settings, *ids: str, table: str = ORDERS, **more: Any) -> QuarantineRequest:
    given = {
        "days": (None, None),
        "reason": "",
        "everything": False,
        "assign": None,
        "edited": None,
        "why": "so",
        **more,
    }
    return request_for(table, settings, ids, given.pop("days"), given.pop("reason"), **given)


def test_rows_are_named_by_the_beginnings_of_their_ids(settings: Settings) -> None:
    request = asked(settings, "r1", assign=["amount = abs(amount)", "day=date '2013-01-01'"])
    assert request.rows.ids == ("r10",)
    assert request.assign == {"amount": "abs(amount)", "day": "date '2013-01-01'"}
    assert (request.why, request.how) == ("so", "amount = abs(amount); day = date '2013-01-01'")


def test_rows_are_named_by_reason_and_interval(settings: Settings) -> None:
    request = asked(settings, reason="low", days=("2013-01-01", None))
    assert (request.rows.ids, request.rows.reason, request.rows.starts) == ((), "low", (FIRST,))
    assert not request.has_fixes


def test_a_file_of_edited_rows_names_them_itself(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "edited.jsonl"
    file.write_text('{"id": "r20", "record": {"amount": 7}}\n')
    request = asked(settings, edited=file)
    assert (request.rows.ids, request.edited, request.how) == (("r20",), file.read_text(), "edited")
    with pytest.raises(typer.BadParameter, match="--rows alone selects"):
        asked(settings, "r1", edited=file)
    file.write_text('{"id": "r99", "record": {"amount": 7}}\n')
    with pytest.raises(typer.BadParameter, match="has no row 'r99'"):
        asked(settings, edited=file)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({}, typer.BadParameter, "state which rows"),
        ({"everything": True, "assign": ["abs(amount)"]}, typer.BadParameter, "is not an assignment"),
        ({"everything": True, "table": "gold.revenue_daily"}, BadInputError, "fix the rows there"),
        ({"everything": True, "table": "silver.ordres"}, SpecError, "silver.orders"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_any_spark(
    settings: Settings, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        asked(settings, **given)


def test_a_fix_without_anything_to_mend_is_wrong_usage(lakehouse: Lakehouse, settings: Settings) -> None:
    assert settings.root.exists()
    answer = lakehouse("quarantine", "fix", ORDERS, "--all")
    assert (answer.exit_code, "state a fix" in answer.stderr) == (2, True)


def test_without_spark_it_says_so(lakehouse: Lakehouse, settings: Settings) -> None:
    assert settings.root.exists()
    answer = lakehouse("quarantine", "replay", ORDERS, "--all")
    assert (answer.exit_code, "make setup" in answer.stderr) == (ExitCode.SPARK_UNAVAILABLE, True)
