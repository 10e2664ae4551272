"""Small objects with conditional puts: exactly one of several racing writers wins."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import pytest

from millrace.contracts.lake_path import S3Path
from millrace.control.storage.objects import LocalObjectStore
from millrace.control.storage.objects_on_s3 import ObjectStore, S3ObjectStore
from tests.support.processes import run_together
from tests.support.storage.object_race import race_to_replace

RACERS, ROUNDS = 4, 15


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "_millrace" / "leases"


@pytest.fixture
def store(folder: Path) -> LocalObjectStore:
    return LocalObjectStore(folder)


@pytest.fixture(params=["folder", "bucket"])
def any_store(request: pytest.FixtureRequest, folder: Path) -> ObjectStore:
    """An empty store of each kind."""
    if request.param == "folder":
        return LocalObjectStore(folder)
    bucket = request.getfixturevalue("bucket")
    return S3ObjectStore(S3Path(f"s3://{bucket.name}/{uuid4().hex}/_millrace/leases"))


def etag_of(store: ObjectStore, key: str) -> str:
    found = store.get(key)
    assert found is not None
    return found.etag


def body_of(store: ObjectStore, key: str) -> bytes | None:
    found = store.get(key)
    return found.body if found else None


def test_an_empty_store_has_nothing_and_reading_creates_nothing(any_store: ObjectStore, folder: Path) -> None:
    assert any_store.get("a") is None
    assert any_store.keys("") == []
    assert not folder.exists()
    assert not any_store.put_if_match("a", b"", "etag")


def test_an_object_is_created_once(any_store: ObjectStore) -> None:
    assert any_store.put_if_absent("a", b"first")
    assert not any_store.put_if_absent("a", b"second")
    assert body_of(any_store, "a") == b"first"


def test_only_the_newest_etag_can_replace_or_delete_an_object(any_store: ObjectStore) -> None:
    any_store.put_if_absent("a", b"first")
    seen = etag_of(any_store, "a")
    assert any_store.put_if_match("a", b"second", seen)
    assert not any_store.put_if_match("a", b"third", seen)
    assert not any_store.delete_if_match("a", seen)
    assert body_of(any_store, "a") == b"second"
    assert (newest := etag_of(any_store, "a")) != seen
    assert any_store.delete_if_match("a", newest)
    assert any_store.get("a") is None
    assert not any_store.put_if_match("a", b"third", newest)
    assert any_store.keys("") == []
    assert any_store.put_if_absent("a", b"first")


def test_keys_are_found_by_prefix_in_order(any_store: ObjectStore) -> None:
    for key in ("silver.flights.table", "silver.flights.stream-b", "silver.flights.stream-a", "silver.flights2.table"):
        any_store.put_if_absent(key, b"")
    assert any_store.keys("silver.flights.stream-") == ["silver.flights.stream-a", "silver.flights.stream-b"]
    assert any_store.keys("silver.flights.table") == ["silver.flights.table"]
    assert len(any_store.keys("silver.")) == 4


def test_writers_leave_only_objects_and_a_partial_file_of_a_dead_writer_is_none(
    store: LocalObjectStore, folder: Path
) -> None:
    store.put_if_absent("a", b"1")
    store.put_if_absent("a", b"2")
    store.put_if_match("a", b"3", etag_of(store, "a"))
    store.put_if_match("a", b"4", "another etag")
    store.put_if_absent("b", b"")
    newest = etag_of(store, "b")
    assert [store.delete_if_match("b", newest) for _ in range(2)] == [True, False]
    assert {entry.name for entry in folder.iterdir()} == {"a", ".lock"}
    (folder / ".a.0123").write_bytes(b"half")
    assert store.keys("") == ["a"]
    assert store.keys(".a") == []


def test_processes_that_count_in_an_object_lose_no_count(store: LocalObjectStore, folder: Path) -> None:
    store.put_if_absent("counter", b"0")
    lost = run_together(RACERS, race_to_replace, folder, ROUNDS)
    assert body_of(store, "counter") == str(RACERS * ROUNDS).encode()
    assert sum(lost) > 0, "nobody was ever too late: they did not race"


@pytest.mark.parametrize("act", ["create", "delete"])
def test_exactly_one_of_several_threads_wins_an_object(store: LocalObjectStore, act: str) -> None:
    line_up = Barrier(RACERS)

    def race(number: int) -> list[int]:
        return [one for one in range(ROUNDS) if wins(f"round-{one}", str(number).encode())]

    def wins(key: str, body: bytes) -> bool:
        if act == "create":
            line_up.wait(60)
            return bool(store.put_if_absent(key, body))
        store.put_if_absent(key, b"there")
        seen = etag_of(store, key)
        line_up.wait(60)
        return store.delete_if_match(key, seen)

    with ThreadPoolExecutor(RACERS) as pool:
        won = [one for rounds in pool.map(race, range(RACERS)) for one in rounds]
    assert sorted(won) == list(range(ROUNDS))


def test_a_put_forces_the_content_and_then_the_name_to_the_disk(
    store: LocalObjectStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str, list[str]]] = []
    fsync = os.fsync

    def forced(descriptor: int) -> None:
        fsync(descriptor)
        place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        content = "folder" if place.is_dir() else place.read_text()
        done.append((place.name if place.is_dir() else "new file", content, store.keys("")))

    monkeypatch.setattr(os, "fsync", forced)
    store.put_if_absent("a", b"first")
    folders = [(name, "folder", []) for name in ("_millrace", folder.parents[1].name)]
    assert done == [*folders, ("new file", "first", []), (folder.name, "folder", ["a"])]
    done.clear()
    store.put_if_match("a", b"second", etag_of(store, "a"))
    store.delete_if_match("a", etag_of(store, "a"))
    assert done == [("new file", "second", ["a"]), (folder.name, "folder", ["a"]), (folder.name, "folder", [])]
