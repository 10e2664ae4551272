"""What a run would meet, as far as it can be told before Spark is started: nothing to do needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass

from include.cli_selection import Selection
from include.contracts.interval_args import IntervalArgs
from include.contracts.job_args import WRITER_OF_LAYER
from include.contracts.job_report import JobReport
from include.control.planner import Advice, Planner
from include.errors import MillraceError, Outcome, SpecError
from include.settings import Settings
from include.specs.refused import StatedSpec


@dataclass(frozen=True)
class Outlook:
    """What is ahead of one interval.

    Attributes:
        idle: a report of each table, where none has anything to do, or could do it; else empty.
        text_bytes: about how many bytes the tables will read, of text in bronze.
    """

    idle: tuple[JobReport, ...] = ()
    text_bytes: int = 0


def outlook(selection: Selection, arguments: IntervalArgs, settings: Settings) -> Outlook:
    """Plan every table as a run would find it now; what cannot be planned is for the driver, which says why."""
    planner, idle, reports, text_bytes = Planner(selection.catalog, settings), True, list[JobReport](), 0
    for spec in selection.specs:
        try:
            advice = planner.advise(spec, arguments.interval, reprocess=arguments.reprocess)
        except SpecError as error:
            reports.append(_refusal(spec, error, arguments))
        except MillraceError:
            idle = False
        else:
            idle = idle and advice.nothing_new and _is_certified(advice)
            reports.append(_report(advice, arguments))
            text_bytes += advice.text_bytes
    return Outlook(tuple(reports) if idle else (), text_bytes)


def _refusal(spec: StatedSpec, error: SpecError, arguments: IntervalArgs) -> JobReport:
    return JobReport(
        job=WRITER_OF_LAYER[spec.layer].value,
        table=spec.table,
        outcome=error.outcome,
        message=str(error),
        error_class=type(error).__name__,
        interval=arguments.interval,
        run_id=arguments.run_id,
    )


def _report(advice: Advice, arguments: IntervalArgs) -> JobReport:
    return JobReport(
        job=WRITER_OF_LAYER[advice.table.split(".")[0]].value,
        table=advice.table,
        outcome=Outcome.NO_OP,
        message=f"{advice.table}: nothing new: {advice.message}",
        interval=arguments.interval,
        run_id=arguments.run_id,
        batch_seq=advice.batch_seq,
        version=advice.version,
        certified_version=advice.certified_version,
        notes=advice.notes,
    )


def _is_certified(advice: Advice) -> bool:
    """Whether readers may use the last batch; the driver says anew why a gate refused it."""
    certified, version = advice.certified_version, advice.version
    return version is None or (certified is not None and certified >= version)
