"""The planner tells what a run would do, without a lease, without Spark, and without writing a byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from include.control.gates.overrides import override
from include.control.gates.result import Override
from include.control.landing.inspection import inspect
from include.control.landing.on_disk import LocalLanding
from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact, Stream
from include.control.planning.advice import Advice
from include.control.planning.planner import Planner
from include.control.planning.run_plans import Kind, RunPlanner
from include.control.planning.stream_positions import stream_position
from include.errors import ExitCode, NotReadyError, TornLogError
from include.paths import LakehousePaths
from include.settings import Settings
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
from tests.support.ledger.planning import BRONZE, CheckedPlanner, certify_bronze
from tests.support.listing import list_files

ROW_COUNT = {"expect_table_row_count_to_be_between": {"min_value": 1}, "action": "fail", "reason": "an empty day"}
STREAM = Stream("bronze.orders")
ONE_DAY = "orders/date=2013-01-01"


def loaded(landing: Path) -> tuple[FileFact, ...]:
    place = LocalLanding(str(landing))
    return tuple(inspect(file, place, BRONZE) for file in list_files(BRONZE, place, day()))


def test_a_first_run_would_load_all_files(landing: Path, deliver: Deliver, advise: CheckedPlanner) -> None:
    deliver("a.json", "12345")
    deliver("b.json", "123")
    assert advise() == Advice(
        table="bronze.orders",
        nothing_new=False,
        message="2 new of 2 files",
        has_new_data=True,
        files=(f"{ONE_DAY}/a.json", f"{ONE_DAY}/b.json"),
        bytes=8,
    )


def test_a_missing_delivery_is_not_ready(deliver: Deliver, advise: CheckedPlanner) -> None:
    deliver("a.json", number=2)
    with pytest.raises(NotReadyError, match="no landing folder"):
        advise()


def test_an_empty_delivery_before_the_first_batch_is_no_batch(deliver: Deliver, advise: CheckedPlanner) -> None:
    deliver("a.json").unlink()
    assert (advise().nothing_new, advise().message) == (False, "0 new of 0 files")


def test_a_plan_names_the_person_who_overrode_a_refusal(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    winner = load_batch(root, BRONZE, files=loaded(landing))
    judge(root, BRONZE, winner.version, passed=False)
    assert (advise().certified_version, advise().notes) == (None, ())
    let = Override(by="ann", reason="a holiday", run_id="cli", at=day().start)
    override(BRONZE, winner.version, let, LakehousePaths(root))
    assert (advise().nothing_new, advise().certified_version) == (True, winner.version)
    [note] = advise().notes
    assert note.startswith(
        "readers use version 1 of bronze.orders, overridden by ann at 2013-01-01 00:00 UTC: a holiday"
    )


def test_nothing_is_new_once_all_is_loaded_closed_and_judged(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    winner = load_batch(root, BRONZE, files=loaded(landing))
    judge(root, BRONZE, winner.version)
    assert advise() == Advice(
        table="bronze.orders",
        nothing_new=True,
        message="0 new of 1 file",
        batch_seq=1,
        version=winner.version,
        newest_version=winner.version,
        certified_version=winner.version,
    )


def test_a_file_that_was_given_up_is_not_new_and_stays_in_the_notes(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    winner = load_batch(root, BRONZE, files=loaded(landing))
    judge(root, BRONZE, winner.version)
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


def test_a_late_file_is_new(root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner) -> None:
    deliver("a.json")
    judge(root, BRONZE, load_batch(root, BRONZE, files=loaded(landing)).version)
    deliver("late.json", "123")
    advice = advise()
    assert (advice.nothing_new, advice.message) == (False, "1 new of 2 files")
    assert (advice.files, advice.bytes) == ((f"{ONE_DAY}/late.json",), 3)
    assert (advice.batch_seq, advice.version) == (1, 1)


def test_a_file_is_new_by_its_content_and_not_by_its_time(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    path = deliver("a.json")
    judge(root, BRONZE, load_batch(root, BRONZE, files=loaded(landing)).version)
    os.utime(path, ns=(1, 1))
    assert (advise().nothing_new, advise().message) == (True, "0 new of 1 file")
    os.utime(deliver("a.json", path.read_text().replace("1", "2")), ns=(2, 2))
    advice = advise()
    assert (advice.nothing_new, advice.files) == (False, (f"{ONE_DAY}/a.json",))


def test_a_run_fails_by_a_file_with_other_content_unless_the_spec_says_what_that_means(
    root: Path, landing: Path, deliver: Deliver
) -> None:
    path = deliver("a.json")
    judge(root, BRONZE, load_batch(root, BRONZE, files=loaded(landing)).version)
    os.utime(deliver("a.json", path.read_text().replace("1", "2")), ns=(2, 2))
    deliver("new.json")
    settings = Settings(root=root, landing=str(landing), tables=landing)
    for on_changed_file, kind, code in (
        ("reject", Kind.FAILS, ExitCode.BAD_INPUT),
        ("append_new_version", Kind.WRITES, ExitCode.OK),
        ("replace", Kind.WRITES, ExitCode.OK),
    ):
        source = {"landing": "orders", "format": "json", "on_changed_file": on_changed_file}
        spec = bronze_spec(source=source)
        [plan] = RunPlanner(Planner(catalog_of(spec), settings)).interval([spec], day())
        assert (plan.kind, plan.exit_code) == (kind, code), on_changed_file
        assert (f"{ONE_DAY}/a.json: it was loaded before with other content" in plan.message) == (code != ExitCode.OK)


def test_a_batch_that_is_not_closed_is_not_complete(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    winner = load_batch(root, BRONZE, files=loaded(landing), closed=False)
    judge(root, BRONZE, winner.version)
    advice = advise()
    assert not advice.nothing_new
    assert advice.message == "0 new of 1 file; the last batch is still to be completed or checked"
    assert (advice.batch_seq, advice.certified_version) == (1, winner.version)


def test_a_batch_without_a_gate_result_is_not_complete(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    load_batch(root, BRONZE, files=loaded(landing))
    advice = advise()
    assert not advice.nothing_new
    assert "still to be completed or checked" in advice.message
    assert advice.certified_version is None


def test_a_batch_that_only_older_rules_checked_is_not_complete(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    judge(root, BRONZE, load_batch(root, BRONZE, files=loaded(landing)).version)
    newer = bronze_spec(expectations=[ROW_COUNT])
    assert newer.suite_hash != BRONZE.suite_hash
    assert advise(BRONZE).nothing_new
    assert not advise(newer).nothing_new


def test_a_refused_batch_is_complete_and_keeps_the_earlier_certificate(
    root: Path, landing: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    certified = certify_bronze(root)
    refused = load_batch(root, BRONZE, files=loaded(landing))
    judge(root, BRONZE, refused.version, passed=False)
    advice = advise()
    assert advice.nothing_new
    assert (advice.batch_seq, advice.version, advice.certified_version) == (2, refused.version, certified)


def test_a_batch_whose_driver_died_right_after_its_commit_is_found_in_the_log(
    root: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    first = load_batch(root, BRONZE)
    judge(root, BRONZE, first.version)
    second = commit(LakehousePaths(root).table("bronze.orders"), intent_of(first.intent.table_id, 2, stream=STREAM))
    advice = advise()
    assert (advice.batch_seq, advice.version) == (2, second.version)
    assert "still to be completed" in advice.message


def test_a_torn_log_stops_the_plan(root: Path, deliver: Deliver, advise: CheckedPlanner) -> None:
    deliver("a.json")
    load_batch(root, BRONZE)
    append(LakehousePaths(root).table("bronze.orders"))
    commit_file(LakehousePaths(root).table("bronze.orders"), 1).unlink()
    with pytest.raises(TornLogError):
        advise()


def test_a_spec_that_changed_since_the_last_batch_is_noted(
    root: Path, deliver: Deliver, advise: CheckedPlanner
) -> None:
    deliver("a.json")
    load_batch(root, BRONZE)
    assert advise().notes == ()
    changed = bronze_spec(delta={"delta.logRetentionDuration": "interval 60 days"})
    assert advise(changed).notes == (
        "bronze.orders: its last batch followed another spec, and which one was not recorded",
    )


def test_a_table_that_was_never_written_has_no_position(root: Path) -> None:
    paths = LakehousePaths(root)
    assert stream_position(BRONZE, paths, Ledger(paths)) is None
    assert not root.exists()


def test_a_plan_that_stops_early_says_so_and_takes_nothing_for_known(
    root: Path, landing: Path, deliver: Deliver
) -> None:
    folder = deliver("0.json").parent
    for number in range(1, 5001):
        (folder / f"{number}.json").write_text("{}")
    settings = Settings(root=root, landing=str(landing), tables=landing)
    planner = Planner(catalog_of(BRONZE), settings, is_enough=lambda files: files >= 5000)
    advice = planner.advise(BRONZE, day())
    assert (len(advice.files), advice.is_partial) == (5000, True)
    assert advice.message == "5000 new of the first 5,000 files that were compared; the folder has more"
    winner = load_batch(root, BRONZE, files=tuple(list_files(BRONZE, LocalLanding(str(landing)), day())))
    judge(root, BRONZE, winner.version)
    [plan] = RunPlanner(planner).interval([BRONZE], day())
    assert (plan.kind, plan.is_idle, plan.has_new_data) == (Kind.UNKNOWN, False, False)
    [whole] = RunPlanner(Planner(catalog_of(BRONZE), settings)).interval([BRONZE], day())
    assert (whole.kind, whole.message) == (Kind.NOTHING, "nothing to do: 0 new of 5,001 files")
