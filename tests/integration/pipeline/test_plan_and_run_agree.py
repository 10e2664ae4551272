"""What `lakehouse plan` says is what a run then does, in whatever state the tables and their landing folders are."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st

from millrace.catalog import load_catalog
from millrace.cli.runs.reports import ending, worst
from millrace.cli.runs.table_plans import plan_tables, reached_intervals
from millrace.cli.selection import Selection
from millrace.contracts.job.interval_args import DomainArgs
from millrace.contracts.job.report import JobReport
from millrace.control.landing.inspection import inspect
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.planning.advice import Advice
from millrace.control.planning.planner import Planner
from millrace.control.planning.run_plans import TablePlan
from millrace.errors import ExitCode, Outcome
from millrace.settings import Settings
from millrace_spark.jobs.run_intervals import run_intervals
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import day, optimize
from tests.support.listing import list_files

pytestmark = pytest.mark.slow

CHAIN = ("bronze.orders", "silver.orders", "gold.revenue_daily")
AT_MOST_TWO = {"expect_table_row_count_to_be_between": {"max_value": 2}, "action": "fail", "reason": "two at most"}
SOURCE = {"landing": "orders", "files": "*.json", "format": "json", "min_age": "60 minutes"}
LONG_AGO = 1_000_000_000
STATES = (
    "never built",
    "sound",
    "bronze refused",
    "silver refused",
    "bronze open",
    "silver open",
    "deletes refused",
    "deletes to come",
)


@dataclass(frozen=True)
class Question:
    """What is asked, and what befell the lakehouse before."""

    state: str
    befell: tuple[str, ...]
    days: tuple[int, ...]
    tables: tuple[str, ...]
    reprocess: bool
    skip_missing: bool


def deliver(lakehouse: Lakehouse, number: int, name: str, text: str = "", *, is_young: bool = False) -> Path:
    content = text or [order(f"{number}{name}", 5, of_day=number)]
    path = lakehouse.deliver(number, name, content)
    if not is_young:
        os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def fail(lakehouse: Lakehouse, times: int) -> None:
    """A broken file that has failed before; not where there is no table, which would have no failures."""
    spec, table = catalog(lakehouse).spec(CHAIN[0]), lakehouse.paths.table(CHAIN[0])
    if not table.exists():
        return
    deliver(lakehouse, 2, "broken.json.gz", "no gzip")
    deliver(lakehouse, 2, "broken.json", '[{"a": ')
    place = LocalLanding(str(lakehouse.folder / "landing"))
    files = [inspect(file, place, spec) for file in list_files(spec, place, day(2)) if "broken" in file.path]  # type: ignore[arg-type]
    assert all(file.defect for file in files)
    for _ in range(times):
        Ledger(lakehouse.paths).record_files(FileEvent.FAILED, spec.table, table_id(table), day(2), files)


def optimized(lakehouse: Lakehouse, table: str) -> None:
    if lakehouse.paths.table(table).exists():
        optimize(lakehouse.paths.table(table))


def other_keys(lakehouse: Lakehouse) -> None:
    """Keys on which the rows of silver that are there do not stand."""
    (file,) = (lakehouse.folder / "tables" / "silver").rglob("orders.yaml")
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "keys": ["order_id", "day"]}))


BEFALLS: dict[str, Callable[[Lakehouse], object]] = {
    "a new file": lambda lakehouse: deliver(lakehouse, 2, "late.json"),
    "a new day": lambda lakehouse: deliver(lakehouse, 3, "a.json"),
    "a young file": lambda lakehouse: deliver(lakehouse, 2, "young.json", is_young=True),
    "a file that failed": lambda lakehouse: fail(lakehouse, 1),
    "a file that was given up": lambda lakehouse: fail(lakehouse, 3),
    "a folder is gone": lambda lakehouse: shutil.rmtree(lakehouse.folder / "landing" / "orders" / "date=2013-01-01"),
    "an empty folder": lambda lakehouse: (lakehouse.folder / "landing/orders/date=2013-01-04").mkdir(),
    "other keys": other_keys,
    "OPTIMIZE of bronze": lambda lakehouse: optimized(lakehouse, CHAIN[0]),
}


def catalog(lakehouse: Lakehouse):
    return load_catalog(lakehouse.folder / "tables")


def documents(refuse: str = "", **silver: object):
    made = (bronze_document(source=SOURCE), silver_document(**silver), gold_document())
    return [
        {**document, "expectations": [AT_MOST_TWO]} if document["table"] == refuse else document for document in made
    ]


def open_last_batch(lakehouse: Lakehouse, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of the table that dies after its commit."""
    with monkeypatch.context() as dying:
        dying.setattr(Ledger, "record_closed", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("died")))
        assert lakehouse.run(table, 2).outcome is Outcome.FAILED


