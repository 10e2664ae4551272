"""Expectation classes of a project's own, in a folder of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millrace.contracts.spec import expectation_arguments
from millrace.contracts.spec.custom_expectations import read_custom_expectations


@contextmanager
def own_classes(folder: Path) -> Iterator[None]:
    """Treat the files of a folder as if they were the project's."""
    from millrace_spark.quality.gx import classes  # imports Great Expectations, which takes seconds

    found, _ = read_custom_expectations(folder, expectation_arguments.ARGUMENTS)
    with pytest.MonkeyPatch.context() as patch:
        for name, custom in found.items():
            patch.setitem(expectation_arguments.CUSTOM_EXPECTATIONS, name, custom)
            patch.setitem(expectation_arguments.ARGUMENTS, name, custom.arguments)
        patch.setattr(classes, "EXPECTATIONS", folder)
        try:
            yield
        finally:
            classes.register_custom_expectations.cache_clear()
