"""Build tables in a separate folder, by the same jobs that write any table (ADR 26).

The keys of the silver table in use that its rebuilt table lacks are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace.contracts.counted import counted
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import WRITER_OF_LAYER, Job
from millrace.contracts.job.report import CheckResult, JobReport
from millrace.contracts.restricted import NOTHING_RESTRICTED, RestrictedColumns
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec
from millrace.control.changes.staging import StagedDeletes, StagedPaths, copy_ledger, staged_paths
from millrace.control.gates.overrides import let_pass, refusal_to_override
from millrace.control.gates.result import GateResult, Override
from millrace.control.landing.landing import landing_of
from millrace.control.ledger.deletes import are_too_many
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.rebuilds import Rebuild
from millrace.control.ledger.resolution import table_id
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.source_ranges import newest_interval, pin_sources
from millrace.errors import BadInputError, DeletesRefusedError, GateFailedError, first_line
from millrace.overview.observations import failure_without_values
from millrace.paths import LakehousePaths
from millrace_spark.delta_io.reads import read_version
from millrace_spark.quality.verdicts.verdict import describe_failure
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import RunJob
from millrace_spark.transforms.silver.ties import key_in_words
from millrace_spark.transforms.silver.timeline import END_AT


@dataclass(frozen=True)
class StagedContext(JobContext):
    """The context of a job within a rebuild.

    Attributes:
        staged: the paths of the rebuild.
    """

    staged: StagedPaths | None = None

    @cached_property
    def paths(self) -> LakehousePaths:
        """The paths of the rebuild."""
        return self.staged or super().paths

    def allows_deletes(self, interval_start: datetime | None) -> bool:
        """Whether the request allows deletes by absence; for all intervals, since the rebuild reads all of them."""
        return bool(self.args.allow_deletes)


@dataclass(frozen=True)
class StagedBuild:
    """One table of a rebuild, in a separate folder; its sources are read in place.

    Attributes:
        context: the context of the rebuild job.
        rebuild: the rebuild.
        table: the table.
        writers: the job of each layer.
    """

    context: JobContext
    rebuild: Rebuild
    table: str
    writers: Mapping[Job, RunJob]

    @cached_property
    def paths(self) -> StagedPaths:
        """The paths of the rebuild."""
        return staged_paths(self.context.paths, self.rebuild.id, [self.table])

    @cached_property
    def ops(self) -> OpsTables:
        """The ledger of the rebuild."""
        return OpsTables(self.paths, deletes=StagedDeletes(self.paths, self.context.ops.deletes))

    def build(self) -> None:
        """Load everything that the sources hold now.

        Raises:
            GateFailedError: the gate refuses the rebuilt table.
            DeletesRefusedError: more keys would be deleted by absence than the spec permits, and nobody has allowed it.
        """
        table, spec = self.table, self.context.catalog.spec(self.table)
        compared = {table for rule in spec.expectations for table in rule.other_tables}
        copy_ledger(self.context.paths, self.paths, {*spec.source_tables} | compared)
        reports = [self._run(spec, interval) for interval in self._intervals(spec)]
        refused = next((report for report in reports[-1:] if any(check.refuses for check in report.checks)), None)
        if refused or self.ops.gates.certified(table) is None:
            again, cause = f"lakehouse rebuild {self.rebuild.table}", _failed(refused.checks) if refused else "no batch"
            raise GateFailedError(
                f"{table}: the rebuilt table did not pass its gate: {cause}",
                f"Readers keep the table in use. Correct the data or the rule, then: {again}",
                f"If the new rows may be read as they are: {again} --allow-refused --why ...; in Airflow, the form "
                "Table rebuild with Allow refused.",
            )

    @cached_property
    def refusal(self) -> GateResult | None:
        """The refusal because of which an earlier try did not switch the table, also one that this run let pass."""
        if not is_table(self.paths.table(self.table)) or self.is_switched:
            return None
        newest = next(self.ops.gates.newest_results(self.table), None)
        if newest is None:
            return None
        result, decision = newest.result, newest.result.override
        is_of_run = decision is not None and decision.run_id == self.context.args.run_id
        return None if result.passed and not is_of_run else result

    @property
    def refusal_text(self) -> str:
        """The refusal for the question whether the new table may pass: without values of rows."""
        if self.refusal is None:
            return ""
        version, failed = self.refusal.version, "; ".join(map(failure_without_values, _refusing(self.refusal.checks)))
        return f"{self.table}: its gate has refused version {version} of the new table: {failed}"

    def let_pass(self, by: str, why: str) -> None:
        """Let the refused version of the new table pass; the gate judges what the build loads afterwards anew.

        Raises:
            OverrideError: there is no reason, or the rules have changed since.
        """
        if self.refusal is not None and not self.refusal.passed:
            gates, spec = self.ops.gates, self.context.catalog.spec(self.table)
            refusal = refusal_to_override(spec, self.refusal.version, self.paths, gates)
            run_id, at = self.context.args.run_id, self.context.now()
            let_pass(refusal, Override(by=by, reason=why, run_id=run_id, at=at), gates)

    def require_keys(self) -> None:
        """Require that the rebuilt table lacks no more keys than the spec permits without a person's approval.

        The batches do not check this: a rebuild reads all snapshots of a source in one batch, which deletes no keys.

        Raises:
            DeletesRefusedError: it lacks more keys, and nobody has allowed it.
        """
        spec, live = self.context.catalog.spec(self.table), self.context.paths.table(self.table)
        if not isinstance(spec, SilverSpec) or self.context.args.allow_deletes:
            return
        certified = self.context.ops.gates.certified(self.table)
        with self.context.open_session({}) as session:
            lost = lost_keys(
                read_version(session, live, latest_version(live) if certified is None else certified),
                read_version(session, self.paths.table(self.table), self.ops.gates.certified(self.table) or 0),
                spec.keys,
                self.context.restricted(self.table),
            )
        if are_too_many(lost.keys, lost.of_keys, spec.max_deleted_percent):
            raise DeletesRefusedError(
                f"{self.table}: {lost}: more than max_deleted_percent ({spec.max_deleted_percent})",
                self._way_out,
            )

    @property
    def _way_out(self) -> str:
        return (
            "Readers keep the table in use. To delete the keys anyway: lakehouse rebuild "
            f"{self.rebuild.table} --allow-deletes"
        )

    def lost_files(self) -> list[str]:
        """Return the landing files that the table in use has loaded and the rebuilt table has not."""
        in_use, built = (_contents(ops, self.table).keys() for ops in (self.context.ops, self.ops))
        return sorted(in_use - built)

    @property
    def id(self) -> str:
        """The id of the rebuilt table, which the table in use has after the switch."""
        return table_id(self.paths.table(self.table))

    @property
    def is_switched(self) -> bool:
        """Whether the table in use is the rebuilt table."""
        is_built = is_table(self.paths.table(self.table))
        return is_built and table_id(self.context.paths.table(self.table)) == self.id

    def _run(self, spec: AnySpec, interval: Interval) -> JobReport:
        of_table = {"table": spec.table, "interval_start": interval.start, "interval_end": interval.end}
        args = self.context.args.model_copy(update={**of_table, "dry_run": False, "request": None})
        is_to_stop, settings = self.context.is_to_stop, self.context.settings
        context = StagedContext(args, is_to_stop, self.ops, settings=settings, staged=self.paths)
        try:
            return self.writers[WRITER_OF_LAYER[spec.layer]](context)
        except DeletesRefusedError as error:
            raise DeletesRefusedError(first_line(error), self._way_out) from error

    def _intervals(self, spec: AnySpec) -> Iterator[Interval]:
        """Yield the intervals whose files bronze can load again; for silver and gold the newest of their sources."""
        if not isinstance(spec, BronzeSpec):
            paths, ops = self.context.paths, self.context.ops
            sources = pin_sources(spec, paths, ops.gates, None)
            yield newest_interval(sources.ranges.items(), paths, ops.ledger) or self.context.args.interval
            return
        missing = set(missing_landing_files(self.context, spec))
        ledger, of_table = self.context.ops.ledger, table_id(self.context.paths.table(spec.table))
        loaded = {
            (row["interval_start"], row["interval_end"])
            for row in ledger.file_events(spec.table, of_table)
            if row["event"] == FileEvent.LOADED and row["path"] not in missing
        }
        for start, end in sorted(loaded):
            yield Interval(start=start, end=end)


def _failed(checks: Iterable[CheckResult]) -> str:
    return "; ".join(map(describe_failure, _refusing(checks)))


def _refusing(checks: Iterable[CheckResult]) -> Iterator[CheckResult]:
    return (check for check in checks if check.refuses or check.overridden)


def missing_landing_files(context: JobContext, spec: AnySpec) -> list[str]:
    """Return the landing files that a bronze table has loaded and that do not exist any more.

    A file that was delivered again, with rows in addition to the earlier ones, has only its last content.

    Raises:
        BadInputError: the table reads Kafka topics, which do not keep their messages.
    """
    if not isinstance(spec, BronzeSpec):
        return []
    if spec.reads_kafka:
        msg = f"{spec.table}: cannot be rebuilt, since Kafka topics do not keep their messages"
        raise BadInputError(msg, "Rebuild the tables that read it instead.")
    place, contents = landing_of(spec.landing_source.landing, context.args.landing), _contents(context.ops, spec.table)
    gone = [path for path in contents if place.file_at(path) is None]
    earlier = [f"{path} (an earlier content)" for path, several in contents.items() for _ in range(len(several) - 1)]
    return sorted([*gone, *earlier])


def _contents(ops: OpsTables, table: str) -> dict[str, set[str]]:
    """Return path -> checksums of the contents whose rows a bronze table has."""
    if not is_table(ops.paths.table(table)):
        return {}
    of_table, contents = table_id(ops.paths.table(table)), dict[str, set[str]]()
    batches = ops.ledger.batches(table, of_table, -1)
    replacing = {batch.token for batch in batches if batch.intent.sources.replaces_files}
    undone = ops.ledger.undone(table, of_table)
    for row in ops.ledger.file_events(table, of_table):
        if row["event"] == FileEvent.LOADED and row["token"] not in undone:
            earlier = set() if row["token"] in replacing else contents.get(row["path"], set())
            contents[row["path"]] = {*earlier, row["checksum"]}
    return contents


_SAMPLES = 3


@dataclass(frozen=True)
class LostKeys:
    """The keys of the table in use that the rebuilt table lacks.

    Attributes:
        keys: the number of keys that are missing.
        of_keys: the number of keys of the table in use.
        samples: some of the missing keys, as `key=value`.
    """

    keys: int
    of_keys: int
    samples: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the numbers as a sentence.

        >>> str(LostKeys(3, 4, ("id=1",)))
        '3 of 4 keys (75 %) are missing in the rebuilt table, such as id=1'
        """
        samples = f", such as {', '.join(self.samples)}" if self.samples else ""
        percent = 100 * self.keys / max(self.of_keys, 1)
        number = f"{self.keys:,} of {counted(self.of_keys, 'key')} ({percent:.0f} %)"
        return f"{number} {'is' if self.keys == 1 else 'are'} missing in the rebuilt table{samples}"


