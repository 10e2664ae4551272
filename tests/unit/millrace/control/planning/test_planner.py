"""The planner tells what a run would do, without a lease, without Spark, and without writing a byte."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from millrace.contracts.interval import Interval
from millrace.contracts.job.requests import RowFilter
from millrace.control.gates.overrides import override
from millrace.control.gates.result import Override
from millrace.control.landing import matching
from millrace.control.landing.inspection import inspect
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import BatchSources, FileFact, Stream, Winner
from millrace.control.planning.advice import Advice
from millrace.control.planning.complete_batches import replay_interval
from millrace.control.planning.planner import Planner
from millrace.control.planning.run_plans import PlanKind, RunPlanner
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import SUMMARY, StoredRows
from millrace.errors import ExitCode, NotReadyError, TornLogError
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.deliveries import Deliver
from tests.support.documents.specs import bronze_spec, catalog_of
from tests.support.ledger.delta_tables import (
    append,
    commit,
    commit_file,
    day,
    intent_of,
    judge,
    load_batch,
)
from tests.support.ledger.planning import BRONZE, CheckedPlanner
from tests.support.ledger.quarantine_rows import quarantine, refused
from tests.support.ledger.small_lake import commit_sources
from tests.support.listing import list_files

ROW_COUNT = {"expect_table_row_count_to_be_between": {"min_value": 1}, "action": "fail", "reason": "an empty day"}
STREAM = Stream("bronze.orders")
ONE_DAY = "orders/date=2013-01-01"


def loaded(landing: Path) -> tuple[FileFact, ...]:
    place = LocalLanding(str(landing))
    return tuple(inspect(file, place, BRONZE) for file in list_files(BRONZE, place, day()))


def load(root: Path, landing: Path, *, closed: bool = True, passed: bool = True) -> Winner:
    """Load what the folder has into the table, and record the result of the gate."""
    winner = load_batch(root, BRONZE, files=loaded(landing), closed=closed)
    judge(root, BRONZE, winner.version, passed=passed)
    return winner


def test_a_run_would_load_the_files_of_a_delivered_folder_that_are_new_by_their_content(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json", number=2)
    with pytest.raises(NotReadyError, match="no landing folder"):
        advise()
    deliver("a.json").unlink()
    assert (advise().nothing_new, advise().message) == (False, "0 new of 0 files")
    first = deliver("a.json", "12345")
    deliver("b.json", "123")
    assert advise() == Advice(
        table="bronze.orders",
        nothing_new=False,
        message="2 new of 2 files",
        has_new_data=True,
        files=(f"{ONE_DAY}/a.json", f"{ONE_DAY}/b.json"),
        bytes=8,
    )
    winner = load(root, landing)
    nothing_new = Advice(
        table="bronze.orders",
        nothing_new=True,
        message="0 new of 2 files",
        batch_seq=1,
        version=winner.version,
        newest_version=winner.version,
        certified_version=winner.version,
    )
    assert advise() == nothing_new
    os.utime(first, ns=(1, 1))
    assert advise() == nothing_new, "only its time is another one"
    late = deliver("late.json", "123")
    advice = advise()
    assert (advice.nothing_new, advice.message) == (False, "1 new of 3 files")
    assert (advice.files, advice.bytes) == ((f"{ONE_DAY}/late.json",), 3)
    assert (advice.batch_seq, advice.version) == (1, 1)
    late.unlink()
    os.utime(deliver("a.json", "22345"), ns=(2, 2))
    advice = advise()
    assert (advice.nothing_new, advice.files) == (False, (f"{ONE_DAY}/a.json",))


def test_a_file_that_was_given_up_is_not_new_and_stays_in_the_notes(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    winner = load(root, landing)
    deliver("b.json", "no record")
    broken = next(file for file in loaded(landing) if file.path.endswith("b.json"))
    for _ in range(BRONZE.landing_source.max_attempts_per_file):
        Ledger(LakehousePaths(root)).record_files(
            FileEvent.FAILED, BRONZE.table, winner.intent.table_id, day(), [broken]
        )
    assert (advise().nothing_new, advise().message) == (True, "0 new of 2 files")
    (note,) = advise().notes
    assert note.startswith(f"{ONE_DAY}/b.json was given up after 3 attempts")
    os.utime(landing / broken.path, ns=(1, 1))
    assert (advise().nothing_new, advise().message, advise().notes) == (True, "0 new of 2 files", (note,))


def test_a_run_fails_by_a_file_with_other_content_unless_the_spec_says_what_that_means(
    root: Path, landing: Path, deliver: Deliver
) -> None:
    path = deliver("a.json")
    load(root, landing)
    os.utime(deliver("a.json", path.read_text().replace("1", "2")), ns=(2, 2))
    deliver("new.json")
    settings = Settings(root=root, landing=str(landing), tables=landing)
    for on_changed_file, kind, code in (
        ("reject", PlanKind.FAILS, ExitCode.BAD_INPUT),
        ("append_new_version", PlanKind.WRITES, ExitCode.OK),
        ("replace", PlanKind.WRITES, ExitCode.OK),
    ):
        source = {"landing": "orders", "format": "json", "on_changed_file": on_changed_file}
        spec = bronze_spec(source=source)
        [plan] = RunPlanner(Planner(catalog_of(spec), settings)).interval([spec], day())
        assert (plan.kind, plan.exit_code) == (kind, code), on_changed_file
        assert (f"{ONE_DAY}/a.json: it was loaded before with other content" in plan.message) == (code != ExitCode.OK)
        assert ("\nHave the source deliver corrections under a new name" in plan.obstacle) == (code != ExitCode.OK)


def test_a_batch_is_complete_once_it_is_closed_and_judged_by_the_present_rules(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    waiting = "0 new of 1 file; the last batch is still to be completed"

    def last() -> tuple[bool, str, int | None, int | None, int | None]:
        advice = advise()
        return advice.nothing_new, advice.message, advice.batch_seq, advice.version, advice.certified_version

    unclosed = load(root, landing, closed=False)
    assert last() == (False, waiting, 1, unclosed.version, unclosed.version)
    certified = load(root, landing).version
    assert last() == (True, "0 new of 1 file", 2, certified, certified)
    newer = bronze_spec(expectations=[ROW_COUNT])
    assert newer.suite_hash != BRONZE.suite_hash
    assert not advise(newer).nothing_new
    unjudged = load_batch(root, BRONZE, files=loaded(landing))
    unchecked = "0 new of 1 file; the last batch is still to be checked by its rules"
    assert last() == (False, unchecked, 3, unjudged.version, certified)
    judge(root, BRONZE, unjudged.version, passed=False)
    assert last() == (True, "0 new of 1 file", 3, unjudged.version, certified), "a refusal is a result too"
    changed = bronze_spec(delta={"delta.logRetentionDuration": "interval 60 days"})
    assert advise().notes == ()
    assert advise(changed).notes == (
        "bronze.orders: its last batch followed another spec, and which one was not recorded",
    )
    let, paths = Override(by="ann", reason="a holiday", run_id="cli", at=day().start), LakehousePaths(root)
    override(BRONZE, unjudged.version, let, paths)
    assert last() == (True, "0 new of 1 file", 3, unjudged.version, unjudged.version)
    [note] = advise().notes
    assert note.startswith(
        "readers use version 3 of bronze.orders, certified by hand by ann at 2013-01-01 00:00 UTC: a holi"
    )
    table, intent = paths.table(BRONZE.table), intent_of(unjudged.intent.table_id, 4, stream=STREAM)
    committed = commit(table, intent)
    assert last() == (False, waiting, 4, committed.version, unjudged.version), "its driver died after the commit"
    append(table)
    commit_file(table, committed.version).unlink()
    with pytest.raises(TornLogError):
        advise()


def test_a_plan_that_stops_early_says_so_and_takes_nothing_for_known(
    root: Path, landing: Path, deliver: Deliver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_CHUNK", 50)
    for number in range(51):
        deliver(f"{number}.json", "{}")
    settings = Settings(root=root, landing=str(landing), tables=landing)
    planner = Planner(catalog_of(BRONZE), settings, is_enough=lambda files: files >= 50)
    advice = planner.advise(BRONZE, day())
    assert (len(advice.files), advice.is_partial) == (50, True)
    assert advice.message == "50 new of the first 50 files that were compared; the folder has more"
    winner = load_batch(root, BRONZE, files=tuple(list_files(BRONZE, LocalLanding(str(landing)), day())))
    judge(root, BRONZE, winner.version)
    [plan] = RunPlanner(planner).interval([BRONZE], day())
    assert (plan.kind, plan.is_idle, plan.has_new_data) == (PlanKind.UNKNOWN, False, False)
    [whole] = RunPlanner(Planner(catalog_of(BRONZE), settings)).interval([BRONZE], day())
    assert (whole.kind, whole.message) == (PlanKind.NOTHING, "nothing to do: 0 new of 51 files")


def test_rows_are_replayed_for_the_newest_interval_that_delivered_some_of_them(root: Path) -> None:
    paths, table, first = LakehousePaths(root), BRONZE.table, day(1)
    hour = Interval(start=first.start, end=first.start + timedelta(hours=1))
    commit_sources(root, BRONZE, hour, "run", BatchSources())

    def interval() -> Interval | None:
        return replay_interval(BRONZE, quarantined_rows(StoredRows(table, paths), RowFilter(), SUMMARY), paths)

    quarantine(paths, table, refused(1, "too low"))
    assert interval() == hour
    quarantine(paths, table, refused(2, "too low", of_day=2))
    assert interval() == day(2), "no batch of it is known: it was a day"
