"""What a run of several tables and intervals would do; a source that has not come is an answer, not an error."""

from __future__ import annotations

from dataclasses import dataclass

from include.cli_selection import Selection
from include.contracts.interval import Interval
from include.control.planner import Advice, Planner
from include.errors import ExitCode, MillraceError, NotReadyError
from include.settings import Settings
from include.specs.refused import StatedSpec


@dataclass(frozen=True)
class Answer:
    """What the run of an interval would do to one table.

    Attributes:
        table: the table.
        interval: the interval.
        advice: the planner's advice as things stand now; None when a run could not begin now.
        after: its sources that the same run would change first, so that it reads more than the advice says.
        obstacle: why a run could not begin.
        exit_code: the exit code that the run would end with for that reason.
    """

    table: str
    interval: Interval
    advice: Advice | None
    after: tuple[str, ...] = ()
    obstacle: str = ""
    exit_code: ExitCode = ExitCode.OK

    @property
    def would_commit(self) -> bool:
        """Whether the run would change the table, as far as can be known before it."""
        return bool(self.after) or (self.advice is not None and not self.advice.nothing_new)

    @property
    def message(self) -> str:
        """The answer in one line."""
        if self.obstacle:
            return f"cannot run: {self.obstacle.removeprefix(f'{self.table}: ')}"
        parts = [f"reads what {' and '.join(self.after)} will bring"] if self.after else []
        if self.advice and not (self.after and self.advice.nothing_new):
            parts.append(f"nothing to do: {self.advice.message}" if self.advice.nothing_new else self.advice.message)
        return "; ".join(parts)


def answers_for(selection: Selection, settings: Settings, *, reprocess: bool) -> list[Answer]:
    """What a run would do, interval by interval in build order."""
    planner, answers = Planner(selection.catalog, settings), list[Answer]()
    for interval in selection.intervals:
        for spec in selection.specs:
            changed = {answer.table for answer in answers if answer.would_commit}
            after = tuple(table for table in spec.source_tables if table in changed)
            answers.append(_answer(planner, spec, interval, after, reprocess=reprocess))
    return answers


def _answer(
    planner: Planner, spec: StatedSpec, interval: Interval, after: tuple[str, ...], *, reprocess: bool
) -> Answer:
    try:
        advice = planner.advise(spec, interval, reprocess=reprocess)
    except NotReadyError as error:
        if after:
            return Answer(spec.table, interval, None, after)
        return Answer(spec.table, interval, None, obstacle=str(error), exit_code=error.exit_code)
    except MillraceError as error:
        return Answer(spec.table, interval, None, obstacle=str(error), exit_code=error.exit_code)
    return Answer(spec.table, interval, advice, after)
