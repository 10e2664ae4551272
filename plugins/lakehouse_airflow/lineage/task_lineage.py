"""What a task of Millrace tells OpenLineage when it ends: the tables that it read and wrote, with their facets.

The names, the columns and the rules come from the specs, the versions and the counts from the task's report and the
table's log. Rows are never read. An error here ends no task: OpenLineage's provider logs it, and sends its event
without datasets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import DatasetFacet, InputDatasetFacet, OutputDatasetFacet
from openlineage.client.generated.column_lineage_dataset import ColumnLineageDatasetFacet
from openlineage.client.generated.input_statistics_input_dataset import InputStatisticsInputDatasetFacet
from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet
from openlineage.client.naming.dataset import DatasetNaming

from lakehouse_airflow.lineage.columns import column_lineage
from lakehouse_airflow.lineage.commits import Committed, committed_by
from lakehouse_airflow.lineage.datasets import name_of, names_of_source, source_facets, table_facets
from lakehouse_airflow.lineage.quality import quality_facets
from lakehouse_airflow.operators.gate_decision import GateDecision
from millrace.catalog import Catalog, load_catalog
from millrace.contracts.job.report import JobReport
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec
from millrace.control.log.batch import BatchSources
from millrace.errors import Outcome
from millrace.overview.lineage.origins import DELIVERED
from millrace.settings import Settings

Lineage: TypeAlias = OperatorLineage[Any, Any]
"""What the provider takes from an operator."""


def lineage_of_write(table: str, report: JobReport | None, run_id: str, settings: Settings) -> Lineage:
    """Return what a writer of a table read and wrote; without a report, only between which tables it goes."""
    catalog = load_catalog(settings.tables)
    spec, path = catalog.spec(table), settings.paths.table(table)
    written = report if report and report.outcome is Outcome.COMMITTED else None
    committed = committed_by(run_id, path, written.version) if written else Committed()
    sources = _sources(spec, settings, committed)
    lineage = column_lineage(spec, sources, catalog.specs)
    facets = {**table_facets(spec, catalog.specs, path, report.version if report else None), "columnLineage": lineage}
    inputs = _inputs(spec, catalog, settings, sources, lineage, committed, written)
    output = _output(name_of(path), facets, _output_statistics(written, committed) if written else {})
    return OperatorLineage(inputs=inputs, outputs=[output])


def lineage_of_gate(table: str, specs: Path, decision: GateDecision | None, settings: Settings) -> Lineage:
    """Return the version that a gate checked, with the result of each rule."""
    path = settings.paths.table(table)
    catalog, version = load_catalog(specs), decision.version if decision else None
    facets = table_facets(catalog.spec(table), catalog.specs, path, version)
    results = quality_facets(decision.checks if decision else ())
    return OperatorLineage(inputs=[_input(name_of(path), facets, results)])


def lineage_of_job(table: str, report: JobReport | None, settings: Settings) -> Lineage:
    """Return the table on which another job worked, such as maintenance, with the version that it left."""
    path = settings.paths.table(table)
    catalog, version = load_catalog(settings.tables), report.version if report else None
    facets = table_facets(catalog.spec(table), catalog.specs, path, version)
    return OperatorLineage(outputs=[_output(name_of(path), facets, {})])


def _sources(spec: AnySpec, settings: Settings, committed: Committed) -> dict[str, Sequence[DatasetNaming]]:
    """Return the datasets of each table that it reads or looks into; of a bronze table those of its files or topics."""
    if isinstance(spec, BronzeSpec):
        topics = committed.sources.offsets if committed.sources else ()
        return {DELIVERED: names_of_source(spec.source, settings, topics)}
    return {table: [name_of(settings.paths.table(table))] for table in spec.upstream_tables}


def _inputs(
    spec: AnySpec,
    catalog: Catalog,
    settings: Settings,
    sources: Mapping[str, Sequence[DatasetNaming]],
    lineage: ColumnLineageDatasetFacet,
    committed: Committed,
    written: JobReport | None,
) -> list[InputDataset]:
    """Return the sources, each once, with the version up to which the batch has read it, or that it looked into."""
    statistics: dict[str, InputDatasetFacet] = {}
    # Of several sources, nobody knows how many rows came from which.
    if written and sum(len(sources[table]) for table in spec.source_tables or (DELIVERED,)) == 1:
        statistics["inputStatistics"] = InputStatisticsInputDatasetFacet(
            rowCount=written.rows.read, fileCount=committed.landing_files or None
        )
    if isinstance(spec, BronzeSpec):
        fields = (origin.field for column in lineage.fields.values() for origin in column.inputFields)
        facets = source_facets(fields)
        return [_input(name, facets, statistics) for name in sources[DELIVERED]]
    read = committed.sources or BatchSources()
    versions = {
        **{table: upto for table, (_, upto) in read.ranges.items()},
        **{table: pinned.version for table, pinned in read.references.items()},
    }
    return [
        _input(
            name,
            table_facets(catalog.spec(table), catalog.specs, settings.paths.table(table), versions.get(table)),
            statistics if table in spec.source_tables else {},
        )
        for table, names in sources.items()
        for name in names
    ]


def _output_statistics(written: JobReport, committed: Committed) -> dict[str, OutputDatasetFacet]:
    rows = written.rows.inserted + written.rows.updated
    facet = OutputStatisticsOutputDatasetFacet(rowCount=rows, size=committed.size, fileCount=committed.files)
    return {"outputStatistics": facet}


def _input(
    name: DatasetNaming, facets: Mapping[str, DatasetFacet], input_facets: Mapping[str, InputDatasetFacet]
) -> InputDataset:
    return InputDataset(name.get_namespace(), name.get_name(), facets=dict(facets), inputFacets=dict(input_facets))


def _output(
    name: DatasetNaming, facets: Mapping[str, DatasetFacet], output_facets: Mapping[str, OutputDatasetFacet]
) -> OutputDataset:
    return OutputDataset(name.get_namespace(), name.get_name(), facets=dict(facets), outputFacets=dict(output_facets))
