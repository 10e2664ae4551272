"""The catalog of a folder of specs, and every error that a folder can have."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millrace.catalog import Catalog, load_catalog
from millrace.contracts.spec.table_spec import BronzeSpec, GoldSpec, SilverSpec
from millrace.errors import SpecError
from millrace.specs.checks.sql import sql_problems
from millrace.specs.problem import SpecsRefusedError
from tests.support.documents.odd_specs import SPECS, write_mutated
from tests.support.documents.specs import (
    SHIPPED,
    bronze_document,
    bronze_spec,
    catalog_of,
    gold_document,
    gold_spec,
    silver_document,
    silver_spec,
    write_spec,
    write_specs,
)

ORDERS = (bronze_document(), silver_document(), gold_document())
FIX = "let {} read only tables that are built without it"


def gold_of(table: str, *sources: str, **changes: Any) -> dict[str, Any]:
    """Return the spec of a gold table that reads these tables, joined by day; by default `silver.orders`."""
    of_alias = {
        f"s{number}": {"table": source, **({"join": "left", "on": f"s0.day = s{number}.day"} if number else {})}
        for number, source in enumerate(sources or ["silver.orders"])
    }
    parts = {"sources": of_alias, "refresh_from": dict.fromkeys(of_alias, "day"), "group_by": {"day": "s0.day"}}
    return gold_document(table, **parts, measures={"n": "count(*)"}, **changes)


class TestSoundSpecs:
    def test_each_layer_becomes_its_model_with_the_domain_of_its_folder(self, tmp_path: Path) -> None:
        write_spec(write_specs(tmp_path, *ORDERS, domain="retail"), "README.md", "words")
        catalog = load_catalog(tmp_path)
        assert [type(spec) for spec in catalog.specs.values()] == [BronzeSpec, SilverSpec, GoldSpec]
        assert {spec.domain for spec in catalog.specs.values()} == {"retail"}
        assert catalog.files["silver.orders"] == tmp_path / "silver/retail/orders.yaml"
        assert pickle.loads(pickle.dumps(catalog)) == copy.deepcopy(catalog) == catalog

    def test_tables_come_in_build_order_whatever_the_order_of_files(self, tmp_path: Path) -> None:
        write_specs(tmp_path, gold_document("gold.a"), silver_document("silver.b", source="bronze.z"))
        write_specs(tmp_path, silver_document(), bronze_document("bronze.z"), bronze_document())
        specs = load_catalog(tmp_path).of_domain("shop")
        assert [spec.table for spec in specs] == ["bronze.orders", "bronze.z", "silver.b", "silver.orders", "gold.a"]

    def test_a_gold_table_comes_after_the_gold_tables_that_it_reads_in_any_domain(self, tmp_path: Path) -> None:
        write_specs(tmp_path, *ORDERS, gold_of("gold.alone"))
        write_specs(tmp_path, gold_of("gold.a", "gold.z"), gold_of("gold.c", "gold.a", "gold.alone"))
        write_specs(tmp_path, gold_of("gold.z", "gold.revenue_daily"), domain="finance")
        gold = ["gold.alone", "gold.revenue_daily", "gold.z", "gold.a", "gold.c"]
        catalog = load_catalog(tmp_path)
        assert (catalog.problems, list(catalog.specs)[2:]) == ((), gold)
        assert catalog.domains == ("finance", "shop")
        assert [spec.table for spec in catalog.of_domain("finance")] == ["gold.z"]
        write_spec(tmp_path, "gold/finance/z.yaml", yaml.safe_dump(gold_of("gold.z", "gold.revenue_daily", owner=7)))
        catalog = load_catalog(tmp_path)
        assert (set(catalog.invalid), list(catalog.tables)[2:]) == ({"gold.z"}, gold)
        assert catalog.invalid["gold.z"].source_tables == ("gold.revenue_daily",)

    def test_the_shipped_specs_are_sound_and_describe_every_column(self) -> None:
        catalog = load_catalog(SHIPPED)
        assert set(catalog.specs) >= {"bronze.flight_events", "silver.flights", "gold.delay_by_weather"}
        for spec in catalog.specs.values():
            assert spec.description
            assert spec.owner
            for name, column in () if isinstance(spec, GoldSpec) else spec.columns.items():
                assert column.description, f"{spec.table}.{name}"

    def test_yaml_is_read_as_editors_read_it(self, tmp_path: Path) -> None:
        gold = gold_of("gold.pairs", "silver.orders", "silver.orders", owner="no")
        file = write_specs(tmp_path, *ORDERS, gold) / "gold/shop/pairs.yaml"
        file.write_text(file.read_text().replace("'on': ", "on: ").replace("'no'", "no"))
        assert {"owner: no", "    on: s0.day = s1.day"} <= set(file.read_text().split("\n"))
        spec = load_catalog(tmp_path).spec("gold.pairs")
        assert spec.sources["s1"].on == "s0.day = s1.day"
        assert spec.owner == "no"


def test_an_unknown_table_or_domain_is_an_error_with_the_closest_or_the_known_ones() -> None:
    catalog = Catalog({spec.table: spec for spec in (silver_spec(), gold_spec())})
    assert catalog.spec("silver.orders") is catalog.specs["silver.orders"]
    for name in ("silver.order", "sliver.orders"):
        with pytest.raises(SpecError, match=rf"{name}'\ndid you mean 'silver.orders'\?"):
            catalog.spec(name)
    with pytest.raises(SpecError, match=r"'flights'\nknown are shop"):
        catalog.of_domain("flights")


class TestWrongSpecs:
    """A wrong spec stops its table and the tables that read it, and nothing else."""

    @staticmethod
    def shop(folder: Path) -> Path:
        write_specs(folder, *ORDERS, silver_document("silver.other"))
        return write_specs(folder, gold_document("gold.bills"), domain="finance")

    @pytest.mark.parametrize(
        ("place", "text"),
        [
            ("silver/shop/orders.yaml", "table: silver.orders\nsource: bronze.orders\nkeyz: [order_id]\n"),
            ("silver/shop/orders.yaml", "table: silver.orders\nsource: bronze.ordesr\n"),
            ("silver/shop/orders.yaml", "[]"),
            ("silver/shop/orders.yml", ""),
            ("silver/stock/orders.yaml", "table: silver.orders\nsource: bronze.orders\nkeys: [order_id]\n"),
        ],
    )
    def test_its_table_stands_still_with_all_that_reads_it(self, tmp_path: Path, place: str, text: str) -> None:
        write_spec(self.shop(tmp_path), place, text)
        catalog = load_catalog(tmp_path)
        assert set(catalog.invalid) == {"silver.orders"}
        assert set(catalog.specs) == {"bronze.orders", "silver.other", "gold.revenue_daily", "gold.bills"}
        assert catalog.tables == ("bronze.orders", "silver.orders", "silver.other", "gold.bills", "gold.revenue_daily")
        for table in ("bronze.orders", "silver.other"):
            catalog.require_sound_sources(catalog.spec(table))
        for table in ("gold.bills", "gold.revenue_daily"):
            with pytest.raises(SpecError, match=rf"^{table}: it reads silver.orders, .*\nFix {tmp_path / place}:\d"):
                catalog.require_sound_sources(catalog.spec(table))
        with pytest.raises(SpecsRefusedError, match=str(tmp_path / place)) as refused:
            catalog.spec("silver.orders")
        assert refused.value.problems == catalog.problems

    def test_what_is_read_through_other_tables_counts(self, tmp_path: Path) -> None:
        write_specs(self.shop(tmp_path), bronze_document(owner=7))
        catalog = load_catalog(tmp_path)
        assert "bronze.orders" in [spec.table for spec in catalog.of_domain("shop")]
        for spec in catalog.specs.values():
            with pytest.raises(SpecError, match=r"reads bronze\.orders"):
                catalog.require_sound_sources(spec)

    def test_every_table_of_a_cycle_stands_still(self, tmp_path: Path) -> None:
        pairs = {"silver.a": "silver.b", "silver.b": "silver.a", "silver.c": "silver.d", "silver.d": "silver.c"}
        write_specs(tmp_path, *ORDERS, *(silver_document(table, source=source) for table, source in pairs.items()))
        catalog = load_catalog(tmp_path)
        assert sum("read one another" in problem.message for problem in catalog.problems) == 2
        assert set(catalog.invalid) == set(pairs)

    def test_a_cycle_of_gold_tables_is_named_with_its_path_and_their_order_is_still_found(self, tmp_path: Path) -> None:
        sources = {"a": ["c", "revenue_daily"], "self": ["self"], "b": ["a"], "d": ["c"]}
        gold = (gold_of(f"gold.{table}", *(f"gold.{source}" for source in read)) for table, read in sources.items())
        write_specs(tmp_path, *ORDERS, *gold, gold_of("gold.c", "gold.b", owner=7))
        catalog = load_catalog(tmp_path)
        cycles = [problem for problem in catalog.problems if "read one another" in problem.message]
        assert [(p.key, p.value, p.message.rpartition(": ")[2], p.fix) for p in cycles] == [
            ("sources.s0.table", "gold.c", "gold.a -> gold.b -> gold.c -> gold.a", FIX.format("gold.a")),
            ("sources.s0.table", "gold.self", "gold.self -> gold.self", FIX.format("gold.self")),
        ]
        assert {table: spec.source_tables for table, spec in catalog.invalid.items()} == {
            "gold.a": ("gold.revenue_daily",), "gold.c": (), "gold.self": ()
        }  # fmt: skip
        for table in ("gold.b", "gold.d"):
            with pytest.raises(SpecError, match=f"{table}: it reads gold"):
                catalog.require_sound_sources(catalog.spec(table))
        gold = [spec.table.partition(".")[2] for spec in catalog.of_domain("shop")][3:]
        assert gold == ["revenue_daily", "self", "a", "d", "b"]

    def test_files_that_cannot_be_read_or_are_of_another_place_harm_only_themselves(self, tmp_path: Path) -> None:
        folder = write_specs(tmp_path, *ORDERS)
        (folder / "silver/shop/gone.yaml").symlink_to("nowhere")
        (folder / "silver/shop/.#orders.yaml").symlink_to("ann@here.17")
        (folder / "gold/shop/folder.yaml").mkdir()
        catalog = load_catalog(folder)
        assert (set(catalog.invalid), len(catalog.specs)) == ({"silver.gone", "gold.folder"}, 3)
        assert {problem.message for problem in catalog.problems} == {
            "the file cannot be read: No such file or directory",
            "the file cannot be read: Is a directory",
        }
        write_spec(folder, "silver/shop/copy.yaml", (folder / "silver/shop/orders.yaml").read_text())
        write_spec(folder, "stray.yaml", "table: stray\n")
        catalog = load_catalog(folder)
        assert set(catalog.invalid) == {"silver.gone", "gold.folder", "silver.copy", "stray.yaml"}
        assert (catalog.domains, len(catalog.specs), len(catalog.tables)) == (("shop",), 3, 6), "none is called stray"


def test_needed_are_the_columns_that_are_stated_so_and_those_of_keys() -> None:
    kinds = {"order_id": {}, "shop": {}, "amount": {"nullable": False}, "day": {"required": True}, "note": {}}
    key = {"type": "string", "from": "concat(shop, '-', order_id)"}
    bronze = bronze_spec(columns=kinds)
    silver = silver_spec(keys=["id"], sequence_by=[], columns={"id": key, "note": {"type": "string"}})
    assert catalog_of(bronze, silver).needed_columns(bronze) == {"order_id", "shop", "amount", "day"}
    assert catalog_of(bronze).needed_columns(bronze) == {"amount", "day"}


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(0, 4), st.integers(1, 3))
def test_any_mutation_of_the_real_specs_and_of_the_text_of_one_gives_findings(
    random: random.Random, files: int, changes: int
) -> None:
    with TemporaryDirectory() as folder:
        write_mutated(Path(folder), random, files, changes)
        spec = Path(folder, random.choice(sorted(SPECS)))
        text = list(spec.read_text())
        for _ in range(random.randint(1, 5)):
            at = random.randrange(len(text))
            text[at : at + random.randint(0, 3)] = random.choice(
                ["&a ", "*a", "!!int ", "[", "{", "\t", "\n", ": ", "- ", "\x07"]
            )
        spec.write_text("".join(text))
        catalog = load_catalog(Path(folder))
        problems = [*catalog.problems, *sql_problems(catalog)]
        assert str(SpecsRefusedError(problems)).count("\n") >= len(problems)
        for problem in problems:
            assert 1 <= problem.line <= len(problem.file.read_text().splitlines()) + 1, problem
            assert problem.message
            assert problem.key or problem.line == 1 or "not YAML" in problem.message, problem
