"""Whether two tables hold the same rows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from benchmarks.comparison import COLUMNS, DifferentRowsError, require_same_digest, require_same_rows
from include.catalog import load_catalog
from include.contracts.spec.table_spec import BronzeSpec, GoldSpec, SilverSpec
from include.settings import PROJECT

GOLD = "gold.route_performance_daily"


def gold(folder: Path, *routes: tuple[str, float | None], **more: object) -> Path:
    """A gold table: destination and one measure differ, every other column is the same in every row."""
    rows = [
        {name: dest if name == "dest" else late if name == "pct_delayed_15" else 1 for name in COLUMNS[GOLD]} | more
        for dest, late in routes
    ]
    kinds = {"dest": pa.string(), "pct_delayed_15": pa.float64()}
    names = [*COLUMNS[GOLD], *more]
    write_deltalake(
        str(folder), pa.Table.from_pylist(rows, pa.schema([(name, kinds.get(name, pa.int64())) for name in names]))
    )
    return folder


def test_equal_rows_in_another_order_are_the_same(tmp_path: Path) -> None:
    one = gold(tmp_path / "one", ("BOS", 0.5), ("SFO", None))
    other = gold(tmp_path / "other", ("SFO", None), ("BOS", 0.5))
    assert require_same_rows(GOLD, one, other) == 2


def test_columns_that_only_one_side_has_are_left_out(tmp_path: Path) -> None:
    one = gold(tmp_path / "one", ("BOS", 0.5), _batch_seq=7)
    assert require_same_rows(GOLD, one, gold(tmp_path / "other", ("BOS", 0.5))) == 1


@pytest.mark.parametrize(
    "routes",
    [
        pytest.param([("BOS", 0.5)], id="a row is missing"),
        pytest.param([("BOS", 0.5), ("SFO", 0.2), ("SFO", 0.2)], id="a row is there twice"),
        pytest.param([("BOS", 0.5), ("SFO", 0.25)], id="a value differs"),
        pytest.param([("BOS", 0.5), ("SFO", None)], id="a value is null"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_different_rows_are_refused_from_either_side(
    tmp_path: Path, routes: list[tuple[str, float | None]], is_first: bool
) -> None:
    right = gold(tmp_path / "right", ("BOS", 0.5), ("SFO", 0.2))
    wrong = gold(tmp_path / "wrong", *routes)
    pair = (wrong, right) if is_first else (right, wrong)
    with pytest.raises(DifferentRowsError, match=GOLD):
        require_same_rows(GOLD, *pair)


def test_two_empty_tables_prove_nothing(tmp_path: Path) -> None:
    with pytest.raises(DifferentRowsError, match="both tables are empty"):
        require_same_rows(GOLD, gold(tmp_path / "one"), gold(tmp_path / "other"))


def test_a_difference_is_shown_whatever_the_type(tmp_path: Path) -> None:
    kinds = {name: pa.int64() for name in COLUMNS["silver.flights"]} | {"event_at": pa.timestamp("us", "UTC")}
    for name, second in (("one", 1), ("other", 2)):
        row = dict.fromkeys(kinds, 7) | {"event_at": datetime(2013, 1, 1, 0, 0, second, tzinfo=UTC)}
        write_deltalake(str(tmp_path / name), pa.Table.from_pylist([row], pa.schema(kinds.items())))
    with pytest.raises(DifferentRowsError, match=r"2013-01-01 00:00:01(.|\n)*2013-01-01 00:00:02"):
        require_same_rows("silver.flights", tmp_path / "one", tmp_path / "other")


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_of_the_spec_is_compared(table: str) -> None:
    spec = load_catalog(PROJECT / "include" / "tables").spec(table)
    stated: tuple[str, ...] = ()
    if isinstance(spec, GoldSpec):
        stated = (*spec.group_by, *spec.measures)
    elif isinstance(spec, BronzeSpec | SilverSpec):
        stated = tuple(spec.columns)
    assert COLUMNS[table] == stated


def test_relations_of_the_same_rows_in_another_order_have_one_digest() -> None:
    relations = {"one": "(VALUES (1, 'a'), (2, NULL)) t(id, said)", "other": "(VALUES (2, NULL), (1, 'a')) t(id, said)"}
    assert require_same_digest(("id", "said"), relations) == 2


@pytest.mark.parametrize("rows", ["(1, 'a'), (2, 'b')", "(1, 'a')", "(1, 'a'), (2, NULL), (2, NULL)"])
def test_relations_that_differ_in_any_row_are_refused(rows: str) -> None:
    relations = {"one": "(VALUES (1, 'a'), (2, NULL)) t(id, said)", "other": f"(VALUES {rows}) t(id, said)"}
    with pytest.raises(DifferentRowsError, match="do not have the same rows"):
        require_same_digest(("id", "said"), relations)


def test_the_digest_of_nothing_proves_nothing() -> None:
    with pytest.raises(DifferentRowsError, match="all are empty"):
        require_same_digest(("id",), dict.fromkeys(("one", "other"), "(SELECT 1 AS id WHERE false)"))
