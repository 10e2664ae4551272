"""The results of a table's gate, and overrides of refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.table import Table
from rich.text import Text

from millrace.cli.catalog import command_catalog
from millrace.cli.runs.deciding_alone import AskingDag, decided_alone
from millrace.cli.selection import new_run_id
from millrace.cli.views import MISSING, new_table
from millrace.contracts.job.report import CheckResult
from millrace.contracts.time_format import SECOND
from millrace.control.gates.gates import Gates, RecordedResult
from millrace.control.gates.overrides import override
from millrace.control.gates.result import GateResult, Override
from millrace.control.log.delta_log import read_commit
from millrace.settings import Settings


def newest_results(table: str, settings: Settings, newest: int) -> list[RecordedResult]:
    """Return the `newest` latest results of the table's gate, oldest first.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
    """
    command_catalog(settings.tables).require_known(table)
    return list(Gates(settings.paths).results(table, newest))


def result_facts(recorded: RecordedResult) -> dict[str, object]:
    """Return a result for other programs, with the time at which it was recorded."""
    return {"at": recorded.at, **recorded.result.model_dump()}


def result_table(results: Iterable[RecordedResult]) -> Table:
    """Return one row per result: the decision, why, and the failed rules."""
    shown = new_table("version", "at", "decision", "by", "why", "failed rules", "judged by", numbers=("version",))
    for recorded in results:
        result, decision = recorded.result, recorded.result.override
        by, why = (decision.by, decision.reason) if decision else (_judge(result), MISSING)
        failed = "; ".join(check.bounded_rule for check in result.checks if not check.passed)
        if decision:
            verdict = Text("certified by hand", style="yellow")
        else:
            verdict = Text("passed", style="green") if result.passed else Text("refused", style="red")
        shown.add_row(
            str(result.version),
            f"{recorded.at:{SECOND}}",
            verdict,
            by,
            why,
            failed or MISSING,
            judged_by(result.checks),
        )
    return shown


def judged_by(checks: Sequence[CheckResult]) -> str:
    """Return how many rules were judged by which rows.

    >>> rule = CheckResult(rule="expect_column_to_exist(n)", action="fail", passed=True, judged_by="all rows")
    >>> judged_by([rule, rule]), judged_by([])
    ('all rows: 2', '-')
    """
    counts = Counter(check.judged_by for check in checks if check.judged_by)
    return "; ".join(f"{rows}: {count}" for rows, count in sorted(counts.items())) or MISSING


def _judge(result: GateResult) -> str:
    return "lakehouse verify" if result.is_verification else "the rules"


def status_lines(table: str, settings: Settings) -> list[str]:
    """Return the version that readers use, and what can be done about an open refusal."""
    gates = Gates(settings.paths)
    verdicts = gates.verdicts(table)
    certified = verdicts.certified if verdicts else None
    lines = [f"Readers use version {certified}." if certified is not None else "No version is certified."]
    if verdicts and verdicts.found_wrong:
        lines.append(verdicts.found_wrong.refused)
    refusals = gates.refusals(table, -1 if certified is None else certified) if verdicts else []
    of_table = [result for result in refusals if verdicts and result.table_id == verdicts.table_id]
    newest = max(of_table, key=lambda result: result.version, default=None)
    if newest:
        command = f"lakehouse gate override {table} --version {newest.version} --reason ..."
        lines += [newest.refused, f"To let version {newest.version} pass as it is: {command}"]
    return lines


def override_refusal(table: str, version: int, reason: str, settings: Settings) -> list[str]:
    """Override the refusal of one version, and return what follows.

    Raises:
        SpecError: a spec is wrong, or there is no such table.
        ApprovalError: a second person has to approve it.
        OverrideError: there is no such refusal.
    """
    spec, now = command_catalog(settings.tables).spec(table), datetime.now(UTC)
    decision = Override(by=decided_alone(AskingDag.OVERRIDE, settings), reason=reason, run_id=new_run_id(now), at=now)
    result = override(spec, version, decision, settings.paths)
    failed = [check.bounded_rule for check in result.checks if check.overridden]
    commit = read_commit(settings.paths.table(table), version)
    interval = commit.interval.option if commit and commit.interval else "DAY"
    return [
        f"{table}: readers use version {version} from now on, though it failed {', '.join(failed)}.",
        "The rules check later versions again. Run the downstream tables: in Airflow clear the gate's task and its "
        f"downstream tasks, else `lakehouse run --domain {spec.domain} --interval {interval}`.",
    ]
