"""`lakehouse erase plan`, `run` and `status`: the plan in words, its execution, and what became of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import BinaryIO

from millrace.cli.catalog import command_catalog
from millrace.cli.erase.found import found_view
from millrace.cli.listings.as_json import show_listing
from millrace.cli.output import show, show_problem
from millrace.cli.runs.deciding_alone import AskingDag, decided_alone
from millrace.cli.runs.job import run_and_show
from millrace.cli.selection import new_run_id, parse_intervals, today
from millrace.clock import utc_now
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.requests import ErasureRequest
from millrace.control.ops_tables import OpsTables
from millrace.erase.certificates import Erased
from millrace.erase.erasing import asked_erasure
from millrace.erase.plan import plan_lines
from millrace.erase.status import erasure_states, state_lines
from millrace.errors import ExitCode, MillraceError
from millrace.settings import Settings


def show_plan(kind: str, subjects: BinaryIO, request: str, settings: Settings, *, now: bool, as_json: bool) -> None:
    """Show what an erasure would do, and the command that does exactly that; raise the errors of `asked_erasure`."""
    catalog = command_catalog(settings.tables)
    plan = asked_erasure(kind, subjects.read(), request, catalog, settings, now=now).plan()
    lines = (*plan_lines(plan), f"To do exactly this: {plan.command} --why ...")
    show_listing([plan.facts], lambda: "\n".join(lines), as_json=as_json)


def run_erasure(
    kind: str, subjects: BinaryIO, request: str, plan_id: str, why: str, settings: Settings, *, now: bool
) -> ExitCode:
    """Erase as shown under the id, or go on where that was interrupted, and show what is left.

    Raises:
        ApprovalError: a second person has to approve it.
        MillraceError: as `asked_erasure`, `Erasure.execute`.
    """
    person = decided_alone(AskingDag.ERASE, settings)
    catalog = command_catalog(settings.tables)
    asked = asked_erasure(kind, subjects.read(), request, catalog, settings, now=now)
    (interval,) = parse_intervals(today())

    def erase_rows(of_job: ErasureRequest) -> None:
        first = next(iter(asked.tables))
        code = run_and_show(first, settings, interval, of_job, Job.SUBJECT_ERASURE, _show, "erasing rows")
        if code is not ExitCode.OK:
            raise MillraceError(f"{request}: the rows are not all erased", "The same command goes on where this ended.")

    left = asked.execute(plan_id, person, why, new_run_id(datetime.now(UTC)), erase_rows)
    show(found_view(left.findings), *left.kept)
    if left.state is Erased.STORED:
        show_problem("This is left for you to judge; plan again what came since. Then: `lakehouse erase prove`.")
        return ExitCode.FAILED
    show(f"{request}: {left.state}. `lakehouse erase status` says when older versions go.")
    return ExitCode.OK


def show_status(settings: Settings, *, as_json: bool) -> None:
    """Show what became of each erasure."""
    states = erasure_states(command_catalog(settings.tables), OpsTables(settings.paths), utc_now())
    lines = [line for status in states for line in state_lines(status)] or ["Nothing was erased yet."]
    show_listing(states, lambda: "\n".join(lines), as_json=as_json)


def _show(report: JobReport) -> None:
    if report.exit_code is ExitCode.OK:
        show(report.message, *report.notes)
