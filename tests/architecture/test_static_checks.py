"""The rules that machines check: what imports what, style, and types."""

from __future__ import annotations

import os
import re
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


def test_storage_and_ledger_get_settings_and_time_from_their_callers() -> None:
    assert lines_with(r"\bSettings\(|datetime\.now\(|\btime\.time\(", "include/control") == []


def test_no_writer_misses_the_folder_of_leases() -> None:
    """Only `Settings.paths`, `JobContext.paths` and `OpsTable.of` bring it; the others here name places, or read."""
    assert {line.split(":")[0] for line in lines_with(r"\bLakehousePaths\(\w", "include", "spark_jobs", "plugins")} == {
        *("include/settings.py", "include/cli/facts.py", "include/reading/certified.py"),
        *("spark_jobs/runtime/context.py", "spark_jobs/runtime/entrypoint.py", "spark_jobs/jobs/data_docs.py"),
    }
    assert lines_with(r"\bOpsTable\(", "include", "spark_jobs", "plugins") == []


def lines_with(pattern: str, *folders: str) -> list[str]:
    """Return `<file>: <line>` for each line of code that matches `pattern`; docstrings have doctests."""
    return [
        f"{file.relative_to(PROJECT)}: {line.strip()}"
        for folder in folders
        for file in sorted((PROJECT / folder).rglob("*.py"))
        for line in file.read_text().splitlines()
        if re.search(pattern, line) and not line.lstrip().startswith((">>>", "class "))
    ]
