"""What Airflow knows of a DAG and its runs, and of the DAGs that wait for the events of tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.models.asset import AssetModel, TaskOutletAssetReference
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from sqlalchemy import and_, or_, select

from lakehouse_airflow.assets import table_asset
from lakehouse_airflow.pages.paths import FORMS
from lakehouse_airflow.ui.links import REBUILD_DAG_ID, REPLAY_DAG_ID
from millrace.control.ledger.states.recent_batches import BatchKind, RecentBatch
from millrace.overview.attention import Attention, Remedy
from millrace.overview.runs.run import ASKING

Runs = dict[tuple[str, str], tuple[str, str]]
"""Table and token of a batch -> DAG and id of its run."""


@dataclass(frozen=True)
class WaitingDag:
    """A DAG that waits for events of assets.

    Attributes:
        dag_id: its id.
        name: its name in the UI.
        is_paused: whether it is paused.
        missing: the assets whose events it also needs before it runs; empty if the events of the tables are enough.
    """

    dag_id: str
    name: str
    is_paused: bool
    missing: tuple[str, ...]


class OpenQuestion(NamedTuple):
    """A task in which the DAG of a form asks a person, and nobody has answered.

    Attributes:
        dag_id: its DAG.
        run_id: its run.
        task_id: the task.
        map_index: its index if it is mapped, else -1.
        form: the values of the form.
        asked_by: who has triggered the run; empty if no person has.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    form: Mapping[str, Any]
    asked_by: str


class WhereToAct(NamedTuple):
    """What Airflow knows of the items that need a person.

    Attributes:
        dags: table -> the DAGs that publish it, for the items whose action is to look at their runs.
        questions: the questions that wait for an answer, the newest first.
    """

    dags: Mapping[str, Sequence[str]]
    questions: Sequence[OpenQuestion]

    def question(self, item: Attention) -> OpenQuestion | None:
        """Return the question in which somebody has asked for the action of an item; None if nobody has."""
        about = {"table": item.table.table, **item.fields}
        about.pop("task", None)
        return next((each for each in self.questions if self._is_about(each, FORMS.get(item.action), about)), None)

    @staticmethod
    def _is_about(question: OpenQuestion, dag_id: str | None, about: Mapping[str, Any]) -> bool:
        return question.dag_id == dag_id and all(question.form.get(name) == value for name, value in about.items())


def current_dag(session: SessionDep, dag_id: str) -> DagModel | None:
    """Return a DAG that Airflow still finds in a file; None if there is none."""
    dag = DagModel.get_dagmodel(dag_id, session=session)
    return None if dag is None or dag.is_stale else dag


def domains_with_dag(session: SessionDep, domains: Collection[str]) -> set[str]:
    """Return those of some domains for which Airflow has a DAG."""
    query = select(DagModel.dag_id).where(DagModel.dag_id.in_(domains), ~DagModel.is_stale)
    return set(session.scalars(query))


def publishing_dags(session: SessionDep, tables: Collection[str]) -> dict[str, list[str]]:
    """Return table -> the DAGs with a task that publishes its asset, as the gate of a table does, by id."""
    query = (
        select(AssetModel.name, TaskOutletAssetReference.dag_id)
        .join(TaskOutletAssetReference, TaskOutletAssetReference.asset_id == AssetModel.id)
        .where(AssetModel.name.in_(tables))
        .order_by(TaskOutletAssetReference.dag_id)
        .distinct()
    )
    dags: dict[str, list[str]] = {}
    for table, dag_id in session.execute(query) if tables else ():
        dags.setdefault(table, []).append(dag_id)
    return dags


def where_to_act(session: SessionDep, items: Collection[Attention]) -> WhereToAct:
    """Return what Airflow knows of some items that need a person."""
    dags = publishing_dags(session, {item.table.table for item in items if item.action is Remedy.RUN})
    return WhereToAct(dags, _open_questions(session) if any(item.action in FORMS for item in items) else ())


