"""Whether two tables hold the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from benchmarks.comparison import COLUMNS, DifferentRowsError, require_same_digest, require_same_rows
from include.catalog import load_catalog
from include.contracts.spec.table_spec import BronzeSpec, GoldSpec, SilverSpec
from include.settings import PROJECT

GOLD = "gold.route_performance_daily"
Routes = list[tuple[str, float | None]]


def gold(folder: Path, routes: Routes, **more: object) -> Path:
    """A gold table: destination and one measure differ, every other column is the same in every row."""
    names = [*COLUMNS[GOLD], *more]
    rows = [dict.fromkeys(names, 1) | {"dest": dest, "pct_delayed_15": late} for dest, late in routes]
    kinds = {"dest": pa.string(), "pct_delayed_15": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in names])
    write_deltalake(str(folder), pa.Table.from_pylist(rows, schema))
    return folder


def test_equal_rows_in_another_order_are_the_same_whatever_else_one_side_has(tmp_path: Path) -> None:
    one = gold(tmp_path / "one", [("BOS", 0.5), ("SFO", None)], _batch_seq=7)
    other = gold(tmp_path / "other", [("SFO", None), ("BOS", 0.5)])
    assert require_same_rows(GOLD, one, other) == 2
    relations = {"one": "(VALUES (1, 'a'), (2, NULL)) t(id, said)", "other": "(VALUES (2, NULL), (1, 'a')) t(id, said)"}
    assert require_same_digest(("id", "said"), relations) == 2


def test_different_rows_are_refused_from_either_side(tmp_path: Path) -> None:
    right = gold(tmp_path / "right", [("BOS", 0.5), ("SFO", 0.2)])
    one_less = gold(tmp_path / "one less", [("BOS", 0.5)])
    one_twice = gold(tmp_path / "one twice", [("BOS", 0.5), ("SFO", 0.2), ("SFO", 0.2)])
    other_value = gold(tmp_path / "other value", [("BOS", 0.5), ("SFO", 0.25)])
    for pair in ((one_less, right), (right, one_less), (right, one_twice), (other_value, right)):
        with pytest.raises(DifferentRowsError, match=GOLD):
            require_same_rows(GOLD, *pair)


@pytest.mark.parametrize("rows", ["(1, 'a'), (2, 'b')", "(1, 'a')", "(1, 'a'), (2, NULL), (2, NULL)"])
def test_relations_that_differ_in_any_row_are_refused(rows: str) -> None:
    relations = {"one": "(VALUES (1, 'a'), (2, NULL)) t(id, said)", "other": f"(VALUES {rows}) t(id, said)"}
    with pytest.raises(DifferentRowsError, match="do not have the same rows"):
        require_same_digest(("id", "said"), relations)


def test_empty_tables_prove_nothing(tmp_path: Path) -> None:
    with pytest.raises(DifferentRowsError, match="both tables are empty"):
        require_same_rows(GOLD, gold(tmp_path / "one", []), gold(tmp_path / "other", []))
    with pytest.raises(DifferentRowsError, match="all are empty"):
        require_same_digest(("id",), dict.fromkeys(("one", "other"), "(SELECT 1 AS id WHERE false)"))


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_of_the_spec_is_compared(table: str) -> None:
    spec = load_catalog(PROJECT / "include" / "tables").spec(table)
    stated: tuple[str, ...] = ()
    if isinstance(spec, GoldSpec):
        stated = (*spec.group_by, *spec.measures)
    elif isinstance(spec, BronzeSpec | SilverSpec):
        stated = tuple(spec.columns)
    assert COLUMNS[table] == stated
