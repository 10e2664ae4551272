"""The catalog: all table specs of a folder, checked against one another, in the order they are built in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from include.contracts.spec.table_spec import SPEC_OF_LAYER, AnySpec
from include.errors import SpecError, UnknownNameError
from include.specs.checks.change_data import check_history, check_left_out, check_snapshot, check_truncates
from include.specs.checks.columns import check_columns, check_received
from include.specs.checks.expectations import check_expectations
from include.specs.checks.gold import check_gold_names
from include.specs.checks.kafka import check_kafka
from include.specs.checks.landing import check_landing
from include.specs.checks.maintenance import check_tombstones
from include.specs.checks.other_tables import check_compared
from include.specs.checks.properties import check_properties
from include.specs.files import SpecFile, read_spec_file
from include.specs.links import LAYERS, check_links, check_place, cycle, stated_sources
from include.specs.problem import Finding, SpecProblem, SpecsRefusedError, did_you_mean
from include.specs.refused import RefusedSpec, StatedSpec, placed_table, refused_specs
from include.specs.shape import shape
from include.specs.sound import without_findings

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
        specs: table -> spec, those that are sound, in build order: bronze, silver, gold; within a layer by domain and
            name.
        files: table -> the YAML file that states it.
        refused: table -> what is known of its spec, which is wrong. The table stands still, with all that reads it,
            until the spec is fixed; every other table goes on.
    """

    specs: dict[str, AnySpec]
    files: dict[str, Path] = field(default_factory=dict)
    refused: dict[str, RefusedSpec] = field(default_factory=dict)

    @property
    def problems(self) -> tuple[SpecProblem, ...]:
        """Everything that is wrong with any spec."""
        of_file = {problem.file: spec.problems for spec in self.refused.values() for problem in spec.problems}
        return tuple(problem for file in sorted(of_file) for problem in of_file[file] if problem.file == file)

    def spec(self, table: str) -> AnySpec:
        """The spec of `table`.

        Raises:
            UnknownNameError: no spec creates it; the message says which name is closest.
        """
        if table in self.refused:
            raise SpecsRefusedError(self.refused[table].problems)
        if table not in self.specs:
            raise UnknownNameError(f"no spec creates the table {table!r}", did_you_mean(table, self.tables))
        return self.specs[table]

    def require_known(self, table: str) -> None:
        """Accept a table that a spec creates, sound or not: what it holds can be looked at either way.

        Raises:
            SpecError: no spec creates it.
        """
        if table not in self.refused:
            self.spec(table)

    def require_sound_sources(self, spec: AnySpec) -> None:
        """Accept a table only if nothing that it reads, directly or through other tables, has a wrong spec.

        Raises:
            SpecError: it reads such a table; the message names its file.
        """
        wrong = [self.refused[table] for table in self._upstream(spec) if table in self.refused]
        if wrong:
            tables = " and ".join(one.table for one in wrong)
            places = ", ".join(f"{one.cause.file}:{one.cause.line}" for one in wrong)
            msg = f"{spec.table}: it reads {tables}, whose spec is wrong\nFix {places}, then `lakehouse check`."
            raise SpecError(msg)

    def of_domain(self, domain: str) -> tuple[AnySpec, ...]:
        """The sound specs of one domain, in build order.

        Raises:
            UnknownNameError: no spec lies in a folder of that name; the message says which name is closest.
        """
        return tuple(spec for spec in self.stated_in(domain) if not isinstance(spec, RefusedSpec))

    def stated_in(self, domain: str) -> tuple[StatedSpec, ...]:
        """The specs of one domain, sound or not, in build order.

        Raises:
            SpecError: no spec lies in a folder of that name; the message says which name is closest.
        """
        stated: list[StatedSpec] = [*self.specs.values(), *self.refused.values()]
        found = [spec for spec in stated if spec.domain == domain]
        if not found:
            raise UnknownNameError(f"no table has the domain {domain!r}", did_you_mean(domain, self.domains))
        return tuple(sorted(found, key=_place_in_build) if self.refused else found)

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that have tables, by name."""
        return tuple(sorted({spec.domain for spec in (*self.specs.values(), *self.refused.values()) if spec.domain}))

    @property
    def tables(self) -> tuple[str, ...]:
        """Every table that a spec creates, sound or not, in build order."""
        named = [spec for spec in self.refused.values() if spec.layer in LAYERS]
        return tuple(spec.table for spec in sorted((*self.specs.values(), *named), key=_place_in_build))

    def _upstream(self, spec: AnySpec) -> Iterator[str]:
        """Every table that `spec` reads, directly or through others, each once."""
        seen, ahead = set[str](), list(spec.source_tables) if self.refused else []
        while ahead:
            table = ahead.pop(0)
            if table not in seen:
                seen.add(table)
                yield table
                ahead += self.specs[table].source_tables if table in self.specs else ()


def load_catalog(folder: Path) -> Catalog:
    """Read and check every spec under `folder`, laid out as `<layer>/<domain>/<table>.yaml`.

    A wrong spec is no error here: it is kept as refused, with all its problems.

    Raises:
        SpecError: there is no such folder.
    """
    if not folder.is_dir():
        raise SpecError(f"no folder of table specs at {folder}", "Set LAKEHOUSE_TABLES to the folder that has them.")
    files = [read_spec_file(path) for path in _spec_paths(folder)]
    read = [_read(file, folder) for file in files if file.document]
    checked = {file.path: file for file, _, _ in read}
    files = [checked.get(file.path, file) for file in files]
    creating = _creating(files, folder)
    problems = [*_misnamed(folder), *(problem for file in files for problem in file.problems)]
    problems += [problem for _, _, found in read for problem in found]
    problems += _check_together(files, creating)
    refused = refused_specs(problems, creating, folder) if problems else {}
    wrong = {problem.file for problem in problems}
    sound = {file.path: spec for file, spec, _ in read if spec and file.path not in wrong}
    return _catalog({path: spec for path, spec in sound.items() if spec.table not in refused}, refused)


def _spec_paths(folder: Path) -> list[Path]:
    # What an editor keeps beside a file that is open begins with a dot.
    return sorted(path for path in folder.rglob("*.yaml") if not path.name.startswith("."))


def _misnamed(folder: Path) -> Iterator[SpecProblem]:
    for path in folder.rglob("*.yml"):
        yield SpecProblem(path, 1, "", None, "a spec's file name ends in .yaml", f"rename it to {path.stem}.yaml")


def _read(file: SpecFile, folder: Path) -> tuple[SpecFile, AnySpec | None, list[SpecProblem]]:
    """The file with its sound parts known, its spec, and all that is wrong with it by itself.

    The model of the layer says first what has the wrong shape; each check sees only what nothing was found wrong with.
    """
    place = PurePosixPath(file.path.relative_to(folder).as_posix())
    domain = place.parts[1] if len(place.parts) == 3 else ""
    spec, findings = shape({**file.document, "domain": domain}, SPEC_OF_LAYER[_layer(file.document, place)])
    sound = without_findings(file.document, findings)
    findings += check_place(sound, place)
    for check in _CHECKS:
        found = list(check(sound))
        sound = without_findings(sound, found)
        findings += found
    return replace(file, sound=sound), spec, _located(file, findings)


def _layer(document: Mapping[str, Any], place: PurePosixPath) -> str:
    """The layer that the document states; where it states none, that of its folder."""
    candidates = (str(document.get("table", "")).partition(".")[0], place.parts[0])
    return next((layer for layer in candidates if layer in LAYERS), LAYERS[0])


def _located(file: SpecFile, findings: Iterable[Finding]) -> list[SpecProblem]:
    return [file.problem(found.path, found.message, found.value, found.fix) for found in findings]


def _creating(files: list[SpecFile], folder: Path) -> dict[str, SpecFile]:
    """table -> the file that creates it; of two, the one that lies where it belongs."""
    first: dict[str, SpecFile] = {}
    for file in sorted(files, key=lambda file: _stated_table(file, folder) != _placed_table(file, folder)):
        first.setdefault(_stated_table(file, folder), file)
    return first


def _stated_table(file: SpecFile, folder: Path) -> str:
    return str(file.document.get("table") or _placed_table(file, folder))


def _placed_table(file: SpecFile, folder: Path) -> str:
    return placed_table(PurePosixPath(file.path.relative_to(folder).as_posix()))


def _check_together(files: list[SpecFile], creating: Mapping[str, SpecFile]) -> Iterator[SpecProblem]:
    """What is wrong between files: tables created twice, missing sources, cycles."""
    documents = {table: file.document for table, file in creating.items()}
    sound = {table: file.sound for table, file in creating.items()}
    for file in files:
        table = str(file.document.get("table"))
        if creating.get(table, file) is not file:
            message = f"{creating[table].path} creates this table already"
            yield file.problem(("table",), message, table, "give it another name, or remove one of the files")
        yield from _located(file, check_links(file.sound, sound))
    graph = {table: [name for _, name in stated_sources(document)] for table, document in documents.items()}
    while tables := cycle(graph):
        yield creating[tables[0]].problem(("table",), f"the tables read one another: {' -> '.join(tables)}", tables[0])
        del graph[tables[0]]


def _catalog(specs: Mapping[Path, AnySpec], refused: dict[str, RefusedSpec]) -> Catalog:
    ordered = sorted(specs.items(), key=lambda one: _place_in_build(one[1]))
    return Catalog({spec.table: spec for _, spec in ordered}, {spec.table: path for path, spec in ordered}, refused)


def _place_in_build(spec: StatedSpec) -> tuple[int, str, str]:
    return LAYERS.index(spec.layer), spec.domain, spec.name
