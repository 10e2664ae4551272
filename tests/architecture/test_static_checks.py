"""The rules that machines check: what imports what, style, and types."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from include.settings import PROJECT

BIN = Path(sys.executable).parent
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]


def run(*command: str, **environment: str) -> tuple[int, str]:
    """(exit code, what it said) of a command in the project."""
    done = subprocess.run(
        command,
        cwd=PROJECT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )
    return done.returncode, done.stdout


def test_every_import_contract_holds() -> None:
    contracts = [contract["name"] for contract in SETTINGS["importlinter"]["contracts"]]
    assert contracts
    code, said = run(str(BIN / "lint-imports"), "--no-cache", PYTHONPATH=os.pathsep.join((".", "plugins")))
    assert f"Contracts: {len(contracts)} kept, 0 broken." in said, said
    assert [name for name in contracts if f"{name} KEPT" not in said] == []
    assert code == 0


def test_style_is_as_ruff_wants_it() -> None:
    code, said = run(sys.executable, "-m", "ruff", "check", "--output-format", "concise", ".")
    assert (code, said.strip()) == (0, "All checks passed!")


def test_types_are_as_mypy_wants_them() -> None:
    code, said = run(sys.executable, "-m", "mypy")
    assert code == 0, said
    files = [path for package in SETTINGS["mypy"]["files"] for path in (PROJECT / package).rglob("*.py")]
    assert said.strip().endswith(f"Success: no issues found in {len(files)} source files")
