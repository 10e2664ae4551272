"""What users import is on one page, and is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import lakehouse_airflow.factory as factory

PAGE = Path("docs/reference/python.md")
_IMPORT = re.compile(r"from ((?:millrace|lakehouse_airflow)[\w.]*) import (\([\w\s,]+\)|[\w, ]+)")
USERS = (Path("docs"), Path("README.md"), Path("include/millrace/new_project"), Path("dags"), Path("demo/dags"))


def imported(text: str) -> set[tuple[str, str]]:
    return {(module, name) for module, names in _IMPORT.findall(text) for name in re.findall(r"\w+", names)}


def test_users_import_what_the_page_lists_and_it_exists() -> None:
    public = imported(PAGE.read_text())
    assert len(public) > 15
    missing = [f"{module}.{name}" for module, name in public if not hasattr(import_module(module), name)]
    assert missing == []
    assert {name for module, name in public if module == factory.__name__} == set(factory.__all__)
    files = [file for place in USERS for file in ([place] if place.is_file() else place.rglob("*"))]
    texts = [file.read_text() for file in files if file.suffix in (".py", ".md") and "adr" not in file.parts]
    assert len(texts) > 30
    assert {each for text in texts for each in imported(text)} - public == set()
