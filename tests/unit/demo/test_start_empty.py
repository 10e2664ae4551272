from __future__ import annotations

from pathlib import Path

import pytest

from demo.lakehouse import NotTheDemosError, start_empty


def held(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_the_tables_of_an_earlier_demo_are_deleted(tmp_path: Path) -> None:
    assert not start_empty(tmp_path / "lake")
    assert held(tmp_path / "lake") == ["MADE_BY_THE_DEMO"]
    (tmp_path / "lake" / "silver").mkdir()
    assert start_empty(tmp_path / "lake")
    assert held(tmp_path / "lake") == ["MADE_BY_THE_DEMO"]


def test_tables_that_the_demo_did_not_make_are_never_deleted(tmp_path: Path) -> None:
    (tmp_path / "silver").mkdir()
    with pytest.raises(NotTheDemosError, match="LAKEHOUSE_ROOT=data/demo make demo"):
        start_empty(tmp_path)
    assert held(tmp_path) == ["silver"]
