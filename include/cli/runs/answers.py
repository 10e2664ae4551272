"""What a run of several tables and intervals would do; a source that has not come is an answer, not an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from include.cli.runs.reports import worst
from include.cli.selection import Selection
from include.contracts.interval import Interval
from include.contracts.job.blocked import blocked_message
from include.contracts.job.interval_args import CONTINUE_AFTER
from include.contracts.spec.table_spec import BronzeSpec
from include.control.planning.advice import Advice
from include.control.planning.planner import Planner
from include.errors import ExitCode, MillraceError, NotDeliveredError, NotReadyError
from include.settings import Settings
from include.specs.invalid_spec import InvalidSpec, MaybeInvalidSpec


class Kind(StrEnum):
    """What becomes of one table in one interval."""

    WRITES = "writes"
    NOTHING = "nothing to do"
    SKIPPED = "skipped"
    REFUSED = "stands refused"
    NOT_READY = "not ready"
    FAILS = "fails"


@dataclass(frozen=True)
class Answer:
    """What the run of an interval would do to one table.

    Attributes:
        table: the table.
        interval: the interval.
        advice: the planner's advice as things stand now; None where a table's log cannot be read.
        after: its sources that the same run would change first, so that it reads more than the advice says.
        obstacle: why a run would not end well: cause first, the way out on lines of its own.
        waits_for: its sources in the same run that would not end well, so that it is not run at all.
        skipped: why the run leaves the table out, as it was asked to.
        exit_code: the exit code that the table's run would end with.
    """

    table: str
    interval: Interval
    advice: Advice | None
    after: tuple[str, ...] = ()
    obstacle: str = ""
    waits_for: tuple[str, ...] = ()
    skipped: str = ""
    exit_code: ExitCode = ExitCode.OK

    @property
    def brings(self) -> bool:
        """Whether readers would find something new afterwards, as far as can be known before the run."""
        return bool(self.after) or (self.advice is not None and self.advice.brings)

    @property
    def is_idle(self) -> bool:
        """Whether the run would find nothing at all to do, and end well, or cannot even begin, for want of a spec."""
        if self.waits_for or self.exit_code is ExitCode.BAD_SPEC:
            return True
        done = bool(self.skipped) or (self.advice is not None and self.advice.nothing_new)
        return done and not self.after and self.exit_code is ExitCode.OK

    @property
    def kind(self) -> Kind:
        """The answer in a word; one that writes and then fails has failed."""
        if self.skipped:
            return Kind.SKIPPED
        if self.exit_code is ExitCode.OK:
            return Kind.WRITES if self.brings else Kind.NOTHING
        refused = dict.fromkeys((ExitCode.GATE_FAILED, ExitCode.DELETES_REFUSED), Kind.REFUSED)
        return {ExitCode.NOT_READY: Kind.NOT_READY, **refused}.get(self.exit_code, Kind.FAILS)

    @property
    def message(self) -> str:
        """The answer in one line."""
        said = (self.skipped or self.obstacle).split("\n", 1)[0].removeprefix(self.table).removeprefix(":").strip()
        if self.skipped:
            return f"skipped: {said}"
        if said and not self.brings:
            return said
        parts = [f"reads what {' and '.join(self.after)} will bring"] if self.after else []
        if self.advice and not (self.after and self.advice.nothing_new):
            parts.append(f"nothing to do: {self.advice.message}" if self.advice.nothing_new else self.advice.message)
        return "; ".join(filter(None, [*parts, said]))


def answers_for(
    selection: Selection, settings: Settings, *, reprocess: bool, skip_missing: bool = False
) -> list[Answer]:
    """What a run would do, interval by interval in build order, were it to go on after an interval that fails.

    Args:
        selection: the tables and intervals.
        settings: where everything lies.
        reprocess: whether the intervals' rows are read again.
        skip_missing: whether a table is left out where its landing folder is missing.
    """
    asked = _Asked(Planner(selection.catalog, settings), reprocess, skip_missing)
    return [answer for interval in selection.intervals for answer in asked.interval(selection.specs, interval)]


def reached(answers: Iterable[Answer]) -> tuple[list[Interval], ExitCode]:
    """The intervals that a run gets to, up to the first that does not end well, and the run's exit code.

    A wrong spec does not keep the other tables from their intervals.
    """
    of_interval: dict[Interval, list[Answer]] = {}
    for answer in answers:
        of_interval.setdefault(answer.interval, []).append(answer)
    passed, code = list[Interval](), ExitCode.OK
    for interval, found in of_interval.items():
        passed.append(interval)
        code = worst([code, *(answer.exit_code for answer in found)])
        if not all(answer.exit_code in CONTINUE_AFTER or answer.waits_for for answer in found):
            break
    return passed, code


class _Asked:
    """The answers of one run; what its earlier intervals would do counts as done for the later ones."""

    def __init__(self, planner: Planner, reprocess: bool, skip_missing: bool) -> None:
        self._planner = planner
        self._reprocess = reprocess
        self._skip_missing = skip_missing
        self._done: set[str] = set()
        self._files: set[str] = set()

    def interval(self, specs: Iterable[MaybeInvalidSpec], interval: Interval) -> list[Answer]:
        """The answers of one interval, in build order."""
        known: dict[str, Answer] = {}
        for spec in specs:
            sources = [known[table] for table in spec.source_tables if table in known]
            known[spec.table] = self._answer(spec, interval, sources)
        answers = list(known.values())
        self._done |= {answer.table for answer in answers if answer.brings}
        self._files |= {path for answer in answers if answer.advice for path in answer.advice.files}
        return answers

    def _answer(self, spec: MaybeInvalidSpec, interval: Interval, sources: list[Answer]) -> Answer:
        nothing = Answer(spec.table, interval, self._standing(spec))
        awaited = () if isinstance(spec, InvalidSpec) else sources
        if failed := {one.table: one.obstacle for one in awaited if one.exit_code is not ExitCode.OK}:
            why = blocked_message(spec.table, failed)
            return replace(nothing, obstacle=why, waits_for=tuple(failed), exit_code=ExitCode.NOT_READY)
        after = tuple(one.table for one in sources if one.brings)
        try:
            advice = self._advice(spec, interval)
        except NotReadyError as error:
            # What an earlier interval of the run builds is there by then, and is read again.
            if after or (self._reprocess and (after := tuple(self._done.intersection(spec.source_tables)))):
                return replace(nothing, after=after)
            was_skipped = any(one.skipped for one in sources) or isinstance(error, NotDeliveredError)
            if was_skipped and self._skip_missing:
                return replace(nothing, skipped=str(error))
            return replace(nothing, obstacle=str(error), exit_code=error.exit_code)
        except MillraceError as error:
            return replace(nothing, obstacle=str(error), exit_code=error.exit_code)
        if advice.misfit:
            return replace(nothing, obstacle=advice.misfit, exit_code=ExitCode.BAD_INPUT)
        obstacle, code = _ending(advice, after)
        return Answer(spec.table, interval, advice, after, obstacle, exit_code=code)

    def _advice(self, spec: MaybeInvalidSpec, interval: Interval) -> Advice:
        """The planner's advice, less what an earlier interval of the run does.

        Raises:
            MillraceError: as `Planner.advise`.
        """
        is_done = spec.table in self._done
        if is_done and not isinstance(spec, BronzeSpec) and not self._reprocess:
            message = f"nothing new in {', '.join(spec.source_tables)}"
            return replace(self._planner.standing(spec), nothing_new=True, message=message, brings=False, refused="")
        advice = self._planner.advise(spec, interval, reprocess=self._reprocess)
        if not is_done or not isinstance(spec, BronzeSpec):
            return advice
        new = tuple(path for path in advice.files if path not in self._files)
        brings = bool(new) and advice.brings
        waits = bool(new or advice.young or advice.failing)
        return replace(advice, files=new, nothing_new=not waits, brings=brings, refused="")

    def _standing(self, spec: MaybeInvalidSpec) -> Advice | None:
        """How the table stands, where its run would do nothing."""
        try:
            return replace(self._planner.standing(spec), brings=False)
        except MillraceError:
            return None  # said by the advice that is asked for


def _ending(advice: Advice, after: tuple[str, ...]) -> tuple[str, ExitCode]:
    """Why the run of a table would not end well, and its exit code."""
    if advice.failing:
        return f"{advice.table}: files cannot be loaded: {'; '.join(advice.failing)}", ExitCode.BAD_INPUT
    if advice.young:
        return f"{advice.table}: files are younger than min_age and wait", ExitCode.NOT_READY
    if advice.asks and not after:
        return advice.asks, ExitCode.DELETES_REFUSED
    # What comes is judged anew, and with it all that stands refused.
    stands = advice.refused and not (advice.brings or after)
    return (advice.refused, ExitCode.GATE_FAILED) if stands else ("", ExitCode.OK)