def lost_keys(
    in_use: DataFrame, built: DataFrame, keys: Sequence[str], restricted: RestrictedColumns = NOTHING_RESTRICTED
) -> LostKeys:
    """Return the keys of the table in use that the rebuilt table lacks.

    In tables with history, a key is also lost if only the rebuilt table has closed it. Values are compared in the types
    of the rebuilt table. Key columns that the table in use does not have are ignored; if it has none of the key
    columns, each of its rows counts as a lost key.

    Args:
        in_use: the rows of the table in use.
        built: the rows of the rebuilt table.
        keys: the key columns of the rebuilt table.
        restricted: the columns whose values are not shown.
    """
    shared = [key for key in keys if key in in_use.columns]
    if not shared:
        rows = in_use.count()
        return LostKeys(rows, rows)
    has_history = END_AT in in_use.columns and END_AT in built.columns
    before = _by_key(in_use, shared, has_history, alive="_was_alive")
    after = _by_key(built, shared, has_history, alive="_is_alive")
    types, new_names = dict(built.dtypes), {key: f"_built_{place}" for place, key in enumerate(shared)}
    is_same_key = [F.col(key).try_cast(types[key]) == F.col(new) for key, new in new_names.items()]
    joined = before.join(after.withColumnsRenamed(new_names), is_same_key, "left")
    is_lost = F.col("_is_alive").isNull() | (F.col("_was_alive") & ~F.col("_is_alive"))
    ((of_keys, count),) = joined.agg(F.count(F.lit(1)), F.count_if(is_lost)).collect()
    if not count:
        return LostKeys(0, of_keys)
    samples = joined.where(is_lost).select(key_in_words(shared, restricted).alias("key")).limit(_SAMPLES).collect()
    return LostKeys(count, of_keys, tuple(row["key"] for row in samples))


def _by_key(rows: DataFrame, keys: Sequence[str], has_history: bool, *, alive: str) -> DataFrame:
    """Return one row for each key; the column `alive` is false for a deleted key, which only history keeps."""
    is_alive = F.col(END_AT).isNull() if END_AT in rows.columns else F.lit(True)
    relevant = rows if has_history else rows.where(is_alive)
    return relevant.groupBy(*keys).agg(F.max(is_alive).alias(alive))
