"""Landing files: which ones are listed, and what identifies each."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.inspection import inspect
from millrace.control.landing.landing import interval_folder, is_unchanged
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.log.batch import FileFact
from millrace.errors import ExitCode, NotReadyError, StorageError
from tests.support.deliveries import Deliver, orders_spec_of
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day
from tests.support.listing import list_files


def names(spec: BronzeSpec, landing: Path, number: int = 1) -> list[str]:
    return [Path(file.path).name for file in list_files(spec, LocalLanding(str(landing)), day(number))]


def test_a_folder_that_is_missing_or_no_folder_is_not_ready_and_the_message_says_what_to_do(
    landing: Path, deliver: Deliver
) -> None:
    deliver("a.json", number=2)
    with pytest.raises(NotReadyError) as raised:
        list_files(bronze_spec(), LocalLanding(str(landing)), day(1))
    said = str(raised.value)
    cause, way_out = said.split("\n")
    assert cause == f"bronze.orders: no landing folder {landing}/orders/date=2013-01-01"
    assert "The source has not delivered yet" in way_out
    assert raised.value.exit_code is ExitCode.NOT_READY
    (landing / "orders" / "date=2013-01-01").write_text("")
    with pytest.raises(NotReadyError):
        list_files(bronze_spec(), LocalLanding(str(landing)), day())
    deliver("a.json", number=3).unlink()
    assert list_files(bronze_spec(), LocalLanding(str(landing)), day(3)) == (), "a delivery of nothing"


@pytest.mark.parametrize("closed", ["orders/date=2013-01-01/eu", "orders", "orders/date=2013-01-01/a.json"])
def test_a_folder_without_permission_is_named_and_does_not_count_as_missing(
    deliver: Deliver, landing: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    for name in ("a.json", "eu/b.json"):
        deliver(name)
    (landing / closed).chmod(0)
    place = LocalLanding(".")
    monkeypatch.chdir(landing)
    user = os.geteuid()
    os.seteuid(user or 65534)  # root may read everything
    try:
        with pytest.raises(StorageError, match=rf"^\./{closed}\S* may not be read \(Permission denied\)"):
            [place.open(file.path) for file in list_files(bronze_spec(), place, day())]
    finally:
        os.seteuid(user)


def test_hidden_and_unfinished_files_are_not_listed(landing: Path, deliver: Deliver) -> None:
    for name in (
        "whole.json",
        ".hidden.json",
        "_started.json",
        "a.json.tmp",
        "a.json.partial",
        "a.json.crc",
        "a.json._COPYING_",
        "a.json.inprogress",
        "_temporary/0/part-0.json",
        ".staging/a.json",
        "part/_delta_log/0.json",
        "upload.tmp/a.json",
    ):
        deliver(name)
    assert names(orders_spec_of("json"), landing) == ["whole.json"]


def test_a_name_that_is_no_utf_8_text_is_a_defect_of_its_file(landing: Path, deliver: Deliver) -> None:
    deliver("a.json", b"{}")
    folder = next(landing.rglob("a.json")).parent
    os.rename(folder / "a.json", os.fsencode(folder) + b"/M\xe1laga.json")
    deliver("b.json", b"{}")
    spec, place = orders_spec_of("json"), LocalLanding(str(landing))
    found = [inspect(file, place, spec) for file in list_files(spec, place, day())]
    assert {Path(file.path).name: file.defect for file in found} == {
        "M\\xe1laga.json": "its name is no UTF-8 text: deliver it under another",
        "b.json": "",
    }


def test_folders_within_folders_stop_no_file(landing: Path, deliver: Deliver, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver("a.json", b"{}")
    monkeypatch.chdir(top := next(landing.rglob("a.json")).parent)
    for _ in range(sys.getrecursionlimit() + 500):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(top)
    assert names(orders_spec_of("json"), landing) == ["a.json"]
    subprocess.run(["rm", "-r", "d"], check=True)  # pytest would call itself for each of them


def test_a_link_out_of_the_landing_root_and_one_to_itself_are_defects_and_one_within_is_read(
    tmp_path: Path, landing: Path, deliver: Deliver
) -> None:
    (tmp_path / "elsewhere.json").write_text('{"order_id": "not of this source"}')
    folder = deliver("whole.json").parent
    for name, target in {
        "out": tmp_path / "elsewhere.json",
        "loop": "loop.json",
        "within": folder / "whole.json",
    }.items():
        (folder / f"{name}.json").symlink_to(target)
    place, spec = LocalLanding(str(landing)), orders_spec_of("json")
    defects = {Path(file.path).stem: inspect(file, place, spec, ()).defect for file in list_files(spec, place, day())}
    assert defects == {
        "loop": "it is a link that cannot be followed (Too many levels of symbolic links): deliver the file itself",
        "out": "it is a link to a place outside of the landing root: deliver the file itself",
        "whole": "",
        "within": "",
    }


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("*.json", ["a.json", "c.json", "b.json", "e.json"]),
        ("*.json*", ["a.json", "a.json.gz", "c.json", "b.json", "e.json"]),
        ("north/*.json", ["b.json"]),
        ("north/**/*.json", ["c.json", "b.json"]),
        ("*/**/*.json", ["c.json", "b.json", "e.json"]),
        ("**/" * 40 + "b.json", ["b.json"]),
    ],
)
def test_only_files_that_the_spec_selects_are_listed_a_pattern_with_a_slash_selects_paths(
    landing: Path, deliver: Deliver, pattern: str, wanted: list[str]
) -> None:
    for name in ("a.json", "a.json.gz", "README.md", "north/b.json", "north/2013/c.json", "south/_old/d.json"):
        deliver(name)
    deliver("south/e.json")
    assert names(orders_spec_of("json", pattern), landing) == wanted


def test_a_path_may_be_without_the_interval_and_have_its_end_and_folders_above_may_have_any_name(
    landing: Path, deliver: Deliver
) -> None:
    deliver("a.json", number=1)
    deliver("b.json", number=2)
    (landing / "orders" / "c.json").write_text("{}")
    (landing / "orders").rename(landing / ".feeds.tmp")
    everything = orders_spec_of("json", landing=".feeds.tmp", path=".")
    assert names(everything, landing, 1) == names(everything, landing, 9) == ["c.json", "a.json", "b.json"]
    assert names(orders_spec_of("json", landing=".feeds.tmp"), landing) == ["a.json"]
    by_both = orders_spec_of("json", path="{interval_start:%Y/%j}/to-{interval_end:%d}")
    assert interval_folder(by_both.landing_source, day(2)) == "orders/2013/002/to-03"


def test_a_file_is_unchanged_by_path_size_and_time() -> None:
    file = FileFact(path="a.json", size=1, mtime_ns=2)
    assert is_unchanged(file, {"a.json": replace(file, checksum="c")})
    assert not is_unchanged(file, {})
    for change in ({"size": 3}, {"mtime_ns": 3}):
        assert not is_unchanged(file, {"a.json": replace(file, **change)})
