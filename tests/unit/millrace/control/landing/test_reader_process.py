"""Files whose content decides what reading them costs: they are read within limits, in a process of their own."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pydantic import ByteSize

from millrace.contracts.spec.bronze_sources import FileLimits
from millrace.control.landing.reader_process import read_apart
from millrace.errors import NotReadyError
from tests.support.calls_apart import end_by, end_once, raise_it, raise_odd, turn_for, turn_for_ever
from tests.support.deliveries import Deliver, orders_spec_of
from tests.support.listing import inspected

LIMITS = FileLimits(time=timedelta(seconds=1), memory=ByteSize(64 << 20))


def avro(columns: dict[str, Any], rows: list[dict[str, Any]]) -> bytes:
    stored, fields = io.BytesIO(), [{"name": name, "type": kind} for name, kind in columns.items()]
    fastavro.writer(stored, {"type": "record", "name": "row", "fields": fields}, rows)
    return stored.getvalue()


def defect_of(deliver: Deliver, kind: str, content: bytes, **limits: Any) -> str:
    """Deliver a file, and return its defect."""
    return inspected(deliver, orders_spec_of(kind, limits=limits), f"a.{kind}", content).defect


def test_calls_run_in_one_process_which_raises_what_they_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    process = read_apart(os.getpid, 0, LIMITS)
    assert process != os.getpid()
    with pytest.raises(FileNotFoundError):
        read_apart(partial(os.stat, "/no/such/file"), 0, LIMITS)
    with pytest.raises(NotReadyError, match="busy\nlater"):
        read_apart(partial(raise_it, NotReadyError("busy", "later")), 0, LIMITS)
    for region in ("north", "south"):
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
        assert read_apart(partial(os.getenv, "AWS_DEFAULT_REGION"), 0, LIMITS) == region
    assert read_apart(partial(os.getenv, "OMP_NUM_THREADS"), 0, LIMITS) == "1", "a setting of the process"
    assert read_apart(os.getpid, 0, LIMITS) == process
    assert read_apart(partial(print, "text of a library"), 0, LIMITS) is None, "is no answer"


def test_a_process_that_has_ended_between_two_files_is_the_fault_of_neither() -> None:
    process = psutil.Process(read_apart(os.getpid, 0, LIMITS))
    process.kill()
    while process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert read_apart(os.getpid, 0, LIMITS) != process.pid


def test_whoever_else_ends_the_process_blames_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match=r"somebody has ended .* \(SIGTERM\)"):
        read_apart(partial(end_by, signal.SIGTERM), 0, LIMITS)
    once = tmp_path / "once"
    assert read_apart(partial(end_once, once), 0, LIMITS) == "read", "the machine had no memory left, once"
    assert once.exists()


def test_an_error_that_cannot_be_copied_is_told_by_its_text() -> None:
    with pytest.raises(RuntimeError, match="OddError: neither file"):
        read_apart(raise_odd, 0, LIMITS)


@pytest.mark.parametrize(
    ("read", "defect"),
    [
        (
            partial(bytearray, 128 << 20),
            "it takes more memory to read its 9 bytes, and source.limits.memory is 64",
        ),
        (turn_for_ever, "it takes more than 1 seconds to read its 9 bytes, and source.limits.time is 1 seconds;"),
        (partial(end_by, signal.SIGABRT), "its content ended the process that read it (SIGABRT); have it"),
        (partial(os._exit, 3), "its content ended the process that read it (exit code 3); have it"),
    ],
    ids=["memory", "time", "signal", "end"],
)
def test_what_takes_too_much_or_ends_the_process_is_an_error_of_this_file_alone(
    read: Callable[[], object], defect: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(defect)}"):
        read_apart(read, 9, LIMITS)
    assert len(read_apart(partial(bytearray, 32 << 20), 9, LIMITS)) == 32 << 20


def test_each_file_has_the_memory_and_the_time_of_its_own() -> None:
    for _ in range(4):
        assert len(read_apart(partial(bytearray, 40 << 20), 9, LIMITS)) == 40 << 20
        read_apart(partial(turn_for, 0.5), 9, LIMITS)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": lambda block: zlib.compress(block)[2:-4],
    "snappy": lambda block: pa.Codec("snappy").compress(block, asbytes=True) + zlib.crc32(block).to_bytes(4, "big"),
    "zstandard": zstandard.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


def packed(content: bytes, size: int, codec: str) -> bytes:
    """Return an Avro file whose only block, of `size` bytes, is compressed."""
    block, sync = content[-16 - size : -16], content[-16:]
    head = content[: content.index(sync) + 16].replace(b"\x08null", bytes([2 * len(codec)]) + codec.encode())
    stored = PACK[codec](block)
    length = 2 * len(stored)
    return head + b"\x14" + bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14]) + stored + sync


@pytest.mark.parametrize("codec", PACK)
def test_a_block_of_avro_over_the_limit_is_found_before_all_of_it_is_unpacked(deliver: Deliver, codec: str) -> None:
    content = packed(avro({"order_id": "string"}, [{"order_id": "7" * 1_000}] * 10), 10_020, codec)
    assert defect_of(deliver, "avro", content) == ""
    assert defect_of(deliver, "avro", content, block=10_020) == ""
    assert defect_of(deliver, "avro", content, block=10_019) == (
        "it has a larger block of records, and source.limits.block is 9.8 KiB; correct the file or raise the limit"
    )


def test_files_of_many_columns_are_refused(deliver: Deliver) -> None:
    columns, stored = {"order_id": "string", "amount": "string", "day": "string"}, io.BytesIO()
    pq.write_table(pa.table({name: ["1"] for name in columns}), stored)
    for kind, content in (("avro", avro(columns, [])), ("parquet", stored.getvalue())):
        assert defect_of(deliver, kind, content, columns=3) == ""
        assert defect_of(deliver, kind, content, columns=2).startswith(
            "it has 3 columns, and source.limits.columns is 2"
        )


def test_a_record_of_many_values_without_a_size_takes_no_more_memory_than_the_limit(deliver: Deliver) -> None:
    items = {"type": "array", "items": "null"}
    content = avro({"order_id": "string", "items": items}, [{"order_id": "1", "items": [None] * 3_000_000}])
    assert len(content) < 400
    assert defect_of(deliver, "avro", content) == ""
    assert "and source.limits.memory is 8.0 MiB; correct" in defect_of(deliver, "avro", content, memory=8 << 20)


def test_the_process_ends_with_the_one_that_started_it() -> None:
    start = "import os; from functools import partial; from millrace.control.landing.reader_process import read_apart;"
    start += "from millrace.contracts.spec.bronze_sources import FileLimits;"
    start += "print(read_apart(os.getpid, 0, FileLimits()), flush=True); os._exit(0)"
    started = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=True)
    psutil.wait_procs([psutil.Process(pid) for pid in map(int, started.stdout.split()) if psutil.pid_exists(pid)], 10)
    assert not psutil.pid_exists(int(started.stdout))
