"""The facet of OpenLineage that says from which columns a table's columns come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from openlineage.client.facet_v2 import column_lineage_dataset as facet
from openlineage.client.naming.dataset import DatasetNaming

from millrace.contracts.spec.table_spec import AnySpec, SilverSpec
from millrace.overview.lineage.origins import Origin, of_sources, origins_of_columns, origins_of_rows


def column_lineage(
    spec: AnySpec, sources: Mapping[str, Sequence[DatasetNaming]], specs: Mapping[str, AnySpec]
) -> facet.ColumnLineageDatasetFacet:
    """Return the facet of a table.

    Args:
        spec: the spec of the table.
        sources: the datasets of each table that it reads; those of `DELIVERED` for bronze.
        specs: table -> spec, as far as they are known.
    """
    of_columns = origins_of_columns(spec, specs)
    left_out = spec.except_column_list if isinstance(spec, SilverSpec) else ()
    columns = {
        name: of_sources(of_columns[name], spec.table, of_columns) for name in of_columns if name not in left_out
    }
    inputs = {name: _input_fields(origins, sources) for name, origins in columns.items()}
    fields = {name: facet.Fields(inputFields=of_column) for name, of_column in inputs.items() if of_column}
    return facet.ColumnLineageDatasetFacet(fields=fields, dataset=_input_fields(origins_of_rows(spec, specs), sources))


def _input_fields(origins: Iterable[Origin], sources: Mapping[str, Sequence[DatasetNaming]]) -> list[facet.InputField]:
    """Return one input field for each column of a dataset, with all that happens to it."""
    found: dict[tuple[str, str, str], list[facet.Transformation]] = {}
    for origin in dict.fromkeys(origins):
        kind = "DIRECT" if origin.is_direct else "INDIRECT"
        for dataset in sources.get(origin.table, ()):
            found.setdefault((dataset.get_namespace(), dataset.get_name(), origin.path), []).append(
                facet.Transformation(type=kind, subtype=str(origin.subtype), description=origin.text)
            )
    return [
        facet.InputField(namespace=namespace, name=name, field=field, transformations=steps)
        for (namespace, name, field), steps in found.items()
    ]
