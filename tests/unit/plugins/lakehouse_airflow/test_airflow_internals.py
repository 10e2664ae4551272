"""What the package uses of Airflow without a promise is named in one place, and still there."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from embedded.clone import CLONE
from lakehouse_airflow.airflow_internals import INTERNALS
from lakehouse_airflow.hooks.spark_job import SparkJobHook

PACKAGE = CLONE / "plugins" / "lakehouse_airflow"
PUBLIC = ("airflow.sdk", "airflow.sdk.exceptions", "airflow.sdk.configuration", "airflow.sdk.log", "airflow.sdk.types")
PUBLIC_PARTS = ("airflow.listeners", "airflow.plugins_manager", "airflow.providers.", "airflow.triggers.base")
HOOK = "airflow.providers.apache.spark.hooks.spark_submit:SparkSubmitHook"


@cache
def trees() -> dict[Path, ast.Module]:
    found = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
    assert len(found) > 30
    return found


@cache
def private_names_of(base: type) -> set[str]:
    return private_names(ast.parse(inspect.getsource(base)))


def private_names(tree: ast.AST) -> set[str]:
    """Return the names with one underscore that are read or set as attributes, or defined as methods."""
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    methods = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {name for name in attributes | methods if name.startswith("_") and not name.startswith("__")}


def airflow_bases(path: Path) -> list[type]:
    """Return Airflow's own classes among the bases of the classes of a module."""
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    module = import_module(name)
    own = [thing for thing in vars(module).values() if inspect.isclass(thing) and thing.__module__ == name]
    return [base for thing in own for base in thing.__mro__ if base.__module__.startswith("airflow.")]


@pytest.mark.parametrize("place", sorted(INTERNALS))
def test_airflow_still_has_what_is_used_of_it(place: str) -> None:
    module, _, name = place.partition(":")
    thing: Any = getattr(import_module(module), name)
    source = inspect.getsource(thing) if inspect.isclass(thing) else ""
    assert [
        member for member in INTERNALS[place] if not hasattr(thing, member) and f"self.{member}" not in source
    ] == []


@pytest.mark.parametrize("method", [name for name in INTERNALS[HOOK] if name != "_submit_sp"])
def test_the_hook_overrides_methods_that_the_provider_still_calls_in_the_same_way(method: str) -> None:
    module, _, name = HOOK.partition(":")
    provider = getattr(import_module(module), name)
    assert inspect.signature(getattr(SparkJobHook, method)) == inspect.signature(getattr(provider, method))
    assert f"self.{method}(" in inspect.getsource(provider.__init__) + inspect.getsource(provider.submit)


def test_no_other_private_name_of_airflow_is_used() -> None:
    listed = {name for members in INTERNALS.values() for name in members}
    used: dict[str, set[str]] = {}
    for path, tree in trees().items():
        theirs = {name for base in airflow_bases(path) for name in private_names_of(base)}
        if names := private_names(tree) & theirs:
            used[path.relative_to(PACKAGE).as_posix()] = names
    assert used["hooks/spark_job.py"] == set(INTERNALS[HOOK])
    assert {name: names - listed for name, names in used.items() if names - listed} == {}


def test_no_other_module_of_airflow_is_imported() -> None:
    listed = {tuple(place.split(":")) for place in INTERNALS}
    imported = {
        (node.module, alias.name)
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "airflow"
        for alias in node.names
    }
    beyond = {(module, name) for module, name in imported if module not in PUBLIC}
    assert {place for place in beyond if not place[0].startswith(PUBLIC_PARTS)} <= listed
    assert listed <= imported
