"""Any YAML in the folder gives findings with file, line and key, and never a traceback."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from include.catalog import load_catalog
from include.specs.checks.sql import sql_problems
from include.specs.problem import SpecsRefusedError
from tests.support.documents.odd_specs import SPECS, write_mutated


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(0, 4), st.integers(1, 3))
def test_any_mutation_of_the_real_specs_and_of_the_text_of_one_gives_findings(
    random: random.Random, files: int, changes: int
) -> None:
    with TemporaryDirectory() as folder:
        write_mutated(Path(folder), random, files, changes)
        spec = Path(folder, random.choice(sorted(SPECS)))
        text = list(spec.read_text())
        for _ in range(random.randint(1, 5)):
            at = random.randrange(len(text))
            text[at : at + random.randint(0, 3)] = random.choice(
                ["&a ", "*a", "!!int ", "[", "{", "\t", "\n", ": ", "- ", "\x07"]
            )
        spec.write_text("".join(text))
        assert_findings(Path(folder))


def assert_findings(folder: Path) -> None:
    catalog = load_catalog(folder)
    problems = [*catalog.problems, *sql_problems(catalog)]
    assert str(SpecsRefusedError(problems)).count("\n") >= len(problems)
    for problem in problems:
        assert problem.file.is_relative_to(folder)
        assert 1 <= problem.line <= len(problem.file.read_text().splitlines()) + 1, problem
        assert problem.message
        assert problem.key or problem.line == 1 or "not YAML" in problem.message, problem
