"""The metrics of a lakehouse, for `prometheus_client`; they follow from the facts that the web UI shows as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeAlias, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from millrace.clock import Clock, utc_now
from millrace.contracts.job.report import RowCounts
from millrace.control.ledger.states.contention import Contention
from millrace.control.ledger.states.measures import Measures
from millrace.control.ledger.states.recent_batches import BatchKind
from millrace.control.ledger.states.totals import Totals
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.maintenance.health import StorageState
from millrace.control.maintenance.health_days import HealthDay
from millrace.overview.attention import Trouble, attention_needed
from millrace.overview.lakehouse import FailedTasks, LakehouseReader, no_failed_tasks
from millrace.overview.tables.freshness import Freshness
from millrace.overview.tables.table_overview import SEVERITY, TableOverview

LEDGER_METRICS = {
    "millrace_ledger_bytes": "Size of the data files of a table of the ledger.",
    "millrace_ledger_files": "Data files of a table of the ledger.",
}
"""Name -> meaning of the metrics of each table of the ledger."""

_LABELS = ("layer", "domain", "table")


class LakehouseCollector(Collector):
    """Reads the tables and the ledger at each scrape; it holds no numbers itself, so that a restart loses none.

    Args:
        reader: reads them.
        failed: returns the tasks that have failed lately; only Airflow's database has them.
        clock: returns the time of the scrape.
    """

    def __init__(self, reader: LakehouseReader, failed: FailedTasks = no_failed_tasks, clock: Clock = utc_now) -> None:
        self._reader = reader
        self._failed = failed
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics.

        Raises:
            SpecError: there is no folder of specs.
            MillraceError: the storage cannot be read.
        """
        now = self._clock()
        tables = self._reader.read(now, self._failed)
        for metric in TABLE_METRICS:
            yield _family(metric, tables, now)
        sizes = self._reader.ledger_sizes()
        for (name, help_text), field in zip(LEDGER_METRICS.items(), ("size", "files"), strict=True):
            family = GaugeMetricFamily(name, help_text, labels=["ops_table"])
            for ops_table, size in sizes.items():
                family.add_metric([ops_table], getattr(size, field))
            yield family


def _family(metric: TableMetric, tables: Iterable[TableOverview], now: datetime) -> Metric:
    """Return a metric with its values for all tables."""
    family = metric.family(metric.name, metric.help, labels=[*_LABELS, *([metric.label] if metric.label else [])])
    for table in tables:
        labels = [table.spec.layer, table.spec.domain, table.table]
        for label, number in metric.values(table, now):
            if number is not None:
                family.add_metric([*labels, label] if metric.label else labels, _value(number))
    return family


def _value(number: Number) -> float:
    return number.timestamp() if isinstance(number, datetime) else float(number or 0)


Number: TypeAlias = float | int | datetime | None
"""A value of a metric: a time is exported in seconds since 1970, and None is left out."""

Family: TypeAlias = type[GaugeMetricFamily] | type[CounterMetricFamily]

_FATES = ("applied", "unchanged", "superseded", "quarantined", "dropped")
_CHANGES = ("inserted", "updated", "deleted")


@dataclass(frozen=True)
class TableMetric:
    """A metric that each table has.

    Attributes:
        family: a gauge for a state; a counter for a sum over the life of the table.
        name: its name, of a counter without `_total`.
        help: its meaning, in one line.
        values: returns the values of a table, each with the value of the label, which is empty without a label.
        label: a label beside layer, domain and table.
    """

    family: Family
    name: str
    help: str
    values: Callable[[TableOverview, datetime], Iterator[tuple[str, Number]]]
    label: str = ""


Part = TypeVar("Part")


def _metric(
    family: Family,
    name: str,
    help_text: str,
    part: Callable[[TableOverview], Part | None],
    value: Callable[[Part], Number],
) -> TableMetric:
    """Return a metric without a further label: a value of a part of what is known of a table, if it is known."""

    def values(table: TableOverview, _: datetime) -> Iterator[tuple[str, Number]]:
        known = part(table)
        yield "", None if known is None else value(known)

    return TableMetric(family, name, help_text, values)


def _rows_by_action(actions: Sequence[str]) -> Callable[[TableOverview, datetime], Iterator[tuple[str, Number]]]:
    def values(table: TableOverview, _: datetime) -> Iterator[tuple[str, Number]]:
        rows = table.totals.rows if table.totals else RowCounts()
        return ((action, getattr(rows, action)) for action in actions if table.totals)

    return values


def _conditions(table: TableOverview, _: datetime) -> Iterator[tuple[str, Number]]:
    return ((condition.value, int(condition is table.condition)) for condition in SEVERITY)


def _attention(table: TableOverview, now: datetime) -> Iterator[tuple[str, Number]]:
    items = Counter(item.kind for item in attention_needed([table], now))
    # Only the page of a table looks whether it fits its spec.
    return ((kind.value, items[kind]) for kind in Trouble if kind is not Trouble.MISFIT)


def _batches(table: TableOverview, _: datetime) -> Iterator[tuple[str, Number]]:
    done = table.totals.batches if table.totals else {}
    return ((kind.value, done.get(kind, 0)) for kind in BatchKind if table.totals)


def _lag_seconds(table: TableOverview, now: datetime) -> Iterator[tuple[str, Number]]:
    since = table.uncertified_since
    yield "", None if table.newest is None else (now - since).total_seconds() if since else 0


def _conflicts(table: TableOverview, _: datetime) -> Iterator[tuple[str, Number]]:
    return iter((table.contention.lost if table.contention else {}).items())


def _itself(table: TableOverview) -> TableOverview:
    return table


def _measures(table: TableOverview) -> Measures | None:
    return table.measures


def _freshness(table: TableOverview) -> Freshness | None:
    return table.freshness


