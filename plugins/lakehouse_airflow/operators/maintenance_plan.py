"""Measure every table, and say what maintenance has to do: one mapped task an action."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, RetryPolicy, conf

from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.retries import DEFAULT_POLICY, RETRIES, RETRY_DELAY
from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.job.args import Job
from millrace.contracts.job.interval_args import MOST_BYTES
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.errors import MillraceError, NotReadyError, StorageError

if TYPE_CHECKING:
    from airflow.sdk import Context


class MaintenancePlanOperator(BaseOperator):
    """Measure the storage of every table, keep the figures for its page, and plan what is to be done. No Spark.

    :param most_bytes: the most bytes that the actions of one run rewrite, but one action at least. What is over is left
        to the next run; the tables come first whose turn was the longest ago.
    """

    ui_color = "#d5d8e8"

    def __init__(
        self,
        *,
        most_bytes: int = MOST_BYTES,
        retries: int | None = RETRIES,
        retry_delay: timedelta | float = RETRY_DELAY,
        retry_policy: RetryPolicy | None = DEFAULT_POLICY,
        **kwargs: Any,
    ) -> None:
        super().__init__(retries=retries, retry_delay=retry_delay, retry_policy=retry_policy, **kwargs)
        self.most_bytes = most_bytes

    def execute(self, context: Context) -> list[dict[str, str | int]]:
        """Return the arguments of a `TableMaintenanceOperator` for each action.

        A table that cannot be measured, or whose readers hold VACUUM back, does not stop the others: its own task then
        fails with the same error.

        Raises:
            NotReadyError, StorageError: the store does not answer, or refuses the request.
        """
        # Imported here: parsing a DAG file must not load the Delta reader.
        from millrace.catalog import load_catalog
        from millrace.control.maintenance.health_days import keep_health
        from millrace.control.maintenance.holding import keep_log
        from millrace.control.maintenance.plan import actions_of_run, planned_table
        from millrace.control.ops_tables import OpsTables
        from millrace.control.repair.dropped import delete_expired
        from millrace.control.storage.read_cache import cached_reads

        settings, now = prepare_process(), datetime.now(UTC)
        catalog, ops = load_catalog(settings.tables), OpsTables(settings.paths)
        tables, failing = [], list[dict[str, str | int]]()
        for spec in map(catalog.spec, catalog.graph.with_readers_next(catalog.specs)):
            try:
                with cached_reads():
                    table = planned_table(spec, catalog, ops, now)
                if table:
                    keep_log(table.health, ops, context["run_id"])
            except (NotReadyError, StorageError):
                raise
            except Exception as error:
                self.log.error("%s: not measured: %s", spec.table, error, exc_info=not isinstance(error, MillraceError))
                failing.append({"table": spec.table, "job": Job.TABLE_OPTIMIZE.value, "step": "not measured"})
                continue
            if table is None:
                continue
            keep_health(spec, catalog, ops, now, table.health)
            self.log.info("%s: %s: %s", spec.table, table.storage, table.reason)
            for action in table.actions:
                size = "" if action.size is None else f", {in_bytes(action.size)}"
                asks = "; a person has to allow it: trigger table_vacuum" if action.needs_approval else ""
                why = f"{action.reason}; if left, {action.if_left}{asks}"
                self.log.info("%s: %s%s: %s", spec.table, action.step, size, why)
            if table.health.in_danger or table.health.has_lost_hold:
                failing.append({"table": spec.table, "job": Job.TABLE_VACUUM.value, "step": "vacuum is held back"})
            tables.append(table)
        if not context["params"].get("vacuum_dry_run", True):
            for line in delete_expired(ops, context["run_id"], now):
                self.log.info("%s", line)
        most = conf.getint("core", "max_map_length")
        failing = failing[: most // 2]
        chosen = actions_of_run(
            tables,
            deletes=not context["params"].get("vacuum_dry_run", True),
            most_bytes=self.most_bytes,
            most_actions=most - len(failing),
        )
        total = sum(len(table.actions) for table in tables)
        self.log.info("%s, of which this run does %d", counted(total, "action"), len(chosen))
        samples = {spec.table: spec.values_to_verify for spec in catalog.specs.values() if isinstance(spec, GoldSpec)}
        return failing + [
            {
                "table": action.table,
                "job": action.step.job.value,
                "step": action.step.value,
                "sample": samples.get(action.table, 0),
            }
            for action in chosen
        ]
