"""The page of a table, with its tabs: can I trust it, and what happened to it?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse
from starlette import status

from lakehouse_airflow.pages.airflow_dags import Runs, existing_runs, where_to_act
from lakehouse_airflow.pages.failed_tasks import failed_tasks, items_for
from lakehouse_airflow.pages.reader import lakehouse
from lakehouse_airflow.pages.rendering import page
from lakehouse_airflow.pages.tab import ShownTable
from lakehouse_airflow.pages.tabs import files, lineage, overview, quality, quarantine, spec, storage, versions
from lakehouse_airflow.ui.rights import may_see_rows
from millrace.clock import utc_now
from millrace.control.ledger.states.recent_batches import RecentBatch
from millrace.overview.attention import attention_needed, misfit_attention

TABS = (overview.TAB, versions.TAB, quality.TAB, files.TAB, quarantine.TAB, storage.TAB, lineage.TAB, spec.TAB)
"""The tabs in their order; a new one also needs a template of its name."""


def table_page(table: str, request: Request, user: GetUserDep, session: SessionDep) -> HTMLResponse:
    """Show the first tab of a table. Raises the errors of `tab_page`."""
    return tab_page(table, TABS[0].name, request, user, session)


def tab_page(table: str, tab: str, request: Request, user: GetUserDep, session: SessionDep) -> HTMLResponse:
    """Show a tab of a table.

    A spec that is in no table's place has its path as its name, with slashes, so that its last part is taken for a tab.

    Raises:
        HTTPException: 404 if there is no such table, or it has no such tab.
    """
    now, failed = utc_now(), partial(failed_tasks, session)
    if "." in tab:
        table, tab = f"{table}/{tab}", TABS[0].name
    with lakehouse() as reader:
        facts = reader.read_table(table, now, failed)
        if facts is None:
            raise HTTPException(status.HTTP_404_NOT_FOUND, f"no spec creates the table {table}")
        tabs = [each for each in TABS if each.fits(facts)]
        shown = next((each for each in tabs if each.name == tab), None)
        if shown is None:
            raise HTTPException(status.HTTP_404_NOT_FOUND, f"{table} has no tab {tab}")
        domain = facts.spec.domain
        may_see = may_see_rows(domain, request, user)
        all_tables = partial(reader.read, now, failed)

        def runs_of(batches: Iterable[RecentBatch]) -> Runs:
            return existing_runs(session, ((table, domain, batch) for batch in batches))

        subject = ShownTable(facts, reader, may_see, now, all_tables, runs_of, request.query_params)
        values = shown.values(subject)
        with reader.ledger() as ops:
            items = [*attention_needed([facts], now), *misfit_attention(facts, ops)]
    return page(
        f"table/{shown.name}.html",
        table=facts,
        tabs=tabs,
        tab=shown,
        items=items_for(items, request, user),
        where=where_to_act(session, items),
        may_see_rows=subject.may_see_rows,
        **values,
    )
