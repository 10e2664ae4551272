"""`lakehouse check`: list the tables that have a spec, or the problems of the specs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.table import Table

from millrace.catalog import Catalog
from millrace.cli.listings.as_json import json_array, show_listing
from millrace.cli.views import new_table
from millrace.contracts.counted import counted
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverQuerySpec, SilverSpec
from millrace.control.kafka.order import sequence_notes
from millrace.erase.reach import reach_notes
from millrace.errors import SpecError
from millrace.overview.described_columns import column_names
from millrace.specs.checks.refresh import refresh_notes
from millrace.specs.checks.sql import checked_catalog, refresh_in_words
from millrace.specs.problem import SpecsRefusedError

_WITHOUT_KEYS = {"bronze": "as received", "gold": "as its query says"}
"""Layer -> what a row of a table without keys is."""


@dataclass(frozen=True)
class SpecFacts:
    """The facts of one table that its spec states.

    Attributes:
        table: the table.
        layer: its layer.
        domain: its domain.
        reads: the tables that it reads; for bronze the landing folder, or the cluster and topics of Kafka.
        keys: the columns that identify a row; none for bronze, where a row is a record as received, and for the query
            of a gold table.
        columns: the number of declared columns.
        row_rules: the number of expectations for rows.
        table_rules: the number of expectations for the table.
        refresh: how the table of a query is refreshed, and why; empty for all others.
    """

    table: str
    layer: str
    domain: str
    reads: tuple[str, ...]
    keys: tuple[str, ...]
    columns: int
    row_rules: int
    table_rules: int
    refresh: str


def show_specs(folder: Path, *, as_json: bool) -> None:
    """Print the tables of a folder of specs; the problems of wrong specs are in JSON as well.

    Raises:
        SpecsRefusedError: specs are wrong.
        SpecError: there is no such folder, or no spec in it.
    """
    try:
        catalog = checked_catalog(folder)
    except SpecsRefusedError as error:
        if as_json:
            typer.echo(json_array(error.problems))
        raise
    if not catalog.specs:
        raise SpecError(f"no table specs in {folder}", "A spec is in <layer>/<domain>/<table>.yaml below it.")
    facts, summary = spec_facts(catalog), f"{counted(len(catalog.specs), 'table')} in {folder}: every spec is fine."
    refreshes = [f"{fact.table}: {fact.refresh}" for fact in facts if fact.refresh]
    gold = (spec for spec in catalog.specs.values() if isinstance(spec, GoldSpec))
    of_refreshes = (note for spec in gold for note in refresh_notes(spec, catalog.specs))
    notes = [f"note: {note}" for note in (*of_refreshes, *sequence_notes(catalog.specs), *reach_notes(catalog.specs))]
    show_listing(facts, lambda: spec_table(facts), *refreshes, summary, *notes, as_json=as_json)


def spec_facts(catalog: Catalog) -> list[SpecFacts]:
    """Return the facts of all tables, by layer."""
    return [
        SpecFacts(
            table=spec.table,
            layer=spec.layer,
            domain=spec.domain,
            reads=_reads(spec),
            keys=_keys(spec),
            columns=len(column_names(spec)),
            row_rules=len(spec.row_rules),
            table_rules=len(spec.table_rules),
            refresh=refresh_in_words(spec, catalog.specs),
        )
        for spec in catalog.specs.values()
    ]


def spec_table(facts: Iterable[SpecFacts]) -> Table:
    """Return all tables by layer: what each reads, what identifies a row, how many rules it has."""
    table = new_table("table", "domain", "reads", "a row is", "columns", "rules", numbers=("columns", "rules"))
    layer = ""
    for spec in facts:
        if layer not in ("", spec.layer):
            table.add_section()
        layer = spec.layer
        rules = f"{spec.row_rules} row, {spec.table_rules} table"
        keys = ", ".join(spec.keys) or _WITHOUT_KEYS[spec.layer]
        table.add_row(spec.table, spec.domain, ", ".join(spec.reads), keys, str(spec.columns), rules)
    return table


def _reads(spec: AnySpec) -> tuple[str, ...]:
    if isinstance(spec, BronzeSpec):
        return (spec.source.label if spec.reads_kafka else f"{spec.landing_source.landing}/",)
    return tuple(spec.source_tables)


def _keys(spec: AnySpec) -> tuple[str, ...]:
    if isinstance(spec, SilverSpec | SilverQuerySpec):
        return tuple(spec.keys)
    return tuple(spec.group_by) if isinstance(spec, GoldSpec) else ()
