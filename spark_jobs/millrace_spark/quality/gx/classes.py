"""The classes of expectations: Great Expectations' own, and those of the project beside its specs."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.registry import get_expectation_impl

from millrace.contracts.spec.custom_expectations import EXPECTATIONS
from millrace.contracts.spec.expectation_arguments import CUSTOM_EXPECTATIONS
from millrace.errors import SpecError, first_line


def expectation_class(name: str) -> type[Expectation]:
    """Return the class of an expectation.

    Raises:
        ExpectationNotFoundError: there is none of this name.
        SpecError: a file of the project's own expectations cannot be run.
    """
    if name in CUSTOM_EXPECTATIONS:
        register_custom_expectations()
    found: type[Expectation] = get_expectation_impl(name)
    return found


@cache
def register_custom_expectations() -> None:
    """Run the project's files, whose classes then register themselves.

    Raises:
        SpecError: a file cannot be run.
    """
    for path in sorted(EXPECTATIONS.glob("*.py") if EXPECTATIONS else ()):
        _run(path)


def _run(path: Path) -> None:
    spec = spec_from_file_location(f"millrace_expectations_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{path} is no Python file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # pydantic looks up the types of annotations there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        cause = f"{path} cannot be run: {type(error).__name__}: {first_line(error)}"
        way_out = "Correct it, then run the table again, or in Airflow clear the failed task with its downstream tasks."
        raise SpecError(cause, way_out) from error
    finally:
        del sys.modules[spec.name]  # so that Spark sends its functions to the workers, who lack the file
