"""The reference: what it says of keys, rules and examples is what the models say, and its specs are right."""

from __future__ import annotations

import re
from pathlib import Path

from embedded.clone import CLONE
from embedded.documentation.reference import EXAMPLES, KEY_LISTS, PAGES, RULE_LISTS, SPECS, blocks, written
from millrace.specs.checks.sql import checked_catalog

TUTORIAL = CLONE / "docs" / "guides" / "add-a-table.md"


def test_each_page_says_what_the_models_and_the_examples_say() -> None:
    pages = {path: path.read_text() for path in PAGES.glob("*.md")}
    assert len(pages) == 7
    assert [path.name for path, page in pages.items() if written(page) != page] == [], "run `make reference`"
    named = [name for page in pages.values() for name in blocks(page)]
    assert {*named} >= {*KEY_LISTS, *RULE_LISTS}
    assert all((EXAMPLES / name).is_file() for name in named if name.endswith(".yaml"))


def test_the_examples_are_specs_that_check_accepts() -> None:
    assert len(checked_catalog(SPECS).specs) == len(list(SPECS.rglob("*.yaml"))) > 15


def test_the_specs_of_the_tutorial_are_right(tmp_path: Path) -> None:
    specs = re.findall(r"^```yaml\n(table: (\w+)\.(\w+)\n.*?)^```$", TUTORIAL.read_text(), re.MULTILINE | re.DOTALL)
    (rules,) = re.findall(r"^```yaml\n(expectations:.*?)^```$", TUTORIAL.read_text(), re.MULTILINE | re.DOTALL)
    for text, layer, name in specs:
        file = tmp_path / layer / "support" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + (rules if layer == "silver" else ""))
    assert set(checked_catalog(tmp_path).specs) == {f"{layer}.{name}" for _, layer, name in specs}
    assert len(specs) == 3
