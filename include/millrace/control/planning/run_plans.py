"""The plan of a run of several tables and intervals; a missing source is part of the plan, not an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from millrace.contracts.interval import Interval
from millrace.contracts.job.blocked import blocked_message
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.matching import CHANGED_WAY_OUT
from millrace.control.log.batch import Stream
from millrace.control.log.streams import stream_of
from millrace.control.planning.advice import Advice
from millrace.control.planning.planner import Planner, Standing
from millrace.errors import ExitCode, MillraceError, NotDeliveredError, NotReadyError
from millrace.specs.invalid_spec import InvalidSpec, MaybeInvalidSpec


class PlanKind(StrEnum):
    """What happens to one table in one interval."""

    WRITES = "writes"
    UNKNOWN = "not known"
    NOTHING = "nothing to do"
    SKIPPED = "skipped"
    REFUSED = "refused"
    NOT_READY = "not ready"
    FAILS = "fails"


@dataclass(frozen=True)
class TablePlan:
    """What the run of an interval would do to one table.

    Attributes:
        table: the table.
        interval: the interval.
        advice: the planner's advice for the current state; None if the table's log cannot be read.
        after: its sources that the same run would change first, so that it reads more than the advice states.
        obstacle: why the run would fail: the cause first, the ways out on further lines.
        waits_for: its sources that would fail in the same run, so that it is not run.
        skipped: why the run skips the table, as requested.
        exit_code: the exit code of the table's run.
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
    def has_new_data(self) -> bool:
        """Whether the run would bring readers something new, as far as can be known before it."""
        return bool(self.after) or (self.advice is not None and self.advice.has_new_data)

    @property
    def is_partial(self) -> bool:
        """Whether its landing folder has more files than were compared."""
        return self.advice is not None and self.advice.is_partial

    @property
    def is_idle(self) -> bool:
        """Whether the run would have nothing to do and succeed, or cannot begin, because of a source or the spec."""
        if self.waits_for or self.exit_code is ExitCode.BAD_SPEC:
            return True
        done = bool(self.skipped) or (self.advice is not None and self.advice.nothing_new)
        return done and not self.after and self.exit_code is ExitCode.OK

    @property
    def kind(self) -> PlanKind:
        """The plan in one word; a run that writes and then fails counts as failed."""
        if self.skipped:
            return PlanKind.SKIPPED
        if self.exit_code is ExitCode.OK:
            return PlanKind.WRITES if self.has_new_data else PlanKind.UNKNOWN if self.is_partial else PlanKind.NOTHING
        refused = dict.fromkeys((ExitCode.GATE_FAILED, ExitCode.DELETES_REFUSED), PlanKind.REFUSED)
        return {ExitCode.NOT_READY: PlanKind.NOT_READY, **refused}.get(self.exit_code, PlanKind.FAILS)

    @property
    def message(self) -> str:
        """The plan in one line."""
        reason = (self.skipped or self.obstacle).split("\n", 1)[0].removeprefix(self.table).removeprefix(":").strip()
        if self.skipped:
            return f"skipped: {reason}"
        if reason and not self.has_new_data:
            return reason
        parts = [f"reads what {' and '.join(self.after)} will bring"] if self.after else []
        if self.advice and not (self.after and self.advice.nothing_new):
            message = self.advice.message
            if self.after and message.startswith("nothing new in "):
                message = message.partition("; ")[2]  # there is nothing new yet
            parts.append(f"nothing to do: {message}" if self.advice.nothing_new else message)
        return "; ".join(filter(None, [*parts, reason]))


