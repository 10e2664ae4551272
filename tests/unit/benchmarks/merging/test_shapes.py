"""The shapes of Delta's own merge benchmark."""

from __future__ import annotations

import duckdb
import pytest

from benchmarks.merging.orders import arrivals
from benchmarks.merging.shapes import SHAPES, Shape, sample

ROWS, FILES = 400_000, 40
RANGES = [(20_000 * place + 2, 20_000 * (place + 1)) for place in range(FILES)]
ROWS_A_FILE = ROWS // FILES


def test_there_are_the_sixteen_shapes_of_upstream() -> None:
    assert len({shape.name for shape in SHAPES}) == 16
    does = [shape.does for shape in SHAPES]
    assert {kind: does.count(kind) for kind in does} == {
        "single insert": 3, "multiple insert": 3, "delete": 1, "upsert": 9,
    }  # fmt: skip
    assert sorted({shape.files for shape in SHAPES}) == [0.05, 0.5, 1.0]
    assert all("/" not in shape.name for shape in SHAPES)


def test_a_sample_is_a_share_of_the_files_and_scattered() -> None:
    half = sample(RANGES, 0.5)
    assert len(half) == FILES // 2
    assert set(half) <= set(RANGES)
    assert half == sorted(half) != RANGES[: FILES // 2]
    assert sample(RANGES, 1.0) == RANGES
    assert len(sample(RANGES[:3], 0.05)) == 1
    assert set(sample(RANGES, 0.05)) < set(half)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_change_set_holds_its_shares_of_the_rows_of_its_files(shape: Shape) -> None:
    files = sample(RANGES, shape.files)
    inside = " OR ".join(f"id BETWEEN {low - 1} AND {high}" for low, high in files)
    with duckdb.connect() as connection:
        found = f"({shape.change_set(RANGES, ROWS)}) b LEFT JOIN ({arrivals(ROWS)}) k USING (id)"
        facts = f"count(DISTINCT id) = count(*), bool_and({inside}), count(k.ts), count(*) - count(k.ts)"
        [(is_unique, is_inside, matched, new)] = connection.execute(f"SELECT {facts} FROM {found}").fetchall()
        [(later,)] = connection.execute(f"SELECT bool_and(k.ts IS NULL OR b.ts > k.ts) FROM {found}").fetchall()
    of_files = ROWS_A_FILE * len(files)
    assert is_unique
    assert is_inside
    assert later
    assert matched == pytest.approx(shape.matched * of_files, abs=0.02 * of_files)
    assert new == pytest.approx(shape.unmatched * of_files, abs=0.02 * of_files)
    assert (matched == 0, new == 0) == (shape.matched == 0, shape.unmatched == 0)


def test_a_key_to_which_two_files_reach_is_sent_once() -> None:
    overlapping = [(low - 2, high + 2) for low, high in RANGES]
    shape = Shape("single insert", 1.0, 0, 1.0)
    with duckdb.connect() as connection:
        facts = f"SELECT count(*), count(DISTINCT id) FROM ({shape.change_set(overlapping, ROWS)})"
        [(events, orders)] = connection.execute(facts).fetchall()
    assert events == orders > ROWS


def test_only_deletes_are_sent_as_deletes() -> None:
    with duckdb.connect() as connection:
        for shape in SHAPES:
            found = connection.execute(f"SELECT DISTINCT op FROM ({shape.change_set(RANGES, ROWS)})").fetchall()
            assert found == [("delete" if "DELETE" in shape.clauses else "upsert",)]
