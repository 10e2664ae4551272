"""`lakehouse init`: write the specs and the DAG file of a new domain, from a folder with delivered files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from millrace.cli.authoring.infer import landing_folder, require_domain_name
from millrace.cli.catalog import command_catalog
from millrace.cli.progress import in_progress
from millrace.control.landing.landing import landing_of
from millrace.errors import MillraceError, SpecError
from millrace.inference.new_domain import SourceTables, dag_text, source_folders, source_tables, table_name
from millrace.settings import Settings
from millrace.specs.checks.sql import checked_catalog

_LAYERS = ("bronze", "silver")


@dataclass(frozen=True)
class NewDomain:
    """A domain that is not written yet.

    Attributes:
        name: its name.
        sources: the tables of each source that could be read.
        failures: source -> why its files could not be read.
        dags: the folder of Airflow's DAG files.
        tables: the folder of table specs.
    """

    name: str
    sources: tuple[SourceTables, ...]
    failures: dict[str, MillraceError]
    dags: Path
    tables: Path

    @property
    def days(self) -> list[date]:
        """The days that were delivered, in their order; today if no source has a folder for each day."""
        days = sorted({day for source in self.sources for day in source.days})
        return days or [datetime.now(UTC).date()]

    @property
    def files(self) -> dict[Path, str]:
        """Each file with its text."""
        specs = [(layer, source.name, getattr(source, layer)) for layer in _LAYERS for source in self.sources]
        files = {self.tables / layer / self.name / f"{name}.yaml": text for layer, name, text in specs if text}
        return {**files, self.dags / f"{self.name}.py": dag_text(self.name, self.days[0])}


def new_domain(name: str, folder: str, dags: Path, settings: Settings) -> NewDomain:
    """Read what the sources below a landing folder delivered, and propose a domain.

    A source that cannot be read does not stop the others.

    Raises:
        SpecError: the name is not valid, the domain exists, or the folder is not below the landing root.
        NotReadyError: the folder has no file of a known format.
        MillraceError: no source can be read.
    """
    require_domain_name(name)
    places = (dags / f"{name}.py", *(settings.tables / layer / name for layer in _LAYERS))
    if found := [place for place in places if place.exists()]:
        raise SpecError(
            f"the domain {name} exists already: {found[0]}",
            "Nothing was written. `lakehouse infer FOLDER --domain ... --write` adds a table to it.",
        )
    top = landing_folder(folder, settings.landing)
    landing = landing_of(top, settings.landing)
    tables = command_catalog(settings.tables).tables if settings.tables.exists() else ()
    taken = {table.partition(".")[2] for table in tables}
    sources, failures = list[SourceTables](), dict[str, MillraceError]()
    for source, days in in_progress(list(source_folders(landing, top).items()), "reading what was delivered"):
        own = source.removeprefix(f"{top}/") if source != top else top.rpartition("/")[2]
        table = table_name(own, name, taken)
        try:
            sources.append(source_tables(landing, source, table, name, days))
            taken.add(table)
        except MillraceError as error:
            failures[source] = error
    if not sources:
        raise next(iter(failures.values()))
    return NewDomain(name, tuple(sources), failures, dags, settings.tables)


def write_domain(domain: NewDomain) -> list[Path]:
    """Write the files of a new domain, and check its specs; return the files.

    Raises:
        FileExistsError: another process has written one of them in the meantime; it is not overwritten.
        SpecsRefusedError: a spec is wrong.
    """
    for file, text in domain.files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    checked_catalog(domain.tables)
    return list(domain.files)


def next_command(domain: NewDomain) -> str:
    """Return the command that loads what was delivered."""
    first, last = domain.days[0], domain.days[-1]
    to, length = f" --to {last}" if last != first else "", (last - first).days + 1
    # A run stops at a day that a source has not delivered.
    has_gaps = any(0 < len(source.days) < length for source in domain.sources)
    return f"lakehouse run --domain {domain.name} --interval {first}{to}{' --skip-missing' if has_gaps else ''}"
