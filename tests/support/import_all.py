"""Imports every module of the packages named on the command line, and says as JSON which could not be imported."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import traceback


def import_all(packages: list[str]) -> dict[str, str]:
    """module -> empty, or the traceback of its import."""
    said: dict[str, str] = {}
    for package in packages:
        said[package] = _problem(package)
        found = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.", onerror=lambda _: None)
        said.update({module.name: _problem(module.name) for module in found})
    return said


def _problem(module: str) -> str:
    try:
        importlib.import_module(module)
    except BaseException:  # noqa: BLE001  also a module that exits; what went wrong is told
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(import_all(sys.argv[1:])))
