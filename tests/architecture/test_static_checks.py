"""What the source may not contain, beyond what `make lint` checks."""

from __future__ import annotations

import re

from embedded.clone import CLONE


def test_storage_and_ledger_get_settings_and_time_from_their_callers() -> None:
    assert lines_with(r"\bSettings\(|datetime\.now\(|\btime\.time\(", "include/millrace/control") == []


def test_no_writer_misses_the_folder_of_leases() -> None:
    """Only `Settings.paths`, `JobContext.paths` and `OpsTable.of` bring it; the others here name places, or read."""
    assert {line.split(":")[0] for line in lines_with(r"\bLakehousePaths\(\w", "include", "spark_jobs", "plugins")} == {
        *("include/millrace/settings.py", "include/millrace/cli/facts.py", "include/millrace/reading/certified.py"),
        "include/millrace/erase/suppression.py",
        *(
            "spark_jobs/millrace_spark/runtime/context.py",
            "spark_jobs/millrace_spark/runtime/entrypoint.py",
            "spark_jobs/millrace_spark/jobs/data_docs.py",
        ),
    }
    assert lines_with(r"\bOpsTable\(", "include", "spark_jobs", "plugins") == []


def lines_with(pattern: str, *folders: str) -> list[str]:
    """Return `<file>: <line>` for each line of code that matches `pattern`; docstrings have doctests."""
    return [
        f"{file.relative_to(CLONE)}: {line.strip()}"
        for folder in folders
        for file in sorted((CLONE / folder).rglob("*.py"))
        for line in file.read_text().splitlines()
        if re.search(pattern, line) and not line.lstrip().startswith((">>>", "class "))
    ]