def _open_questions(session: SessionDep) -> list[OpenQuestion]:
    ti = TaskInstance
    query = (
        select(ti.dag_id, ti.run_id, ti.task_id, ti.map_index, DagRun.conf, DagRun.triggering_user_name)
        .join(DagRun, and_(DagRun.dag_id == ti.dag_id, DagRun.run_id == ti.run_id))
        .where(ti.state == ASKING, ti.dag_id.in_(FORMS.values()))
        .order_by(ti.start_date.desc())
    )
    return [
        OpenQuestion(row.dag_id, row.run_id, row.task_id, row.map_index, row.conf or {}, row.triggering_user_name or "")
        for row in session.execute(query)
    ]


def existing_runs(session: SessionDep, batches: Iterable[tuple[str, str, RecentBatch]]) -> Runs:
    """Return (table, token) of a batch -> DAG and id of its run, for those of (table, domain, batch) with a run.

    The ledger knows the run of a batch, but not its DAG: Airflow knows which DAGs publish the table. The ledger keeps
    batches for longer than Airflow keeps runs: `airflow db clean` or a person deletes them.
    """
    of_airflow = [(table, domain, batch) for table, domain, batch in batches if not batch.is_of_command_line]
    dags = publishing_dags(session, {table for table, _, _ in of_airflow})
    possible = {
        (table, batch.token): [(dag_id, batch.run_id) for dag_id in _dags_of(batch, domain, dags.get(table, ()))]
        for table, domain, batch in of_airflow
    }
    asked: dict[str, set[str]] = {}
    for dag_id, run_id in chain.from_iterable(possible.values()):
        asked.setdefault(dag_id, set()).add(run_id)
    if not asked:
        return {}
    # A list of pairs would make SQLite read the whole table.
    of_dags = (and_(DagRun.dag_id == dag_id, DagRun.run_id.in_(ids)) for dag_id, ids in asked.items())
    query = select(DagRun.dag_id, DagRun.run_id).where(or_(*of_dags))
    found = {(row.dag_id, row.run_id) for row in session.execute(query)}
    runs = {place: next((run for run in of_batch if run in found), None) for place, of_batch in possible.items()}
    return {place: run for place, run in runs.items() if run}


def _dags_of(batch: RecentBatch, domain: str, publishing: Collection[str]) -> list[str]:
    """Return the DAGs that may have made a batch, the likeliest first.

    Ids of scheduled runs are the same in each DAG. So the DAG that is named like the domain comes first only if it
    publishes the table; it is last if it does not, as after the table was moved to another DAG.
    """
    if batch.kind is BatchKind.REBUILD:
        return [REBUILD_DAG_ID]
    of_table = [*sorted(publishing, key=lambda dag_id: dag_id != domain), domain]
    # A run of the table itself replays rows that have waited for another table.
    return [REPLAY_DAG_ID, *of_table] if batch.kind is BatchKind.REPLAY else of_table


class DayRun(NamedTuple):
    """The run that has the date of a day.

    Attributes:
        run_id: its id.
        state: its state in Airflow's words.
        is_of_day: whether the day is also its interval; that of a run by hand may be the day before.
    """

    run_id: str
    state: str
    is_of_day: bool = True


def runs_of_days(session: SessionDep, dag_id: str, starts: Collection[datetime]) -> dict[datetime, DayRun]:
    """Return start of an interval -> the run that Airflow has at that date, the newest if there are several."""
    query = (
        select(DagRun.logical_date, DagRun.run_id, DagRun.state, DagRun.data_interval_start)
        .where(DagRun.dag_id == dag_id, DagRun.logical_date.in_(starts))
        .order_by(DagRun.start_date)
    )
    return {
        row.logical_date: DayRun(row.run_id, str(row.state), row.data_interval_start == row.logical_date)
        for row in session.execute(query)
        if row.logical_date
    }


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
