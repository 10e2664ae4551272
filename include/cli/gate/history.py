"""What `lakehouse gate` shows and decides: how a table's versions were judged, and by whose word one is read."""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from datetime import UTC, datetime

from rich.table import Table
from rich.text import Text

from include.cli.catalog import command_catalog
from include.cli.runs.run_id import new_run_id
from include.cli.views import MISSING, new_table
from include.contracts.time_format import SECOND
from include.control.gates.gates import Gates, RecordedResult
from include.control.gates.overrides import override
from include.control.gates.result import GateResult, Override
from include.paths import LakehousePaths
from include.settings import Settings


def verdicts(table: str, settings: Settings, newest: int) -> list[RecordedResult]:
    """What was said last of the table's versions, oldest first: so many results at most.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
    """
    command_catalog(settings.tables).require_known(table)
    return Gates(LakehousePaths(settings.root)).results(table, newest)


def result_table(results: Iterable[RecordedResult]) -> Table:
    """A row a result: the version, what was said of it, by whom and why, and which rules failed."""
    table = new_table("version", "at", "said", "by", "why", "failed rules", numbers=("version",))
    for recorded in results:
        result, said = recorded.result, recorded.result.override
        by, why = (said.by, said.reason) if said else ("the rules", MISSING)
        failed = "; ".join(check.rule for check in result.checks if not check.passed)
        at = f"{recorded.at:{SECOND}}"
        table.add_row(str(result.version), at, _verdict(result), by, why, failed or MISSING)
    return table


def standing_lines(table: str, settings: Settings) -> list[str]:
    """What readers use now, and what can be done about a version that stands refused."""
    gates = Gates(LakehousePaths(settings.root))
    standing = gates.standing(table)
    certified = standing.certified if standing else None
    lines = [f"Readers use version {certified}." if certified is not None else "No version is certified."]
    above = -1 if certified is None else certified
    refused = [one for one in gates.refused(table, above) if standing and one.table_id == standing.table_id]
    newest = max(refused, key=lambda result: result.version, default=None)
    if newest:
        command = f"lakehouse gate override {table} --version {newest.version} --reason ..."
        lines += [newest.refused, f"To let version {newest.version} pass as it is: {command}"]
    return lines


def let_pass(table: str, version: int, reason: str, settings: Settings) -> list[str]:
    """Override the refusal of one version, and say what follows.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        OverrideError: there is no such refusal.
    """
    spec, now = command_catalog(settings.tables).spec(table), datetime.now(UTC)
    said = Override(by=getpass.getuser(), reason=reason, run_id=new_run_id(now), at=now)
    result = override(spec, version, said, LakehousePaths(settings.root))
    failed = [check.rule for check in result.checks if check.overridden]
    return [
        f"{table}: readers use version {version} from now on, though it failed {', '.join(failed)}.",
        "Later versions are judged by the rules again. Run the tables below it: in Airflow clear the gate's task with "
        "what follows it, else `lakehouse run`.",
    ]


def _verdict(result: GateResult) -> Text:
    if result.override:
        return Text("overridden", style="yellow")
    return Text("passed", style="green") if result.passed else Text("refused", style="red")