def _waiting(table: TableOverview) -> WaitingRows | None:
    return table.waiting


def _health(table: TableOverview) -> HealthDay | None:
    return table.health.newest if table.health else None


def _storage_states(table: TableOverview, _: datetime) -> Iterator[tuple[str, Number]]:
    health = _health(table)
    return ((state.value, int(state is health.storage)) for state in StorageState if health)


def _totals(table: TableOverview) -> Totals | None:
    return table.totals


def _contention(table: TableOverview) -> Contention | None:
    return table.contention or (Contention(table_id=table.totals.table_id) if table.totals else None)


_gauge, _counter = partial(_metric, GaugeMetricFamily), partial(_metric, CounterMetricFamily)

TABLE_METRICS = (
    TableMetric(
        GaugeMetricFamily, "millrace_table_condition", "1 for the condition of the table, 0 for all others.",
        _conditions, "condition",
    ),
    TableMetric(
        GaugeMetricFamily, "millrace_table_attention", "Number of causes that need a person, by kind.",
        _attention, "kind",
    ),
    _gauge(
        "millrace_table_newest_version", "Newest version that a batch has written.", _itself,
        lambda table: table.newest,
    ),
    _gauge("millrace_table_certified_version", "Version that readers use.", _itself, lambda table: table.certified),
    _gauge(
        "millrace_table_certified_by_hand", "1 if a person has let that version pass, 0 if its gate has.",
        lambda table: table.verdicts if table.certified is not None else None,
        lambda verdicts: bool(verdicts.certified_by_hand),
    ),
    _gauge(
        "millrace_table_certified_lag_versions", "Versions by which readers are behind; all, if none is certified.",
        _itself, lambda table: table.certified_lag,
    ),
    TableMetric(
        GaugeMetricFamily, "millrace_table_certified_lag_seconds",
        "Time for which the oldest batch that readers do not have yet has waited; 0 if they have all.", _lag_seconds,
    ),
    _gauge("millrace_table_rows", "Rows of the newest version.", _measures, lambda size: size.rows),
    _gauge(
        "millrace_table_rescued_rows", "Rows of the newest version with a value in _rescued.",
        _measures, lambda size: size.rescued,
    ),
    _gauge(
        "millrace_table_bytes", "Size of the data files of the newest version.",
        _measures, lambda size: size.size,
    ),
    _gauge(
        "millrace_table_files", "Data files of the newest version.",
        _measures, lambda size: size.files,
    ),
    _gauge(
        "millrace_table_expected_files", "Data files that would do for the table, after maintenance.",
        _itself, lambda table: table.expected_files,
    ),
    TableMetric(
        GaugeMetricFamily, "millrace_table_storage", "1 for the state of the table's storage, 0 for all others.",
        _storage_states, "state",
    ),
    _gauge(
        "millrace_table_small_files", "Small data files, when maintenance last measured them.",
        _health, lambda health: health.small_files,
    ),
    _gauge(
        "millrace_table_old_bytes", "Size of the files that the newest version did not need at that time.",
        _health, lambda health: health.old_size,
    ),
    _gauge(
        "millrace_table_log_bytes", "Size of the table's log at that time.",
        _health, lambda health: health.log_size,
    ),
    _gauge(
        "millrace_table_last_batch_timestamp_seconds", "Time of the last batch.",
        lambda table: table.last, lambda batch: batch.at,
    ),
    _gauge(
        "millrace_table_newest_row_timestamp_seconds", "Time of the newest row, for tables with a rule of freshness.",
        _freshness, lambda freshness: freshness.newest,
    ),
    _gauge(
        "millrace_table_stale_timestamp_seconds", "Time at which the table is stale, without newer rows.",
        _freshness, lambda freshness: freshness.stale_at,
    ),
    _gauge(
        "millrace_quarantine_rows", "Rows that wait in the quarantine of the table.",
        _waiting, lambda waiting: waiting.rows,
    ),
    _gauge(
        "millrace_quarantine_oldest_timestamp_seconds", "Time at which the first of these rows was refused.",
        _waiting, lambda waiting: waiting.oldest,
    ),
    _gauge(
        "millrace_landing_failed_files", "Landing files that the last attempt could not load.",
        lambda table: table.failed_files, lambda failed: sum(failed.attempts.values()),
    ),
    _gauge(
        "millrace_landing_given_up_files", "Landing files that failed so often that no run tries them again.",
        _itself, lambda table: table.given_up_files if table.failed_files else None,
    ),
    TableMetric(CounterMetricFamily, "millrace_batches", "Closed batches, by kind.", _batches, "kind"),
    TableMetric(
        CounterMetricFamily, "millrace_rows", "Rows that batches have read, by what happened to them.",
        _rows_by_action(_FATES), "action",
    ),
    TableMetric(
        CounterMetricFamily, "millrace_row_changes", "Rows of the table that batches have changed, by action.",
        _rows_by_action(_CHANGES), "action",
    ),
    _counter(
        "millrace_landing_loaded_files", "Landing files that batches have loaded.",
        _totals, lambda totals: totals.files,
    ),
    _counter(
        "millrace_batch_seconds", "Time from the intents of batches to their ends: write, commit, secondary writes.",
        _totals, lambda totals: totals.seconds,
    ),
    _counter(
        "millrace_lease_wait_seconds", "Time for which runs have waited for the lease of another run.",
        _contention, lambda sums: sums.waited_s,
    ),
    _counter(
        "millrace_commit_retries", "Attempts of runs after their first, since another writer had been first.",
        _contention, lambda sums: sums.retries,
    ),
    TableMetric(
        CounterMetricFamily, "millrace_commit_conflicts", "Commits lost to another writer, by Delta's error class.",
        _conflicts, "kind",
    ),
)  # fmt: skip