class RunPlanner:
    """Plan one run; the plans of later intervals take the work of earlier intervals as done.

    Args:
        planner: the planner of the lakehouse.
        reprocess: whether the intervals' rows are read again.
        skip_missing: whether a table is skipped if its landing folder is missing.
    """

    def __init__(self, planner: Planner, *, reprocess: bool = False, skip_missing: bool = False) -> None:
        self._planner = planner
        self._reprocess = reprocess
        self._skip_missing = skip_missing
        self._done: set[str] = set()
        self._files: set[str] = set()
        self._standings: dict[Stream, Standing | None] = {}
        self._of_topics: dict[str, Advice | MillraceError] = {}

    def interval(self, specs: Iterable[MaybeInvalidSpec], interval: Interval) -> list[TablePlan]:
        """Return the plans of one interval, as if the run continued after an interval that fails.

        Args:
            specs: the tables, in build order.
            interval: an interval after those that were planned before.
        """
        by_table: dict[str, TablePlan] = {}
        for spec in specs:
            sources = [by_table[table] for table in spec.upstream_tables if table in by_table]
            by_table[spec.table] = self._plan(spec, interval, sources)
        plans = list(by_table.values())
        self._done |= {plan.table for plan in plans if plan.has_new_data}
        self._files |= {path for plan in plans if plan.advice for path in plan.advice.files}
        return plans

    def _plan(self, spec: MaybeInvalidSpec, interval: Interval, sources: list[TablePlan]) -> TablePlan:
        nothing = TablePlan(spec.table, interval, self._current_state(spec, interval))
        awaited = () if isinstance(spec, InvalidSpec) else sources
        if failed := {source.table: source.obstacle for source in awaited if source.exit_code is not ExitCode.OK}:
            obstacle = blocked_message(spec.table, failed)
            return replace(nothing, obstacle=obstacle, waits_for=tuple(failed), exit_code=ExitCode.NOT_READY)
        after = tuple(source.table for source in sources if source.has_new_data)
        try:
            advice = self._advice(spec, interval)
        except NotReadyError as error:
            # An earlier interval of the same run builds the source, and this interval reads it again.
            if after or (self._reprocess and (after := tuple(self._done.intersection(spec.upstream_tables)))):
                return replace(nothing, after=after)
            is_missing = any(source.skipped for source in sources) or isinstance(error, NotDeliveredError)
            if is_missing and self._skip_missing:
                return replace(nothing, skipped=str(error))
            return replace(nothing, obstacle=str(error), exit_code=error.exit_code)
        except MillraceError as error:
            return replace(nothing, obstacle=str(error), exit_code=error.exit_code)
        if advice.misfit:
            return replace(nothing, obstacle=advice.misfit, exit_code=ExitCode.BAD_INPUT)
        obstacle, code = _ending(advice, after)
        return TablePlan(spec.table, interval, advice, after, obstacle, exit_code=code)

    def _advice(self, spec: MaybeInvalidSpec, interval: Interval) -> Advice:
        """Return the planner's advice, without the work of earlier intervals of the run."""
        is_done = spec.table in self._done
        if is_done and not isinstance(spec, BronzeSpec) and not self._reprocess:
            state, message = self._current_state(spec, interval), f"nothing new in {', '.join(spec.source_tables)}"
            if state:
                return replace(state, nothing_new=True, message=message, refused="")
        if isinstance(spec, BronzeSpec) and spec.reads_kafka:
            advice = self._advice_of_topics(spec, interval)
        else:
            advice = self._advice_now(spec, interval)
        if not is_done or not isinstance(spec, BronzeSpec):
            return advice
        new = tuple(path for path in advice.files if path not in self._files)
        is_idle = not (new or advice.young_files or advice.failing_files or advice.is_partial)
        has_new_data = bool(new) and advice.has_new_data
        message = "an earlier interval of the run does it" if is_idle and not advice.nothing_new else advice.message
        size = advice.bytes if new else 0
        done = replace(advice, nothing_new=is_idle, has_new_data=has_new_data, message=message, refused="")
        return replace(done, files=new, bytes=size)

    def _advice_of_topics(self, spec: BronzeSpec, interval: Interval) -> Advice:
        """Return the advice for a table that reads Kafka: the same for each interval, so that brokers are asked once.

        Brokers that do not answer would else be waited for once per interval.
        """
        if spec.table not in self._of_topics:
            try:
                self._of_topics[spec.table] = self._advice_now(spec, interval)
            except MillraceError as error:
                self._of_topics[spec.table] = error
        advice = self._of_topics[spec.table]
        if isinstance(advice, MillraceError):
            raise advice
        return advice

    def _current_state(self, spec: MaybeInvalidSpec, interval: Interval) -> Advice | None:
        """Return the state of the interval's stream, as the advice of a run that does nothing."""
        standing = self._standing(spec, interval)
        return replace(standing.advice, has_new_data=False) if standing else None

    def _advice_now(self, spec: MaybeInvalidSpec, interval: Interval) -> Advice:
        return self._planner.advise(spec, interval, reprocess=self._reprocess, standing=self._standing(spec, interval))

    def _standing(self, spec: MaybeInvalidSpec, interval: Interval) -> Standing | None:
        """Return the state of the interval's stream, read once; None if it cannot be read."""
        stream = stream_of(spec, interval.start)
        if stream not in self._standings:
            try:
                self._standings[stream] = self._planner.standing(spec, interval)
            except MillraceError:
                self._standings[stream] = None  # the advice for each interval reports the same error
        return self._standings[stream]


def _ending(advice: Advice, after: tuple[str, ...]) -> tuple[str, ExitCode]:
    """Return why the run of a table would fail (empty if it would not), and its exit code."""
    if advice.failing_files:
        cause = f"{advice.table}: files cannot be loaded: {'; '.join(advice.failing_files)}"
        return f"{cause}\n{CHANGED_WAY_OUT}" if advice.has_changed_files else cause, ExitCode.BAD_INPUT
    if advice.young_files:
        return f"{advice.table}: files are younger than min_age and wait", ExitCode.NOT_READY
    if advice.approval_needed and not after:
        return advice.approval_needed, ExitCode.DELETES_REFUSED
    # The gate checks new rows together with those of the refused version.
    is_refused = advice.refused and not (advice.has_new_data or after)
    return (advice.refused, ExitCode.GATE_FAILED) if is_refused else ("", ExitCode.OK)
