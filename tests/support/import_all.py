"""Import every module of the packages on the command line, and print the failed imports as JSON; run as a script."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import traceback


def failed_imports(packages: list[str]) -> dict[str, str]:
    """Return module -> traceback of its import; empty for a module that can be imported."""
    problems: dict[str, str] = {}
    for package in packages:
        problems[package], path = _problem(package), importlib.import_module(package).__path__
        modules = pkgutil.walk_packages(path, f"{package}.", onerror=lambda _: None)
        problems.update({module.name: _problem(module.name) for module in modules})
    return problems


def _problem(module: str) -> str:
    try:
        importlib.import_module(module)
    except BaseException:  # noqa: BLE001  also a module that exits
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(failed_imports(sys.argv[1:])))
