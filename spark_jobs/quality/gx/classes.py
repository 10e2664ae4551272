"""The classes of expectations: Great Expectations' own, and those of the project in `include/expectations`."""

from __future__ import annotations

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location

from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.registry import get_expectation_impl

from include.contracts.spec.custom_expectations import EXPECTATIONS
from include.contracts.spec.expectation_arguments import CUSTOM_EXPECTATIONS


def expectation_class(name: str) -> type[Expectation]:
    """Return the class of an expectation.

    Raises:
        ExpectationNotFoundError: there is none of this name.
    """
    if name in CUSTOM_EXPECTATIONS:
        register_custom_expectations()
    found: type[Expectation] = get_expectation_impl(name)
    return found


@cache
def register_custom_expectations() -> None:
    """Run the project's files, whose classes then register themselves."""
    for path in sorted(EXPECTATIONS.glob("*.py")):
        spec = spec_from_file_location(f"millrace_expectations.{path.stem}", path)
        if spec and spec.loader:
            spec.loader.exec_module(module_from_spec(spec))
