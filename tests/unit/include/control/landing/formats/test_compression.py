"""Compressed landing files: truncated or damaged files are refused wherever they end, sound files never."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from include.control.landing.inspection import inspect
from include.control.landing.on_disk import LocalLanding
from tests.support.deliveries import Deliver, orders_spec_of
from tests.support.ledger.delta_tables import day
from tests.support.listing import list_files

LINES = b"".join(b'{"order_id": "%d", "amount": %d}\n' % (number, number) for number in range(50))
MEBIBYTE = 1 << 20
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00pzst"
"""A frame without content: pzstd writes one before each of its frames."""

Compress = Callable[[bytes], bytes]
PACKINGS = [
    pytest.param("gzip", ".gz", gzip.compress, id="gzip"),
    pytest.param("zstd", ".zst", zstandard.compress, id="zstd"),
]
every_packing = pytest.mark.parametrize(("packing", "suffix", "compress"), PACKINGS)


def defect_of(landing: Path, file_format: str = "json") -> str:
    """Return the defect of the only file of the first day."""
    spec, place = orders_spec_of(file_format), LocalLanding(str(landing))
    (file,) = list_files(spec, place, day())
    found = inspect(file, place, spec)
    assert found.checksum == hashlib.sha256((landing / file.path).read_bytes()).hexdigest()
    return found.defect


def member_of(size: int) -> bytes:
    """Return a gzip member of exactly `size` bytes: its header has a file name of the necessary length."""
    plain = gzip.compress(LINES)
    name = b"x" * (size - len(plain) - 1) + b"\0"
    return plain[:3] + b"\x08" + plain[4:10] + name + plain[10:]


def frames_of(size: int) -> bytes:
    """Return a skippable frame and a zstd frame of `size` bytes together."""
    plain = zstandard.compress(LINES)
    filling = size - len(plain) - 8
    return SKIPPABLE[:4] + filling.to_bytes(4, "little") + bytes(filling) + plain


@every_packing
def test_concatenated_members_are_one_sound_file(
    landing: Path, deliver: Deliver, packing: str, suffix: str, compress: Compress
) -> None:
    deliver(f"a.json{suffix}", b"".join(compress(member) for member in [LINES, b"", LINES * 99, LINES]))
    assert defect_of(landing) == ""


@pytest.mark.parametrize("beyond", [-1, 0, 1, 9, 10, 11])
@pytest.mark.parametrize(("suffix", "of_size", "compress"), [(".gz", member_of, gzip.compress),
                                                             (".zst", frames_of, zstandard.compress)])  # fmt: skip
def test_members_may_end_anywhere_within_a_chunk(
    landing: Path, deliver: Deliver, beyond: int, suffix: str, of_size: Callable[[int], bytes], compress: Compress
) -> None:
    body = of_size(MEBIBYTE + beyond)
    assert len(body) == MEBIBYTE + beyond
    deliver(f"a.json{suffix}", body + compress(LINES))
    assert defect_of(landing) == ""


@pytest.mark.parametrize(("suffix", "of_size", "compress"), [(".gz", member_of, gzip.compress),
                                                             (".zst", frames_of, zstandard.compress)])  # fmt: skip
def test_a_file_cut_at_the_end_of_a_chunk_is_refused(
    landing: Path, deliver: Deliver, suffix: str, of_size: Callable[[int], bytes], compress: Compress
) -> None:
    deliver(f"a.json{suffix}", (of_size(MEBIBYTE) + compress(LINES))[: MEBIBYTE + 5])
    assert defect_of(landing).startswith("truncated ")


@every_packing
@pytest.mark.parametrize("kept", [1, 2, 9, 10, 11, 40, -9, -8, -1])
def test_a_truncated_file_is_refused_wherever_it_ends(
    landing: Path, deliver: Deliver, packing: str, suffix: str, compress: Compress, kept: int
) -> None:
    deliver(f"a.json{suffix}", compress(LINES)[:kept])
    assert defect_of(landing) == f"truncated {packing}: the file ends before its data does; have it delivered again"


@every_packing
@pytest.mark.parametrize("sound", [1, 2, 3])
def test_a_file_whose_last_member_is_cut_is_truncated(
    landing: Path, deliver: Deliver, packing: str, suffix: str, compress: Compress, sound: int
) -> None:
    deliver(f"a.json{suffix}", compress(LINES) * sound + compress(LINES)[:-12])
    assert defect_of(landing).startswith(f"truncated {packing}")


@pytest.mark.parametrize(
    ("suffix", "stored", "place"),
    [
        (".gz", gzip.compress(LINES), -6),
        (".zst", zstandard.ZstdCompressor(write_checksum=True).compress(LINES), -2),
        (".zst", zstandard.compress(LINES), 12),
    ],
    ids=["gzip", "zstd with a check sum", "zstd without one"],
)
def test_damaged_data_are_not_sound(landing: Path, deliver: Deliver, suffix: str, stored: bytes, place: int) -> None:
    damaged = bytearray(stored)
    damaged[place] ^= 1
    deliver(f"a.json{suffix}", bytes(damaged))
    assert defect_of(landing).startswith("not a sound ")


@every_packing
def test_plain_text_under_a_compressed_name_is_not_sound(
    landing: Path, deliver: Deliver, packing: str, suffix: str, compress: Compress
) -> None:
    deliver(f"a.json{suffix}", LINES)
    defect = defect_of(landing)
    assert defect.startswith(f"not a sound {packing} file")
    assert defect.endswith("have it delivered again")


@pytest.mark.parametrize("file_format", ["json", "csv", "parquet", "avro"])
@every_packing
def test_compressed_data_under_a_plain_name_are_refused(
    landing: Path, deliver: Deliver, packing: str, suffix: str, compress: Compress, file_format: str
) -> None:
    deliver("a.data", compress(LINES))
    assert defect_of(landing, file_format) == f"{packing} data under the name a.data; it must end in {suffix}"


def test_data_of_another_packing_than_the_name_are_refused(landing: Path, deliver: Deliver) -> None:
    deliver("a.json.zst", member_of(MEBIBYTE + 999))
    assert defect_of(landing) == "gzip data under the name a.json.zst; it must end in .gz"


def test_the_largest_window_of_zstd_is_sound_and_a_larger_window_is_refused(landing: Path, deliver: Deliver) -> None:
    deliver("a.json.zst", windowed(27))
    assert defect_of(landing) == ""
    deliver("a.json.zst", windowed(28))
    assert "requires too much memory" in defect_of(landing)


def windowed(log: int) -> bytes:
    """Return lines in a frame without its size, which needs the whole window, like the output of `zstd --long`."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=log)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return frame.compress(LINES) + frame.flush()
