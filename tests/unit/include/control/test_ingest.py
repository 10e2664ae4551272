"""Which landing files a bronze batch loads: each content once, under whatever name and time it comes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from include.control.batch import FileFact, Stream, Winner
from include.control.ingest import FilePlan, plan_files
from include.control.ledger import Ledger
from include.errors import BadInputError, ExitCode, NotReadyError
from include.paths import LakehousePaths
from tests.support.deliveries import Deliver
from tests.support.delta_tables import contents, day, intent_of
from tests.support.specs import bronze_spec

SPEC = bronze_spec()
ORDERS = Stream("bronze.orders")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(LakehousePaths(tmp_path / "lakehouse"))


def plan(landing: Path, ledger: Ledger, number: int = 1, table_id: str = "id") -> FilePlan:
    return plan_files(SPEC, landing, day(number), ledger, table_id)


def load(landing: Path, ledger: Ledger, batch_seq: int = 1) -> tuple[FileFact, ...]:
    """Load what is new of the first day as one batch."""
    new = plan(landing, ledger).new
    intent = intent_of("id", batch_seq, stream=ORDERS)
    ledger.record_intent(intent, new)
    ledger.record_committed([Winner(intent, batch_seq)])
    return new


def named(files: tuple[FileFact, ...]) -> list[str]:
    return [Path(file.path).name for file in files]


def test_all_files_of_a_first_delivery_are_new(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json")
    deliver("b.json", '{"order_id": "2"}')
    deliver("other day.json", number=2)
    found = plan(landing, ledger)
    assert (named(found.new), found.broken, found.loaded) == (["a.json", "b.json"], (), ())
    assert all(len(file.checksum) == 64 for file in found.new)


def test_a_missing_folder_is_not_ready(landing: Path, ledger: Ledger) -> None:
    with pytest.raises(NotReadyError):
        plan(landing, ledger)


def test_loaded_files_are_not_new_again_and_late_ones_are(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json")
    loaded = load(landing, ledger)
    assert plan(landing, ledger) == FilePlan((), (), loaded)
    deliver("late.json")
    found = plan(landing, ledger)
    assert (named(found.new), found.loaded) == (["late.json"], loaded)


def test_files_of_an_attempt_that_lost_are_still_new(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json")
    lost = plan(landing, ledger).new
    ledger.record_intent(intent_of("id", stream=ORDERS), lost)
    assert plan(landing, ledger).new == lost


def test_files_of_another_table_at_the_same_path_are_new(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json")
    loaded = load(landing, ledger)
    assert plan(landing, ledger, table_id="made anew").new == loaded


def test_a_touched_file_was_loaded_before_all_the_same(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    path = deliver("a.json")
    loaded = load(landing, ledger)
    os.utime(path, ns=(1, 1))
    found = plan(landing, ledger)
    assert (named(found.new), found.loaded) == ([], loaded)


def test_the_same_content_under_a_new_name_is_a_new_file(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json")
    load(landing, ledger)
    deliver("b.json")
    assert named(plan(landing, ledger).new) == ["b.json"]


def test_the_same_name_with_new_content_is_bad_input_that_names_both(
    landing: Path, deliver: Deliver, ledger: Ledger
) -> None:
    deliver("a.json", '{"order_id": "1"}\n')
    (before,) = load(landing, ledger)
    deliver("a.json", '{"order_id": "other"}\n')
    deliver("new.json")
    with pytest.raises(BadInputError) as raised:
        plan(landing, ledger)
    said = str(raised.value)
    assert said.startswith("bronze.orders: orders/date=2013-01-01/a.json was loaded before with other content: ")
    assert f"18 bytes, sha256 {before.checksum[:12]}; now 22 bytes, sha256 " in said
    assert "Nothing was loaded" in said
    assert "under a new name" in said
    assert raised.value.exit_code is ExitCode.BAD_INPUT


def test_new_content_of_the_same_size_is_seen_too(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    for name in ("a.json", "b.json"):
        deliver(name, "{}  \n")
    load(landing, ledger)
    for name in ("a.json", "b.json"):
        os.utime(deliver(name, "{  }\n"), ns=(1, 1))
    with pytest.raises(BadInputError, match=r"a\.json \(and 1 more\) was loaded before with other content: 5 bytes"):
        plan(landing, ledger)


def test_broken_files_are_set_apart_and_the_others_are_new(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    for name, content in (("a.json", "{}"), ("broken.json", "PAR1"), ("c.json", "{}"), ("empty.json", "")):
        deliver(name, content)
    found = plan(landing, ledger)
    assert named(found.new) == ["a.json", "c.json", "empty.json"]
    assert [(Path(file.path).name, file.defect[:27]) for file in found.broken] == [
        ("broken.json", "broken.json holds no JSON l")
    ]


def test_a_broken_file_that_is_delivered_again_is_new(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json", "PAR1")
    broken = plan(landing, ledger).broken
    ledger.record_failed("bronze.orders", "id", day(1).start, broken)
    assert plan(landing, ledger).broken == broken
    deliver("a.json", "{}")
    assert named(load(landing, ledger)) == ["a.json"]
    assert plan(landing, ledger).broken == ()


def test_a_loaded_file_that_was_taken_away_is_no_concern(landing: Path, deliver: Deliver, ledger: Ledger) -> None:
    deliver("a.json").with_name("b.json").write_text("{}")
    loaded = load(landing, ledger)
    (landing / loaded[0].path).unlink()
    assert plan(landing, ledger) == FilePlan((), (), loaded[1:])


def test_planning_writes_nothing(landing: Path, deliver: Deliver, ledger: Ledger, tmp_path: Path) -> None:
    deliver("a.json")
    load(landing, ledger)
    deliver("b.json", "PAR1")
    before = contents(tmp_path)
    plan(landing, ledger)
    assert contents(tmp_path) == before
