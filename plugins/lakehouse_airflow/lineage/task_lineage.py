"""What a task of Millrace tells OpenLineage when it ends: the tables that it read and wrote, with their facets.

The names, the columns and the rules come from the specs, the versions and the counts from the task's report and the
table's log. Rows are never read. delta-rs is not used: the provider builds its events in a fork of the task's process,
in which delta-rs does not work once the task has used it. An error here ends no task: OpenLineage's provider logs it,
and sends its event without datasets.

The results of a gate's rules are facets of the table that it checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    OutputDatasetFacet,
    data_quality_assertions_dataset,
    data_quality_metrics_input_dataset,
)
from openlineage.client.facet_v2 import column_lineage_dataset as columns
from openlineage.client.generated.input_statistics_input_dataset import InputStatisticsInputDatasetFacet
from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet
from openlineage.client.naming.dataset import DatasetNaming

from lakehouse_airflow.lineage.datasets import name_of, names_of_source, source_facets, table_facets
from lakehouse_airflow.operators.gate_decision import GateDecision
from millrace.catalog import Catalog, load_catalog
from millrace.contracts.job.report import CheckResult, JobReport
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.expectation import Action
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec
from millrace.control.log.batch import BatchSources
from millrace.control.log.delta_log import commit_actions, read_commit
from millrace.errors import Outcome
from millrace.overview.lineage.origins import DELIVERED, Origin, of_sources, origins_of_columns, origins_of_rows
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
    lineage: columns.ColumnLineageDatasetFacet,
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


def column_lineage(
    spec: AnySpec, sources: Mapping[str, Sequence[DatasetNaming]], specs: Mapping[str, AnySpec]
) -> columns.ColumnLineageDatasetFacet:
    """Return from which columns the columns of a table come.

    Args:
        spec: the spec of the table.
        sources: the datasets of each table that it reads; those of `DELIVERED` for bronze.
        specs: table -> spec, as far as they are known.
    """
    of_columns = origins_of_columns(spec, specs)
    left_out = spec.except_column_list if isinstance(spec, SilverSpec) else ()
    stored = {name: of_sources(of_columns[name], spec.table, of_columns) for name in of_columns if name not in left_out}
    inputs = {name: _input_fields(origins, sources) for name, origins in stored.items()}
    fields = {name: columns.Fields(inputFields=of_column) for name, of_column in inputs.items() if of_column}
    return columns.ColumnLineageDatasetFacet(
        fields=fields, dataset=_input_fields(origins_of_rows(spec, specs), sources)
    )


def _input_fields(
    origins: Iterable[Origin], sources: Mapping[str, Sequence[DatasetNaming]]
) -> list[columns.InputField]:
    """Return one input field for each column of a dataset, with all that happens to it."""
    found: dict[tuple[str, str, str], list[columns.Transformation]] = {}
    for origin in dict.fromkeys(origins):
        kind = "DIRECT" if origin.is_direct else "INDIRECT"
        for dataset in sources.get(origin.table, ()):
            found.setdefault((dataset.get_namespace(), dataset.get_name(), origin.path), []).append(
                columns.Transformation(type=kind, subtype=str(origin.subtype), description=origin.text)
            )
    return [
        columns.InputField(namespace=namespace, name=name, field=field, transformations=steps)
        for (namespace, name, field), steps in found.items()
    ]


@dataclass(frozen=True)
class Committed:
    """What the commits of a run added.

    Attributes:
        files: the number of data files.
        size: their bytes.
        sources: what the last batch had read; None if the run committed nothing.
        landing_files: the number of landing files.
    """

    files: int = 0
    size: int = 0
    landing_files: int = 0
    sources: BatchSources | None = None


def committed_by(run_id: str, table: LakePath, version: int | None) -> Committed:
    """Return what the run committed up to `version`, in as many batches as it made one after another."""
    total = Committed()
    for actions, sources in _commits_of(run_id, table, version):
        sizes = [action["add"]["size"] for action in actions if "add" in action]
        total = Committed(
            files=total.files + len(sizes),
            size=total.size + sum(sizes),
            landing_files=total.landing_files + sources.files,
            sources=total.sources or sources,
        )
    return total


def _commits_of(
    run_id: str, table: LakePath, version: int | None
) -> Iterator[tuple[list[dict[str, Any]], BatchSources]]:
    """Yield the actions of each commit of the run, the newest first, and what its batch has read."""
    at = -1 if version is None else version
    while at >= 0 and (commit := read_commit(table, at)) and commit.metadata.get("run_id") == run_id:
        yield commit_actions(table, at), BatchSources.model_validate(commit.metadata["sources"])
        at -= 1


_COLUMN_METRICS = {
    "expect_column_max_to_be_between": "max",
    "expect_column_min_to_be_between": "min",
    "expect_column_sum_to_be_between": "sum",
    "expect_column_unique_value_count_to_be_between": "distinctCount",
}
"""Expectation -> the metric that it observes."""

_ROW_COUNTS = ("expect_table_row_count_to_be_between", "expect_table_row_count_to_equal")


def quality_facets(checks: Iterable[CheckResult]) -> dict[str, InputDatasetFacet]:
    """Return the result of each rule that was checked, and the figures that the rules observed.

    Values of the table are left out, other than such figures.
    """
    judged = [check for check in checks if not check.not_judged]
    facets: dict[str, InputDatasetFacet] = {}
    if judged:
        assertions = [_assertion(check) for check in judged]
        facets["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(assertions)
    if metrics := _metrics(judged):
        facets["dataQualityMetrics"] = metrics
    return facets


def _assertion(check: CheckResult) -> data_quality_assertions_dataset.Assertion:
    name, columns = _parts(check.rule)
    observed = check.unexpected_rows if check.unexpected_rows is not None else check.observed
    return data_quality_assertions_dataset.Assertion(
        assertion=name,
        success=check.passed,
        column=columns[0] if len(columns) == 1 else None,
        severity="error" if check.action == Action.FAIL else "warn",
        name=check.rule,
        description=check.reason or None,
        expected=json.dumps(check.expected, default=str) if check.expected else None,
        actual=str(observed) if _is_number(observed) else None,
    )


def _metrics(
    checks: Iterable[CheckResult],
) -> data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet | None:
    """Return the number of rows and the figures of columns that the rules observed; None if they observed none."""
    rows: int | None = None
    columns: dict[str, dict[str, Any]] = {}
    for check in checks:
        name, named = _parts(check.rule)
        if not _is_number(check.observed):
            continue
        if name in _ROW_COUNTS:
            rows = int(check.observed)
        elif name in _COLUMN_METRICS:
            columns.setdefault(named[0], {})[_COLUMN_METRICS[name]] = check.observed
    if rows is None and not columns:
        return None
    return data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet(
        rowCount=rows,
        columnMetrics={
            name: data_quality_metrics_input_dataset.ColumnMetrics(**figures) for name, figures in columns.items()
        },
    )


def _parts(rule: str) -> tuple[str, list[str]]:
    """Return the expectation and the columns of `Expectation.rule`.

    >>> _parts("expect_compound_columns_to_be_unique(origin, dest)")
    ('expect_compound_columns_to_be_unique', ['origin', 'dest'])
    """
    name, _, columns = rule.removesuffix(")").partition("(")
    return name, [column for column in columns.split(", ") if column]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
