"""The expectation classes of a project are read from their source: names, arguments, kinds and errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from embedded.clone import CLONE
from millrace.contracts.spec.arguments import Arguments
from millrace.contracts.spec.custom_expectations import CustomExpectation, expectation_name, read_custom_expectations
from millrace.contracts.spec.expectation_arguments import COMPARISONS, ROW_EXPECTATIONS, VERSION_EXPECTATIONS
from tests.support.documents.specs import bronze_document, silver_document, write_specs

EXAMPLE = CLONE / "docs" / "examples" / "expectations"
KNOWN = {**ROW_EXPECTATIONS, **VERSION_EXPECTATIONS, **COMPARISONS}
EAN = "expect_column_values_to_be_ean13"


def read(folder: Path, source: str, name: str = "a.py") -> dict[str, CustomExpectation]:
    (folder / name).write_text(source)
    found, errors = read_custom_expectations(folder, KNOWN)
    assert errors == {}
    return found


def test_the_example_has_two_expectations_with_the_arguments_that_great_expectations_knows() -> None:
    from great_expectations.expectations.expectation import BatchExpectation
    from great_expectations.expectations.registry import get_expectation_impl

    found, errors = read_custom_expectations(EXAMPLE, KNOWN)
    assert errors == {}
    assert {name: custom.arguments for name, custom in found.items()} == {
        EAN: Arguments(required=("column",), optional=("mostly",)),
        "expect_price_to_be_plausible": Arguments(
            optional=("strict_min", "strict_max", "mostly", "column", "min_value", "max_value")
        ),
    }
    exec(compile((EXAMPLE / "barcodes.py").read_text(), "barcodes.py", "exec"), {})
    common = {*BatchExpectation.__fields__, "row_condition", "condition_parser"}
    for name, custom in found.items():
        fields = get_expectation_impl(name).__fields__
        assert set(custom.arguments.all_names) == fields.keys() - common
        assert {key for key, field in fields.items() if field.required} - common == set(custom.arguments.required)


def test_own_fields_are_arguments_with_their_kinds(tmp_path: Path) -> None:
    source = """
class ExpectColumnToRound(ge.ColumnMapExpectation):
    digits: int
    base: Union[int, None] = 10
    words: list[str] = pydantic.Field(default=["a"], description="x")
    share: float = Field(..., description="y")
    description: str = "z"
    _hidden: int = 1
    keys: ClassVar[tuple[str, ...]] = ()
    map_metric = "x"
"""
    custom = read(tmp_path, source)["expect_column_to_round"]
    assert custom.arguments == Arguments(("column", "digits", "share"), ("mostly", "base", "words"))
    assert {name: schema["type"] for name, schema in custom.schemas.items() if name != "base"} == {
        "digits": "integer",
        "words": "array",
        "share": "number",
    }


def test_a_class_may_extend_a_class_of_an_earlier_file(tmp_path: Path) -> None:
    read(tmp_path, "class ExpectA(BatchExpectation):\n    limit: int\n", "a.py")
    found = read(tmp_path, "class ExpectB(ExpectA):\n    limit: int = 3\n", "b.py")
    assert found["expect_b"].arguments == Arguments((), ("limit",))
    assert found["expect_a"].digest != found["expect_b"].digest
    later = read(tmp_path, "class ExpectA(BatchExpectation):\n    limit: int\n    x = 1\n", "a.py")
    assert later["expect_b"].digest != found["expect_b"].digest


def test_other_classes_are_no_expectations_and_a_folder_need_not_exist(tmp_path: Path) -> None:
    for source in ("class Expected:\n    pass", "class ExpectNothing(dict):\n    pass", "x = 1", ""):
        assert read(tmp_path, source) == {}
    assert read_custom_expectations(tmp_path / "none", KNOWN) == ({}, {})


def test_wrong_files_are_named_with_the_line_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nclass ExpectA(:\n")
    (tmp_path / "b.py").write_text("\n\nclass ExpectColumnToExist(BatchExpectation):\n    pass\n")
    (tmp_path / "c.py").write_text("class ExpectC(BatchExpectation):\n    pass\n")
    (tmp_path / "d.py").write_text("class ExpectC(ColumnMapExpectation):\n    pass\n")
    found, errors = read_custom_expectations(tmp_path, KNOWN)
    assert found.keys() == {"expect_c"}
    assert {path.name: line for path, (line, _) in errors.items()} == {"a.py": 2, "b.py": 3, "d.py": 1}
    assert errors[tmp_path / "d.py"][1] == "c.py has expect_c already"
    assert found["expect_c"].arguments == Arguments()
    assert "expect_column_to_exist already" in errors[tmp_path / "b.py"][1]


def test_names_are_those_of_great_expectations() -> None:
    from great_expectations.util import camel_to_snake

    for name in ("ExpectColumnValuesToBeIBANs", "ExpectA", "ExpectEan13ToBeOK", "ExpectHTTPStatus2xx"):
        assert expectation_name(name) == camel_to_snake(name)


def test_lakehouse_check_knows_them_without_great_expectations_and_names_wrong_ones(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "expectations")
    (tmp_path / "expectations" / "wrong.py").write_text("class ExpectX(:\n")
    right, wrong = {EAN: {"column": "order_id", "mostly": 0.9}}, {EAN: {"colum": "order_id"}}
    rules = [{**rule, "action": "fail"} for rule in (right, wrong)]
    write_specs(tmp_path / "tables", bronze_document(), silver_document(expectations=rules))
    code = (
        "import sys; from millrace.cli.app import app\n"
        "try: app(['check'])\n"
        "finally: print('loaded:', 'great_expectations' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "LAKEHOUSE_TABLES": "tables"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert "loaded: False" in said
    assert "takes no such argument" in said
    assert "wrong.py:1: not Python" in said
    assert "expectations[0]" not in said
