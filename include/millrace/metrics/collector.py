"""The collector that `prometheus_client` asks for the metrics of a lakehouse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from millrace.clock import Clock, utc_now
from millrace.metrics.table_metrics import TABLE_METRICS, Number, TableMetric
from millrace.overview.lakehouse import FailedTasks, LakehouseReader, no_failed_tasks
from millrace.overview.tables.table_overview import TableOverview

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
