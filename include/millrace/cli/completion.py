"""What the shell completes: the names of tables and of domains, from the names of the spec files."""

from __future__ import annotations

from collections.abc import Iterator


def table_names(incomplete: str) -> list[str]:
    """Return the tables whose names begin like this; none if the settings or the folder cannot be read."""
    return _beginning(incomplete, (f"{layer}.{name}" for layer, _, name in _spec_files()))


def domain_names(incomplete: str) -> list[str]:
    """Return the domains whose names begin like this; none if the settings or the folder cannot be read."""
    return _beginning(incomplete, (domain for _, domain, _ in _spec_files()))


def _beginning(text: str, names: Iterator[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(text)})


def _spec_files() -> Iterator[tuple[str, str, str]]:
    """Yield layer, domain and name of each spec file; a message would end up in the line that a person types."""
    from millrace.errors import ProjectError
    from millrace.settings import Settings

    try:
        files = list(Settings().tables.glob("*/*/*.yaml"))
    except (ValueError, OSError, ProjectError):
        return
    yield from ((file.parts[-3], file.parts[-2], file.stem) for file in files)
