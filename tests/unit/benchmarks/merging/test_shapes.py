"""The shapes of Delta's own merge benchmark."""

from __future__ import annotations

import duckdb
import pytest

from benchmarks.merging.orders import arrivals
from benchmarks.merging.shapes import SHAPES, Shape, sample

ROWS, FILES = 40_000, 40
RANGES = [(2_000 * place + 2, 2_000 * (place + 1)) for place in range(FILES)]
ROWS_A_FILE = ROWS // FILES


def test_a_change_set_holds_its_shares_of_the_rows_of_its_files() -> None:
    assert len({shape.name for shape in SHAPES}) == 16
    for shape in SHAPES:
        files = sample(RANGES, shape.files)
        inside = " OR ".join(f"id BETWEEN {low - 1} AND {high}" for low, high in files)
        found = f"({shape.change_set(RANGES, ROWS)}) b LEFT JOIN ({arrivals(ROWS)}) k USING (id)"
        facts = f"count(DISTINCT id) = count(*), bool_and({inside}), count(k.ts), count(*) - count(k.ts)"
        with duckdb.connect() as connection:
            [(is_unique, is_inside, matched, new)] = connection.execute(f"SELECT {facts} FROM {found}").fetchall()
        of_files = ROWS_A_FILE * len(files)
        assert is_unique, shape
        assert is_inside, shape
        assert matched == pytest.approx(shape.matched * of_files, abs=0.05 * of_files)
        assert new == pytest.approx(shape.unmatched * of_files, abs=0.05 * of_files)


def test_a_key_to_which_two_files_reach_is_sent_once() -> None:
    overlapping = [(low - 2, high + 2) for low, high in RANGES]
    shape = Shape("single insert", 1.0, 0, 1.0)
    with duckdb.connect() as connection:
        facts = f"SELECT count(*), count(DISTINCT id) FROM ({shape.change_set(overlapping, ROWS)})"
        [(events, orders)] = connection.execute(facts).fetchall()
    assert events == orders > ROWS
