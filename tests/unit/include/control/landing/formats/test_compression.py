"""Compressed landing files: truncated or damaged files are refused wherever they end, sound files never."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable

import pytest
import zstandard

from tests.support.deliveries import Deliver, orders_spec_of
from tests.support.listing import inspected

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


def defect_of(deliver: Deliver, name: str, content: bytes, file_format: str = "json") -> str:
    """Deliver a file, and return its defect."""
    found = inspected(deliver, orders_spec_of(file_format), name, content)
    assert found.checksum == hashlib.sha256(content).hexdigest()
    return found.defect


def member_of(size: int) -> bytes:
    """Return a gzip member of exactly `size` bytes: stored lines, and a file name of the necessary length."""
    plain = gzip.compress(LINES * ((size - 4000) // len(LINES)), compresslevel=0)
    name = b"x" * (size - len(plain) - 1) + b"\0"
    return plain[:3] + b"\x08" + plain[4:10] + name + plain[10:]


def frames_of(size: int) -> bytes:
    """Return a skippable frame and a zstd frame of `size` bytes together."""
    plain = zstandard.compress(LINES)
    filling = size - len(plain) - 8
    return SKIPPABLE[:4] + filling.to_bytes(4, "little") + bytes(filling) + plain


@pytest.mark.parametrize(("suffix", "of_size", "compress"), [(".gz", member_of, gzip.compress),
                                                             (".zst", frames_of, zstandard.compress)])  # fmt: skip
def test_members_may_end_anywhere_within_a_chunk_and_a_file_may_not(
    deliver: Deliver, suffix: str, of_size: Callable[[int], bytes], compress: Compress
) -> None:
    name, last = f"a.json{suffix}", compress(LINES)
    for beyond in (-1, 0, 1, 10):
        body = of_size(MEBIBYTE + beyond)
        assert len(body) == MEBIBYTE + beyond
        assert defect_of(deliver, name, body + last) == ""
    assert defect_of(deliver, name, (of_size(MEBIBYTE) + last)[: MEBIBYTE + 5]).startswith("truncated ")


@every_packing
def test_concatenated_members_are_one_sound_file_and_a_truncated_file_is_refused_wherever_it_ends(
    deliver: Deliver, packing: str, suffix: str, compress: Compress
) -> None:
    name, member = f"a.json{suffix}", compress(LINES)
    assert defect_of(deliver, name, b"".join(map(compress, [LINES, b"", LINES * 99, LINES]))) == ""
    cut = [member[:kept] for kept in (1, 2, 9, 10, 11, 40, -9, -8, -1)]
    for content in (*cut, member + member[:-12], member * 3 + member[:-12]):
        problem = f"truncated {packing}: the file ends before its data does; have it delivered again"
        assert defect_of(deliver, name, content) == problem, len(content)


@pytest.mark.parametrize(
    ("suffix", "stored", "place"),
    [
        (".gz", gzip.compress(LINES), -6),
        (".zst", zstandard.ZstdCompressor(write_checksum=True).compress(LINES), -2),
        (".zst", zstandard.compress(LINES), 12),
    ],
    ids=["gzip", "zstd with a check sum", "zstd without one"],
)
def test_damaged_data_are_not_sound(deliver: Deliver, suffix: str, stored: bytes, place: int) -> None:
    damaged = bytearray(stored)
    damaged[place] ^= 1
    assert defect_of(deliver, f"a.json{suffix}", bytes(damaged)).startswith("not a sound ")


@every_packing
def test_data_of_another_packing_than_the_name_are_refused(
    deliver: Deliver, packing: str, suffix: str, compress: Compress
) -> None:
    defect = defect_of(deliver, f"a.json{suffix}", LINES)
    assert defect.startswith(f"not a sound {packing} file")
    assert defect.endswith("have it delivered again")
    problem = f"{packing} data under the name a.data; it must end in {suffix}"
    assert [defect_of(deliver, "a.data", compress(LINES), form) for form in ("json", "parquet")] == [problem] * 2
    other = ".gz" if suffix == ".zst" else ".zst"
    problem = f"{packing} data under the name b{other}; it must end in {suffix}"
    assert defect_of(deliver, f"b{other}", compress(LINES)) == problem


def test_the_largest_window_of_zstd_is_sound_and_a_larger_window_is_refused(deliver: Deliver) -> None:
    assert defect_of(deliver, "a.json.zst", windowed(27)) == ""
    assert "requires too much memory" in defect_of(deliver, "a.json.zst", windowed(28))


def windowed(log: int) -> bytes:
    """Return lines in a frame without its size, which needs the whole window, like the output of `zstd --long`."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=log)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return frame.compress(LINES) + frame.flush()