@pytest.fixture(scope="module")
def states(shared: Lakehouse) -> dict[str, Lakehouse]:
    """Lakehouses to begin with, by what is the matter with each."""
    root, made = shared.folder.parent, dict[str, Lakehouse]()
    with pytest.MonkeyPatch.context() as monkeypatch:
        for state in STATES:
            lakehouse = made[state] = Lakehouse(root / state.replace(" ", "-"))
            table, _, matter = state.partition(" ")
            is_full = {"snapshot": "full", "sequence_by": [], "max_deleted_percent": 20} if table == "deletes" else {}
            lakehouse.specs(*documents(f"{table}.orders" if matter == "refused" else "", **is_full))
            deliver(lakehouse, 1, "a.json")
            deliver(lakehouse, 1, "b.json")
            if state != "never built":
                first = lakehouse.run_all(1, *CHAIN)
                assert not [report.message for report in first if ending(report) is not ExitCode.OK]
            deliver(lakehouse, 2, "a.json")
            if state in ("sound", "silver refused", "silver open", "deletes refused", "deletes to come"):
                assert lakehouse.run(CHAIN[0], 2).outcome is Outcome.COMMITTED
            if state == "deletes refused":
                assert ending(lakehouse.run("silver.orders", 2)) is ExitCode.DELETES_REFUSED
            elif matter == "refused":
                assert ending(lakehouse.run(f"{table}.orders", 2)) is ExitCode.GATE_FAILED
            if matter == "open":
                open_last_batch(lakehouse, f"{table}.orders", monkeypatch)
            if state == "sound":
                lakehouse.run_all(2, *CHAIN[1:])
    return made


QUESTIONS = st.builds(
    Question,
    state=st.sampled_from(STATES),
    befell=st.lists(st.sampled_from(sorted(BEFALLS)), unique=True, max_size=2).map(tuple),
    days=st.sampled_from([(1,), (2,), (3,), (4,), (1, 2, 3), (2, 3, 4), (3, 4)]),
    tables=st.sampled_from([CHAIN, CHAIN, CHAIN[1:], CHAIN[:1]]),
    reprocess=st.just(False) | st.booleans(),
    skip_missing=st.booleans(),
)


@pytest.mark.timeout(1800)
@settings(
    max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@example(question=Question("sound", (), (1, 2), CHAIN, reprocess=True, skip_missing=False))
@example(question=Question("deletes refused", (), (2,), CHAIN, reprocess=False, skip_missing=False))
@example(question=Question("silver refused", ("OPTIMIZE of bronze",), (2,), CHAIN, reprocess=False, skip_missing=False))
@example(question=Question("never built", ("a new file",), (2, 3), CHAIN, reprocess=True, skip_missing=True))
@example(question=Question("sound", ("other keys",), (1, 2, 3), CHAIN, reprocess=False, skip_missing=True))
@example(question=Question("sound", ("a new day", "other keys"), (3,), CHAIN, reprocess=False, skip_missing=False))
@given(question=QUESTIONS)
def test_what_plan_says_is_what_run_does(states: dict[str, Lakehouse], question: Question) -> None:
    with tempfile.TemporaryDirectory(dir=states["sound"].folder.parent) as folder:
        lakehouse = copy_lakehouse(states[question.state], Path(folder) / "shop")
        for name in question.befell:
            BEFALLS[name](lakehouse)
        require_agreement(lakehouse, question)


def require_agreement(lakehouse: Lakehouse, question: Question) -> None:
    answers = asked(lakehouse, question)
    before = standing(lakehouse, question.tables)
    said = DomainArgs(
        domain="shop",
        run_id="test",
        root=lakehouse.paths.root,
        landing=str(lakehouse.folder / "landing"),
        tables=lakehouse.folder / "tables",
        reports=lakehouse.folder / "reports",
        table=question.tables,
    )
    arguments = said.for_intervals(
        [day(number) for number in question.days],
        reprocess=question.reprocess,
        skip_missing=question.skip_missing,
    )
    reports = dict[tuple[object, str], JobReport]()
    for report in run_intervals(arguments):
        reports[report.interval, report.table] = report
    passed, code = reached_intervals(answers)
    for answer in answers:
        report = reports.get((answer.interval, answer.table))
        assert (report is not None) == (answer.interval in passed), answer.message
        if report is None:
            continue
        after = standing(lakehouse, question.tables)
        event(f"{answer.kind}")
        if answer.has_new_data and ending(report) in (ExitCode.GATE_FAILED, ExitCode.DELETES_REFUSED):
            return  # what is written is judged, and what goes is counted, by nobody before it is there
        assert ending(report) is answer.exit_code, f"{answer.message}\n{report.message}"
        assert answer.has_new_data or report.outcome is not Outcome.COMMITTED, f"{answer.message}\n{report.message}"
        assert not answer.has_new_data or after[answer.table] != before[answer.table], (
            f"{answer.message}\n{report.message}"
        )
    assert worst(ending(report) for report in reports.values()) is code


def asked(lakehouse: Lakehouse, question: Question) -> list[TablePlan]:
    known = catalog(lakehouse)
    specs = tuple(known.spec(table) for table in question.tables)
    days = tuple(day(number) for number in question.days)
    selection = Selection(known, "shop", specs, days, names_tables=True)
    return plan_tables(
        selection, settings_of(lakehouse), reprocess=question.reprocess, skip_missing=question.skip_missing
    )


def standing(lakehouse: Lakehouse, tables: tuple[str, ...]) -> dict[str, Advice]:
    planner = Planner(catalog(lakehouse), settings_of(lakehouse))
    return {table: planner.standing(catalog(lakehouse).spec(table)).advice for table in tables}


def settings_of(lakehouse: Lakehouse) -> Settings:
    folder = lakehouse.folder
    return Settings(root=lakehouse.paths.root, landing=str(folder / "landing"), tables=folder / "tables")
