"""The context of a running job. Spark starts only when the job first opens a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from millrace.catalog import Catalog, load_catalog
from millrace.contracts.job.args import JobArgs
from millrace.contracts.lake_path import S3Path
from millrace.contracts.restricted import RestrictedColumns
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.leases.leases import Leases
from millrace.control.leases.store import lakehouse_leases
from millrace.control.log.batch import Intent
from millrace.control.ops_tables import OpsTables
from millrace.control.storage.objects_on_s3 import require_conditional_puts
from millrace.control.storage.read_cache import uncached_reads
from millrace.control.storage.s3_access import spark_options
from millrace.errors import NotReadyError
from millrace.overview.lineage.restricted import Restrictions
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from millrace_spark.runtime.session import own_session


@dataclass(frozen=True)
class JobContext:
    """The arguments of a job, and the objects that follow from them.

    Attributes:
        args: the arguments.
        is_to_stop: returns true if the job should end after the current commit, even with work left.
        opened: the ledger's tables, where the driver has opened them for an earlier job.
        notes: remarks for the report, collected during the job.
        remarks: parts of its message, such as how much a refresh has read.
        details: figures for the report.
        settings: the settings of the environment, such as those of Kafka, which may contain secrets. `args` replaces
            its places.
        earlier_spec: the spec of the table by which to close a batch; None for the one in force.
    """

    args: JobArgs
    is_to_stop: Callable[[], bool] = lambda: False
    opened: OpsTables | None = None
    notes: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    earlier_spec: AnySpec | None = None

    @cached_property
    def catalog(self) -> Catalog:
        """All table specs."""
        return self._catalog.with_spec(self.earlier_spec) if self.earlier_spec else self._catalog

    def restricted(self, table: str) -> RestrictedColumns:
        """Return the restricted columns of a table, by the specs in force and by an earlier one of the job's table."""
        now, earlier = self._restrictions
        return now.of(table) | earlier.of(table)

    @cached_property
    def spec(self) -> AnySpec:
        """The spec of the job's table."""
        return self.catalog.spec(self.args.table)

    @cached_property
    def paths(self) -> LakehousePaths:
        """The paths of the lakehouse."""
        return LakehousePaths(self.args.root, views=self.settings.views)

    @cached_property
    def ops(self) -> OpsTables:
        """What is written down of the lakehouse."""
        return self.opened or OpsTables(self.paths, keep_commits=self.settings.keep_commits)

    @cached_property
    def leases(self) -> Leases:
        """The leases of this run; it waits for one as long as the spec of its table says."""
        return lakehouse_leases(self.paths, self.args.run_id, self.spec.conflicts.wait_for_lease)

    def as_planned(self, intent: Intent) -> JobContext:
        """Return the context with the spec that planned a batch: its rows are counted and refused as at its commit.

        Raises:
            NotReadyError: that spec was not recorded, or this Millrace refuses it.
        """
        if intent.spec_hash == self.spec.spec_hash or self.earlier_spec:
            return self
        spec = self.ops.specs.spec(intent.table, intent.table_id, intent.spec_hash)
        if spec is None:
            raise NotReadyError(
                f"{intent.table}: batch {intent.batch_seq} was committed by a spec of which there is no record",
                f"Its run {intent.run_id} died before it had counted the rows. Run the table with the spec of that run "
                "once; then go on with the new one.",
            )
        return replace(self, earlier_spec=spec, opened=self.ops)

    def allows_deletes(self, interval_start: datetime | None) -> bool:
        """Whether the job's request allows any number of deletes by absence in this interval."""
        return bool(self.args.allow_deletes) and interval_start in (None, self.args.interval_start)

    @property
    def hides_values(self) -> bool:
        """Whether the job's table, or one that it or a rule reads, has restricted columns."""
        of_rules = (table for rule in self.spec.expectations for table in rule.other_tables)
        return any(map(self.restricted, (self.spec.table, *self.spec.upstream_tables, *of_rules)))

    @property
    def restricted_received(self) -> RestrictedColumns:
        """The restricted columns of rows as the job's table receives them: its own in bronze, those of its sources."""
        now, earlier = self._restrictions
        return now.of_received(self.spec) | earlier.of_received(self.spec)

    @cached_property
    def _catalog(self) -> Catalog:
        return load_catalog(self.args.tables)

    @cached_property
    def _restrictions(self) -> tuple[Restrictions, Restrictions]:
        now = Restrictions(self._catalog.specs)
        return now, Restrictions(self.catalog.specs) if self.earlier_spec else now

    @contextmanager
    def open_session(self, conf: dict[str, str]) -> Iterator[SparkSession]:
        """Open a separate Spark session with `conf`, for one write; raise the errors of `reading_session`."""
        with uncached_reads(), self.reading_session(conf) as session:
            yield session

    @contextmanager
    def reading_session(self, conf: dict[str, str]) -> Iterator[SparkSession]:
        """Open a separate Spark session with `conf` that writes nothing; the first session starts Spark.

        Raises:
            StorageError: the store of the tables has no reliable conditional puts, or refuses access.
        """
        reached_by = {}
        if isinstance(self.paths.leases, S3Path):
            reached_by = spark_options()
            require_conditional_puts(self.paths.leases)
        with own_session({**reached_by, **conf}, logs_errors=not self.hides_values) as session:
            yield session

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)
