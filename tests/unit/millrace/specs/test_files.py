"""Files without a spec or in a wrong folder, and the error about all refused specs as a whole."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from millrace.catalog import load_catalog
from millrace.errors import ExitCode, SpecError
from millrace.specs.checks.sql import checked_catalog
from millrace.specs.problem import SpecsRefusedError
from tests.support.documents.refusals import only_problem, problem_of_silver, problems_of, rule
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_spec, write_specs

ORDERS = (bronze_document(), silver_document(), gold_document())


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no folder of table specs at .*/none\nSet LAKEHOUSE_TABLES"):
        load_catalog(tmp_path / "none")


def test_broken_yaml_names_its_line(tmp_path: Path) -> None:
    path = write_spec(tmp_path, "silver/shop/orders.yaml", "table: silver.orders\nkeys: [a\nsource: b: c\n")
    problem = only_problem(tmp_path)
    assert (problem.file, problem.line) == (path, 3)
    assert problem.message.startswith("not YAML: while parsing a flow sequence")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\ttable: x\n", "not YAML: "),
        (b"a: *b\n", "not YAML: "),
        (b"- table: silver.orders\n", "not a spec: "),
        (b"# words\n", "not a spec: "),
        (b"{}", "not a spec: "),
        (b"table: \xff\xfe", "not UTF-8 text: "),
    ],
)
def test_whatever_cannot_be_read_as_a_spec_is_a_problem_of_that_file(tmp_path: Path, content: bytes, said: str) -> None:
    write_spec(tmp_path, "silver/shop/orders.yaml", "").write_bytes(content)
    assert only_problem(tmp_path).message.startswith(said)


def test_a_suffix_that_would_be_overlooked(tmp_path: Path) -> None:
    write_spec(tmp_path, "silver/shop/orders.yml", "table: silver.orders\n")
    assert only_problem(tmp_path).fix == "rename it to orders.yaml"


def test_a_key_stated_twice(tmp_path: Path) -> None:
    write_specs(tmp_path, *ORDERS)
    path = tmp_path / "silver/shop/orders.yaml"
    path.write_text(path.read_text() + "owner: a\nkeys: [day]\nowner: b\n")
    nested = tmp_path / "bronze/shop/orders.yaml"
    nested.write_text(nested.read_text().replace("columns:\n", "columns:\n  amount: {}\n"))
    problems = problems_of(tmp_path)
    assert [problem.key for problem in problems] == ["columns.amount", "keys", "owner"]
    assert all("stated 2 times, first in line" in problem.message for problem in problems)


@pytest.mark.parametrize(
    "place", ["orders.yaml", "silver/orders.yaml", "silver/a/b/orders.yaml", "platin/a/orders.yaml"]
)
def test_a_file_outside_layer_and_domain(tmp_path: Path, place: str) -> None:
    write_specs(tmp_path, bronze_document())
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    write_specs(tmp_path, silver_document())
    (tmp_path / "silver/shop/orders.yaml").rename(tmp_path / place)
    assert only_problem(tmp_path).message == f"{place} is not at <layer>/<domain>/<table>.yaml"


@pytest.mark.parametrize("place", ["gold/shop/orders.yaml", "silver/shop/ordres.yaml"])
def test_a_file_that_is_named_for_another_table_or_domain(tmp_path: Path, place: str) -> None:
    write_specs(tmp_path, bronze_document(), silver_document())
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "silver/shop/orders.yaml").rename(tmp_path / place)
    problem = only_problem(tmp_path)
    assert problem.key == "table"
    assert problem.fix.startswith("move it to silver/shop/orders.yaml, or write `table: ")
    assert problem_of_silver(tmp_path / "domain", domain="shops").key == "domain"


def test_two_files_that_create_one_table(tmp_path: Path) -> None:
    write_specs(tmp_path, *ORDERS)
    write_specs(tmp_path, silver_document(), domain="retail")
    problem = only_problem(tmp_path)
    assert (problem.key, problem.value) == ("table", "silver.orders")
    assert problem.file == tmp_path / "silver/shop/orders.yaml"
    assert f"{tmp_path}/silver/retail/orders.yaml creates this table already" in problem.message


def test_every_problem_of_every_file_is_reported_at_once(tmp_path: Path) -> None:
    write_specs(tmp_path, bronze_document(owner=7), gold_document(refresh_by="dya"))
    write_specs(tmp_path, silver_document(kees=1, zorder_by=["x"], expectations=rule("expect_x")))
    write_spec(tmp_path, "silver/shop/broken.yaml", "a: [")
    with pytest.raises(SpecsRefusedError) as refused:
        checked_catalog(tmp_path)
    places = [(problem.file, problem.line) for problem in refused.value.problems]
    assert places == sorted(places)
    found = [(problem.file.name, problem.key) for problem in refused.value.problems]
    assert sorted(found) == [
        ("broken.yaml", ""),
        ("orders.yaml", "expectations[0].expect_x"),
        ("orders.yaml", "kees"),
        ("orders.yaml", "owner"),
        ("orders.yaml", "zorder_by[0]"),
        ("revenue_daily.yaml", "refresh_by"),
    ]


def test_the_message_names_file_line_key_value_and_fix_and_survives_pickling(tmp_path: Path) -> None:
    path = write_spec(
        tmp_path,
        "bronze/shop/x.yaml",
        "# words\ntable: bronze.x\nsource: {landing: x, format: jsn}\ncolumns:\n  a: {}\n",
    )
    with pytest.raises(SpecsRefusedError) as refused:
        checked_catalog(tmp_path)
    first, second = str(refused.value).split("\n")
    assert first == "1 problem in 1 table spec: fix the lines below, then `lakehouse check`"
    assert second == f"  {path}:3: source.format: unknown value (got 'jsn'); did you mean 'json'?"
    assert refused.value.exit_code is ExitCode.BAD_SPEC
    copied = pickle.loads(pickle.dumps(refused.value))
    assert (copied.problems, str(copied)) == (refused.value.problems, str(refused.value))
