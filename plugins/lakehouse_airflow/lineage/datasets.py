"""The datasets of OpenLineage: their names by its naming specification, and what their specs say about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from openlineage.client.facet_v2 import (
    DatasetFacet,
    dataset_version_dataset,
    documentation_dataset,
    ownership_dataset,
    schema_dataset,
    storage_dataset,
    symlinks_dataset,
    tags_dataset,
)
from openlineage.client.naming.dataset import S3, DatasetNaming, Kafka, LocalFileSystem

from millrace.contracts.lake_path import LakePath, bucket_url, lake_path
from millrace.contracts.spec.bronze_sources import BronzeSource, KafkaSource
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec, SilverSpec
from millrace.control.changes.table_columns import types_in
from millrace.control.log.checkpoints import definition_at
from millrace.control.log.delta_log import latest_version
from millrace.overview.described_columns import column_names
from millrace.overview.lineage.restricted import Restrictions, stated_classifications
from millrace.settings import Settings

_LOGICAL = "millrace"
"""The namespace of the tables' own names, such as `silver.flights`, wherever their files are."""


def name_of(path: LakePath) -> DatasetNaming:
    """Return the name of a folder, or of a prefix of a bucket.

    >>> name = name_of(lake_path("s3a://lake/tables/silver/flights"))
    >>> name.get_namespace(), name.get_name()
    ('s3://lake', 'tables/silver/flights')
    """
    return LocalFileSystem(str(path.absolute())) if isinstance(path, Path) else S3(path.bucket, path.key)


def names_of_source(source: BronzeSource, settings: Settings, topics: Iterable[str] = ()) -> list[DatasetNaming]:
    """Return the names of what a bronze table reads: the folder of its landing files, or its topics.

    Args:
        source: the source of the table's spec.
        settings: they have the landing root, and the addresses of Kafka clusters.
        topics: the topics that were read, for a source that names only a pattern of topics.
    """
    if isinstance(source, KafkaSource):
        first = settings.kafka[source.kafka]["bootstrap.servers"].split(",")[0].strip()
        host, _, port = first.rpartition("://")[2].rpartition(":")
        return [Kafka(host, port, topic) for topic in source.topics or sorted(filter(source.reads, topics))]
    if url := bucket_url(source.landing):
        return [name_of(lake_path(url))]
    return [name_of(lake_path(settings.landing) / source.landing)]


def table_facets(
    spec: AnySpec, specs: Mapping[str, AnySpec], table: LakePath, version: int | None
) -> dict[str, DatasetFacet]:
    """Return what a spec, and those upstream, say about its table, and the table's version if it is known."""
    fields, restricted = schema_fields(spec, table, version), Restrictions(specs).of(spec.table)
    identifier = symlinks_dataset.Identifier(namespace=_LOGICAL, name=spec.table, type="TABLE")
    classified = dict[str | None, str]([(None, spec.classification), *stated_classifications(spec).items()])
    classified |= {field.name: "restricted" for field in fields if field.name in restricted}
    tags = [
        tags_dataset.TagsDatasetFacetFields(key="classification", value=value, source="MILLRACE", field=name)
        for name, value in classified.items()
    ]
    facets: dict[str, DatasetFacet] = {
        "schema": schema_dataset.SchemaDatasetFacet(fields=fields),
        "storage": storage_dataset.StorageDatasetFacet(storageLayer="delta", fileFormat="parquet"),
        "symlinks": symlinks_dataset.SymlinksDatasetFacet(identifiers=[identifier]),
        "tags": tags_dataset.TagsDatasetFacet(tags=tags),
    }
    if version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=str(version))
    if spec.description:
        facets["documentation"] = documentation_dataset.DocumentationDatasetFacet(description=spec.description)
    if spec.owner:
        owner = ownership_dataset.Owner(name=f"team:{spec.owner}", type="OWNER")
        facets["ownership"] = ownership_dataset.OwnershipDatasetFacet(owners=[owner])
    return facets


def source_facets(fields: Iterable[str]) -> dict[str, DatasetFacet]:
    """Return the schema of landing files or messages: the names of the fields that the table reads."""
    named: Mapping[str, None] = dict.fromkeys(fields)
    return {
        "schema": schema_dataset.SchemaDatasetFacet(
            fields=[schema_dataset.SchemaDatasetFacetFields(name=name) for name in named]
        )
    }


def schema_fields(spec: AnySpec, table: LakePath, version: int | None) -> list[schema_dataset.SchemaDatasetFacetFields]:
    """Return the columns of the table; a type that the spec lacks is that of the version, or the newest one."""
    columns: list[tuple[str, str | None, str]]
    if isinstance(spec, GoldSpec):
        columns = [(name, None, "") for name in column_names(spec)]
    else:
        stored = spec.stored_columns if isinstance(spec, SilverSpec) else tuple(spec.columns)
        columns = [(name, spec.columns[name].type, spec.columns[name].description) for name in stored]
    if isinstance(spec, SilverSpec):
        columns += [(name, None, "") for name in spec.period_columns]
    has_all_types = all(kind for _, kind, _ in columns)
    types = {} if has_all_types else stored_types(table, latest_version(table) if version is None else version)
    return [
        schema_dataset.SchemaDatasetFacetFields(
            name=name, type=kind or types.get(name), description=description or None, ordinal_position=position
        )
        for position, (name, kind, description) in enumerate(columns, start=1)
    ]


def stored_types(table: LakePath, version: int) -> dict[str, str]:
    """Return column -> type in Delta's names; empty if the log does not have them any more."""
    definition = definition_at(table, version)
    return types_in(definition["schemaString"]) if definition else {}
