"""The trigger that waits for a landing folder: when it ends, and that it holds up nobody else in the triggerer."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.module_loading import import_string
from airflow.sdk.serde import deserialize, serialize

from embedded.servers.s3 import Bucket
from lakehouse_airflow.triggers import landing
from lakehouse_airflow.triggers.landing import LandingTrigger
from millrace.clock import utc_now

FOLDER = "orders/date=2013-01-05"


def trigger(root: Path | str, seconds: float = 20, **given: Any) -> LandingTrigger:
    now = utc_now()
    times = {"first_look": now, "poke_interval": 0.05, "until": now + timedelta(seconds=seconds)}
    return LandingTrigger(**{"feed": "orders", "folder": FOLDER, "root": str(root), **times, **given})


async def events(waiting: LandingTrigger) -> list[dict[str, Any]]:
    return [event.payload async for event in waiting.run()]


def test_the_wait_ends_when_the_folder_appears(tmp_path: Path) -> None:
    waiting, begin = trigger(tmp_path), time.monotonic()
    delivery = threading.Timer(0.5, (tmp_path / FOLDER).mkdir, kwargs={"parents": True})
    delivery.start()
    assert asyncio.run(events(waiting)) == [{"until": waiting.until.isoformat(), "refused": ""}]
    assert 0.5 <= time.monotonic() - begin < 15
    later = trigger(tmp_path, first_look=utc_now() + timedelta(seconds=0.3))
    asyncio.run(events(later))
    assert utc_now() >= later.first_look, "nobody looks before the time of the first look"


def test_another_triggerer_continues_the_same_wait(tmp_path: Path) -> None:
    waiting = trigger(tmp_path, s3_connection="lake_store")
    path, kwargs = waiting.serialize()
    stored = json.loads(json.dumps(serialize(kwargs)))
    again = import_string(path)(**deserialize(stored))
    assert again.serialize() == (path, kwargs)
    assert again.until == waiting.until


def test_a_storage_that_hangs_holds_up_no_other_trigger_and_the_wait_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, free = threading.Event(), threading.Event()
    hangs = SimpleNamespace(files=lambda *_: asked.set() or free.wait(30) or None)
    monkeypatch.setattr(landing, "landing_of", lambda *_: hangs)
    turns = 0

    async def triggerer() -> list[dict[str, Any]]:
        nonlocal turns
        wait = asyncio.create_task(events(trigger(tmp_path, seconds=1)))
        while not wait.done():
            await asyncio.sleep(0.01)
            turns += 1
        return await wait

    try:
        assert len(asyncio.run(triggerer())) == 1
    finally:
        free.set()
    assert asked.is_set()
    assert turns > 10
    waiting = trigger(tmp_path, seconds=0.3, poke_interval=60.0)
    monkeypatch.undo()
    assert len(asyncio.run(events(waiting))) == 1
    assert utc_now() >= waiting.until, "without the folder it ends when the time is up"


def test_a_bucket_is_read_with_the_keys_of_the_connection_which_stay_out_of_the_environment(
    shared_bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    extra = {"endpoint_url": shared_bucket.endpoint, "region_name": "us-east-1"}
    connection = {"conn_type": "aws", "login": "testing", "password": "testing", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE_STORE", json.dumps(connection))
    waiting = trigger(f"s3://{shared_bucket.name}/waited-for", s3_connection="lake_store")
    delivery = threading.Timer(1, shared_bucket.put, args=(f"waited-for/{FOLDER}/a.json", "{}"))
    delivery.start()
    assert asyncio.run(events(waiting)) == [{"until": waiting.until.isoformat(), "refused": ""}]
    assert utc_now() < waiting.until
    assert [name for name in os.environ if name.startswith("AWS_")] == []
    assert "testing" not in str(waiting.serialize())


@pytest.mark.usefixtures("bucket")
def test_a_storage_that_refuses_ends_the_wait_at_once() -> None:
    waiting = trigger("s3://no-such-bucket/landing")
    [event] = asyncio.run(events(waiting))
    assert "no-such-bucket" in event["refused"]
    assert utc_now() < waiting.until
