"""The page Lineage: where does this column come from, and who breaks if I change it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from airflow.api_fastapi.common.db.common import SessionDep
from fastapi import HTTPException
from fastapi.responses import HTMLResponse
from starlette import status

from lakehouse_airflow.pages.failed_tasks import failed_tasks
from lakehouse_airflow.pages.lineage.graph import graph_of
from lakehouse_airflow.pages.reader import lakehouse
from lakehouse_airflow.pages.rendering import page
from millrace.clock import utc_now
from millrace.contracts.counted import counted
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.contracts.spec.values import LAYERS
from millrace.overview.described_columns import column_names
from millrace.overview.lineage.tables import downstream, upstream
from millrace.overview.tables.table_overview import SEVERITY, TableOverview
from millrace.specs.invalid_spec import InvalidSpec

if TYPE_CHECKING:
    from millrace.catalog import Catalog
    from millrace.overview.lineage.chains import Step

_MOST_TABLES = 60
"""Of more tables than these the page shows the domains first."""

_MOST_COLUMNS = 100
"""The columns that a search lists."""

_MOST_READERS = 8
"""The columns to which one goes, in the list of all columns of a table."""


def lineage_page(session: SessionDep, table: str = "", column: str = "", q: str = "", domain: str = "") -> HTMLResponse:
    """Show tables, the tables around one, or what a column comes from and what depends on it.

    Args:
        session: Airflow's database.
        table: the table around which to look; by default all that the filter leaves.
        column: a column of this table.
        q: a text in the name of a table or of a column.
        domain: only tables of this domain, and those beside them.

    Raises:
        HTTPException: 404 if there is no such table or column.
    """
    with lakehouse() as reader:
        tables = {each.table: each for each in reader.read(utc_now(), partial(failed_tasks, session))}
        catalog = reader.catalog()
    if not table:
        return page("lineage/all.html", **_all(tables, q.strip().lower(), domain), query={"q": q, "domain": domain})
    shown = tables.get(table)
    if shown is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"no spec creates the table {table}")
    relatives = [each.table for each in (*upstream(table, tables), *downstream(table, tables))]
    if not column or isinstance(shown.spec, InvalidSpec):
        values = _of_table(shown, catalog)
        return page("lineage/table.html", table=shown, graph=graph_of([shown, *relatives]), notes={}, **values)
    if column not in column_names(shown.spec):
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"{table} has no column {column}")
    values = _of_column(shown, column, catalog)
    touched = [each for each in (shown, *relatives) if each.table in values["notes"]]
    return page("lineage/column.html", table=shown, column=column, graph=graph_of(touched), **values)


def _all(tables: Mapping[str, TableOverview], text: str, domain: str) -> dict[str, Any]:
    """Return the tables that a filter leaves, with those beside them; of very many, their domains."""
    found = [each for each in tables.values() if not domain or each.spec.domain == domain]
    columns = _columns_with(text, found) if text else {}
    if text:
        found = [each for each in found if text in each.table or each.table in columns]
    names = {each.table for each in found}
    read = {source for each in found for source in each.spec.upstream_tables}
    outside = [each for each in tables.values() if each.table not in names] if domain and not text else []
    beside = [each for each in outside if each.table in read or names & set(each.spec.upstream_tables)]
    is_long = not text and not domain and len(tables) > _MOST_TABLES
    listed = [(table, column) for table, of_table in columns.items() for column in of_table]
    return {
        "graph": None if is_long else graph_of([*found, *beside]),
        "notes": {each.table: each.spec.domain for each in beside},
        "found": len(found),
        "total": len(tables),
        "columns": listed[:_MOST_COLUMNS],
        "more_columns": max(len(listed) - _MOST_COLUMNS, 0),
        "domains": _domains(tables.values()) if is_long else [],
        "choices": sorted({each.spec.domain for each in tables.values() if each.spec.domain}),
    }


def _columns_with(text: str, tables: Iterable[TableOverview]) -> dict[str, list[str]]:
    """Return table -> its columns with a text in their names, if it has some."""
    sound = ((each.table, each.spec) for each in tables if not isinstance(each.spec, InvalidSpec))
    found = {table: [name for name in column_names(spec) if text in name] for table, spec in sound}
    return {table: columns for table, columns in found.items() if columns}


def _domains(tables: Iterable[TableOverview]) -> list[dict[str, Any]]:
    """Return each domain with its number of tables by layer and by state."""
    by_domain = groupby(sorted(tables, key=lambda each: each.spec.domain), lambda each: each.spec.domain)
    return [
        {
            "name": domain,
            "layers": [layers[layer] for layer in LAYERS],
            "states": [(state, states[state]) for state in SEVERITY if states[state]],
        }
        for domain, of_domain in ((domain, list(of_domain)) for domain, of_domain in by_domain)
        for layers in [Counter(each.spec.layer for each in of_domain)]
        for states in [Counter(each.condition for each in of_domain)]
    ]


def _of_table(shown: TableOverview, catalog: Catalog) -> dict[str, Any]:
    """Return the columns of a table, each with those next to it."""
    # Imported here: it loads a parser of SQL.
    from millrace.overview.lineage.chains import ColumnChains

    if isinstance(shown.spec, InvalidSpec):
        return {"columns": []}
    chains = ColumnChains(catalog.specs)
    columns = [
        (name, chains.comes_from(shown.table, name), chains.goes_to(shown.table, name))
        for name in column_names(shown.spec)
    ]
    return {"columns": columns, "delivered": _delivered([shown.table], catalog), "most": _MOST_READERS}


def _of_column(shown: TableOverview, column: str, catalog: Catalog) -> dict[str, Any]:
    """Return the chains of a column, and what its change breaks."""
    # Imported here: they load a parser of SQL.
    from millrace.overview.lineage.breakage import broken_places, stopped_tables
    from millrace.overview.lineage.chains import ColumnChains

    chains = ColumnChains(catalog.specs)
    comes_from, goes_to = chains.comes_from(shown.table, column), chains.goes_to(shown.table, column)
    places = broken_places(shown.table, column, catalog)
    broken = [place.table for place in places]
    stopped = stopped_tables(broken, catalog)
    after = [step for first in goes_to for step in first.all_steps]
    steps = [*(step for first in comes_from for step in first.all_steps), *after]
    return {
        "comes_from": comes_from,
        "goes_to": goes_to,
        "places": places,
        "stopped": stopped,
        "answer": _answer(after, broken, stopped),
        "notes": _notes(shown.table, column, steps, broken),
        "delivered": _delivered([shown.table, *(step.table for step in steps)], catalog),
    }


def _answer(after: Iterable[Step], broken: Sequence[str], stopped: Sequence[str]) -> str:
    """Return how much depends on a column, and how much its change breaks."""
    depending = {(step.table, step.column) for step in after}
    tables = [table for table, column in depending if not column]
    parts = [counted(len(depending) - len(tables), "column"), f"the rows of {counted(len(tables), 'table')}"]
    depends = " and ".join(parts if tables else parts[:1]) if depending else "No column"
    verb = "depends" if depends in ("No column", "1 column") else "depend"
    if not broken:
        return f"{depends} {verb} on it, and no spec names it."
    places, specs = counted(len(broken), "place"), counted(len(set(broken)), "spec")
    return (
        f"{depends} {verb} on it. If it is renamed or removed, {places} in {specs} must change with it; until then "
        f"{counted(len(stopped), 'table is', 'tables are')} not run."
    )


def _notes(table: str, column: str, steps: Sequence[Step], broken: Sequence[str]) -> dict[str, str]:
    """Return table -> the columns of it that belong to the chain."""
    columns: dict[str, dict[str, None]] = {table: {column: None}}
    for step in steps:
        if step.table:
            columns.setdefault(step.table, {})[step.column or "its rows"] = None
    for name in broken:
        columns.setdefault(name, {"names it": None})
    return {name: ", ".join(of_table) for name, of_table in columns.items()}


def _delivered(tables: Iterable[str], catalog: Catalog) -> dict[str, str]:
    """Return bronze table -> where its records come from, for people."""
    specs = {name: catalog.specs.get(name) for name in tables}
    return {
        name: spec.source.label if spec.reads_kafka else f"files {spec.source.label}"
        for name, spec in specs.items()
        if isinstance(spec, BronzeSpec)
    }
