"""What Airflow knows of a DAG and its runs, and of the DAGs that wait for the events of tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from sqlalchemy import and_, or_, select

from lakehouse_airflow.assets import table_asset


@dataclass(frozen=True)
class WaitingDag:
    """A DAG that waits for events of assets.

    Attributes:
        dag_id: its id.
        name: its name in the UI.
        is_paused: whether it is switched off.
        missing: the assets whose events it also needs before it runs; empty if the events of the tables are enough.
    """

    dag_id: str
    name: str
    is_paused: bool
    missing: tuple[str, ...]


def current_dag(session: SessionDep, dag_id: str) -> DagModel | None:
    """Return a DAG that Airflow still finds in a file; None if there is none."""
    dag = DagModel.get_dagmodel(dag_id, session=session)
    return None if dag is None or dag.is_stale else dag


def domains_with_dag(session: SessionDep, domains: Collection[str]) -> set[str]:
    """Return those of some domains for which Airflow has a DAG."""
    query = select(DagModel.dag_id).where(DagModel.dag_id.in_(domains), ~DagModel.is_stale)
    return set(session.scalars(query))


def existing_runs(session: SessionDep, runs: Iterable[tuple[str, str] | None]) -> set[tuple[str, str]]:
    """Return those of some runs (DAG, run) that Airflow has; None is left out.

    The ledger keeps batches for longer than Airflow keeps runs: `airflow db clean` or a person deletes them.
    """
    asked: dict[str, set[str]] = {}
    for dag_id, run_id in filter(None, runs):
        asked.setdefault(dag_id, set()).add(run_id)
    if not asked:
        return set()
    # A list of pairs would make SQLite read the whole table.
    of_dags = (and_(DagRun.dag_id == dag_id, DagRun.run_id.in_(ids)) for dag_id, ids in asked.items())
    query = select(DagRun.dag_id, DagRun.run_id).where(or_(*of_dags))
    return {(row.dag_id, row.run_id) for row in session.execute(query)}


def run_states(session: SessionDep, dag_id: str, starts: Collection[datetime]) -> dict[datetime, str]:
    """Return start of an interval -> the state of the run that Airflow has for it, the newest if there are several."""
    query = (
        select(DagRun.logical_date, DagRun.state)
        .where(DagRun.dag_id == dag_id, DagRun.logical_date.in_(starts))
        .order_by(DagRun.start_date)
    )
    return {row.logical_date: str(row.state) for row in session.execute(query) if row.logical_date}


def waiting_dags(session: SessionDep, tables: Collection[str]) -> list[WaitingDag]:
    """Return the DAGs whose schedule names one of these tables, by id."""
    uris = {table_asset(table).uri for table in tables}
    query = select(DagModel).where(~DagModel.is_stale, DagModel.asset_expression.is_not(None)).order_by(DagModel.dag_id)
    return [
        WaitingDag(dag.dag_id, dag.dag_display_name, dag.is_paused, _missing(dag.asset_expression, uris))
        for dag in session.scalars(query)
        if uris & {uri for uri, _ in _assets(dag.asset_expression)}
    ]


def _missing(expression: Any, uris: Collection[str]) -> tuple[str, ...]:
    """Return the other assets of a schedule; none if the events of the assets with these URIs are enough."""
    if _is_met(expression, uris):
        return ()
    return tuple(dict.fromkeys(name for uri, name in _assets(expression) if uri not in uris))


def _is_met(expression: Any, uris: Collection[str]) -> bool:
    if not isinstance(expression, Mapping):
        return False
    if "any" in expression:
        return any(_is_met(each, uris) for each in expression["any"])
    if "all" in expression:
        return all(_is_met(each, uris) for each in expression["all"])
    return any(uri in uris for uri, _ in _assets(expression))


def _assets(expression: Any) -> Iterator[tuple[str, str]]:
    """Yield URI and name of each asset of a schedule, as Airflow stores it for its UI; an alias has no URI."""
    if isinstance(expression, list):
        for each in expression:
            yield from _assets(each)
    elif isinstance(expression, Mapping):
        for kind, content in expression.items():
            if kind in ("any", "all"):
                yield from _assets(content)
            elif isinstance(content, Mapping):
                yield str(content.get("uri", "")), str(content.get("name", content.get("uri", "")))
