"""The catalog: all table specs of a folder, checked against one another, in the order they are built in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from include.contracts.table_spec import SPEC_OF_LAYER, AnySpec
from include.errors import SpecError
from include.specs.change_data import check_history, check_left_out, check_snapshot, check_truncates
from include.specs.columns import check_columns, check_received
from include.specs.expectations import check_expectations
from include.specs.files import SpecFile, read_spec_file
from include.specs.gold import check_gold_names
from include.specs.kafka import check_kafka
from include.specs.landing import check_landing
from include.specs.links import LAYERS, check_links, check_place, cycle, stated_sources
from include.specs.maintenance import check_tombstones
from include.specs.other_tables import check_compared
from include.specs.problem import Finding, SpecProblem, SpecsRefusedError, did_you_mean
from include.specs.properties import check_properties
from include.specs.shape import shape

_CHECKS = (
    check_columns,
    check_received,
    check_snapshot,
    check_history,
    check_truncates,
    check_left_out,
    check_tombstones,
    check_expectations,
    check_compared,
    check_properties,
    check_landing,
    check_kafka,
    check_gold_names,
)


@dataclass(frozen=True)
class Catalog:
    """The specs of all tables.

    Attributes:
        specs: table -> spec, in build order: bronze, silver, gold; within a layer by domain and name.
        files: table -> the YAML file that states it.
    """

    specs: dict[str, AnySpec]
    files: dict[str, Path] = field(default_factory=dict)

    def spec(self, table: str) -> AnySpec:
        """The spec of `table`.

        Raises:
            SpecError: no spec creates it; the message says which name is closest.
        """
        if table not in self.specs:
            msg = f"no spec creates the table {table!r}: {did_you_mean(table, self.specs)}"
            raise SpecError(msg)
        return self.specs[table]

    def of_domain(self, domain: str) -> tuple[AnySpec, ...]:
        """The specs of one domain, in build order.

        Raises:
            SpecError: no spec lies in a folder of that name; the message says which name is closest.
        """
        found = tuple(spec for spec in self.specs.values() if spec.domain == domain)
        if not found:
            msg = f"no table has the domain {domain!r}: {did_you_mean(domain, self.domains)}"
            raise SpecError(msg)
        return found

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that have tables, by name."""
        return tuple(sorted({spec.domain for spec in self.specs.values()}))


def load_catalog(folder: Path) -> Catalog:
    """Read and check every spec under `folder`, laid out as `<layer>/<domain>/<table>.yaml`.

    Raises:
        SpecsRefusedError: with every problem of every file.
        SpecError: there is no such folder.
    """
    if not folder.is_dir():
        msg = f"no folder of table specs at {folder}: set LAKEHOUSE_TABLES to the folder that has them"
        raise SpecError(msg)
    files = [read_spec_file(path) for path in _spec_paths(folder)]
    problems = [*_misnamed(folder), *(problem for file in files for problem in file.problems)]
    read = [(file, *_read(file, folder)) for file in files if file.document]
    problems += [problem for _, _, found in read for problem in found]
    problems += _check_together([file for file, _, _ in read])
    if problems:
        raise SpecsRefusedError(problems)
    return _catalog({file.path: spec for file, spec, _ in read if spec})


def _spec_paths(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.yaml"))


def _misnamed(folder: Path) -> Iterator[SpecProblem]:
    for path in folder.rglob("*.yml"):
        yield SpecProblem(path, 1, "", None, "a spec's file name ends in .yaml", f"rename it to {path.stem}.yaml")


def _read(file: SpecFile, folder: Path) -> tuple[AnySpec | None, list[SpecProblem]]:
    """The spec of one file, and all that is wrong with the file by itself."""
    place = PurePosixPath(file.path.relative_to(folder).as_posix())
    domain = place.parts[1] if len(place.parts) == 3 else ""
    spec, findings = shape({**file.document, "domain": domain}, SPEC_OF_LAYER[_layer(file.document, place)])
    findings += check_place(file.document, place)
    for check in _CHECKS:
        findings += check(file.document)
    return spec, _located(file, findings)


def _layer(document: Mapping[str, Any], place: PurePosixPath) -> str:
    """The layer that the document states; where it states none, that of its folder."""
    candidates = (str(document.get("table", "")).partition(".")[0], place.parts[0])
    return next((layer for layer in candidates if layer in LAYERS), LAYERS[0])


def _located(file: SpecFile, findings: Iterable[Finding]) -> list[SpecProblem]:
    return [file.problem(found.path, found.message, found.value, found.fix) for found in findings]


def _check_together(files: list[SpecFile]) -> Iterator[SpecProblem]:
    """What is wrong between files: tables created twice, missing sources, cycles."""
    first: dict[str, SpecFile] = {}
    for file in sorted(files, key=_is_misplaced):
        table = str(file.document.get("table"))
        if first.setdefault(table, file) is not file:
            message = f"{first[table].path} creates this table already"
            yield file.problem(("table",), message, table, "give it another name, or remove one of the files")
    documents = {table: file.document for table, file in first.items()}
    for file in files:
        yield from _located(file, check_links(file.document, documents))
    if tables := cycle(
        {table: [name for _, name in stated_sources(document)] for table, document in documents.items()}
    ):
        yield first[tables[0]].problem(("table",), f"the tables read one another: {' -> '.join(tables)}", tables[0])


def _is_misplaced(file: SpecFile) -> bool:
    return str(file.document.get("table")).rpartition(".")[2] != file.path.stem


def _catalog(specs: dict[Path, AnySpec]) -> Catalog:
    ordered = sorted(specs.items(), key=lambda one: (LAYERS.index(one[1].layer), one[1].domain, one[1].name))
    return Catalog({spec.table: spec for _, spec in ordered}, {spec.table: path for path, spec in ordered})
