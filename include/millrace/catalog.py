"""The catalog: all table specs of a folder, checked against one another, in build order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec, model_of
from millrace.contracts.spec.values import LAYERS
from millrace.errors import SpecError, UnknownNameError
from millrace.specs.checks.change_data import (
    check_history,
    check_left_out,
    check_snapshot,
    check_sources,
    check_tombstones,
    check_truncates,
)
from millrace.specs.checks.columns import check_columns, check_fields, check_kafka
from millrace.specs.checks.concurrency import check_concurrency
from millrace.specs.checks.expectations import check_expectations
from millrace.specs.checks.gold import check_gold_names
from millrace.specs.checks.landing import check_landing
from millrace.specs.checks.nested import check_nested
from millrace.specs.checks.other_tables import check_compared, check_references
from millrace.specs.checks.properties import check_properties
from millrace.specs.document import stated_references, stated_sources, without_defects
from millrace.specs.files import SpecFile, read_spec_file
from millrace.specs.invalid_spec import InvalidSpec, MaybeInvalidSpec, invalid_specs, table_of_place
from millrace.specs.links import check_links, check_place
from millrace.specs.problem import Defect, KeyPath, SpecProblem, SpecsRefusedError, did_you_mean
from millrace.specs.shape import validate_shape
from millrace.specs.table_graph import TableGraph

_Spec = TypeVar("_Spec", bound=MaybeInvalidSpec)

_CHECKS = (
    check_columns,
    check_fields,
    check_sources,
    check_snapshot,
    check_history,
    check_truncates,
    check_left_out,
    check_tombstones,
    check_expectations,
    check_compared,
    check_references,
    check_properties,
    check_landing,
    check_concurrency,
    check_kafka,
    check_gold_names,
    check_nested,
)


@dataclass(frozen=True)
class Catalog:
    """The specs of all tables.

    Attributes:
        specs: table -> sound spec, in build order: bronze, silver, gold; tables of a layer after those that they
            read or refer to; then by domain and name.
        files: table -> the YAML file of its spec.
        invalid: table -> its wrong spec. Until the spec is fixed, the table and all tables that read it are not run;
            every other table is.
        well_formed: file -> its spec, also a wrong one if each of its settings has the right form. Only checks that
            are to find all problems at once use it.
    """

    specs: dict[str, AnySpec]
    files: dict[str, Path] = field(default_factory=dict)
    invalid: dict[str, InvalidSpec] = field(default_factory=dict)
    well_formed: dict[Path, AnySpec] = field(default_factory=dict)

    @property
    def problems(self) -> tuple[SpecProblem, ...]:
        """All problems of all specs."""
        of_file = {problem.file: spec.problems for spec in self.invalid.values() for problem in spec.problems}
        return tuple(problem for file in sorted(of_file) for problem in of_file[file] if problem.file == file)

    def spec(self, table: str) -> AnySpec:
        """Return the spec of `table`.

        Raises:
            SpecsRefusedError: the spec is wrong.
            UnknownNameError: no spec creates the table; the message names the closest table.
        """
        if table in self.invalid:
            raise SpecsRefusedError(self.invalid[table].problems)
        if table not in self.specs:
            raise UnknownNameError(f"no spec creates the table {table!r}", did_you_mean(table, self.tables))
        return self.specs[table]

    def with_spec(self, spec: AnySpec) -> Catalog:
        """Return the catalog with another spec of a table, such as an earlier one."""
        invalid = {table: each for table, each in self.invalid.items() if table != spec.table}
        return replace(self, specs={**self.specs, spec.table: spec}, invalid=invalid)

    def require_known(self, table: str) -> None:
        """Check that a spec creates the table; the spec may be wrong, since the table's content can still be shown.

        Raises:
            SpecError: no spec creates it.
        """
        if table not in self.invalid:
            self.spec(table)

    def require_sound_sources(self, spec: AnySpec) -> None:
        """Check that no table that `spec` reads, directly or through other tables, has a wrong spec.

        Raises:
            SpecError: a table upstream has one; the message names its file.
        """
        if not self.invalid:
            return
        upstream = self.graph.upstream(*spec.upstream_tables)
        if invalid := [self.invalid[table] for table in upstream if table in self.invalid]:
            tables = " and ".join(source.table for source in invalid)
            places = ", ".join(f"{source.cause.file}:{source.cause.line}" for source in invalid)
            msg = f"{spec.table}: it reads {tables}, whose spec is wrong\nFix {places}, then `lakehouse check`."
            raise SpecError(msg)

    def needed_columns(self, bronze: BronzeSpec) -> frozenset[str]:
        """Return the columns that each file must have: required, not nullable, or part of a key of a silver table."""
        required = {name for name, column in bronze.columns.items() if column.required or not column.nullable}
        silver = [spec for spec in self.specs.values() if isinstance(spec, SilverSpec)]
        readers = [spec.of_source(bronze.table) for spec in silver if bronze.table in spec.source_tables]
        keys = (spec.columns[key].expression or key for spec in readers for key in spec.keys)
        return frozenset(
            required | ({word for key in keys for word in re.findall(r"\w+", key)} & bronze.columns.keys())
        )

    def of_domain(self, domain: str) -> tuple[MaybeInvalidSpec, ...]:
        """Return the specs of one domain, sound or wrong, in build order.

        Raises:
            UnknownNameError: no spec is in a folder of that name; the message names the closest domain.
        """
        specs = tuple(spec for spec in self._every if spec.domain == domain)
        if not specs:
            raise UnknownNameError(f"no table has the domain {domain!r}", did_you_mean(domain, self.domains))
        return specs

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that have tables, by name."""
        return tuple(sorted({spec.domain for spec in (*self.specs.values(), *self.invalid.values()) if spec.domain}))

    @property
    def tables(self) -> tuple[str, ...]:
        """Every table that a spec creates, sound or wrong, in build order."""
        return tuple(spec.table for spec in self._every)

    @cached_property
    def graph(self) -> TableGraph:
        """Which tables with a sound spec read which; a wrong spec may not say what it reads."""
        return TableGraph.of(self.specs.values())

    @cached_property
    def _every(self) -> Sequence[MaybeInvalidSpec]:
        """The specs of all tables, sound or wrong, in build order."""
        named = [spec for spec in self.invalid.values() if spec.layer in LAYERS]
        return in_build_order([*self.specs.values(), *named])


def load_catalog(folder: Path) -> Catalog:
    """Read and check every spec under `folder`, whose files are `<layer>/<domain>/<table>.yaml`.

    A wrong spec raises no error here: it is in the catalog's `invalid`, with all its problems.

    Raises:
        SpecError: there is no such folder.
    """
    if not folder.is_dir():
        raise SpecError(f"no folder of table specs at {folder}", "Set LAKEHOUSE_TABLES to the folder that has them.")
    # Editors keep files that begin with a dot next to an open file.
    paths = sorted(path for path in folder.rglob("*.yaml") if not path.name.startswith("."))
    misnamed = [
        SpecProblem(path, 1, "", None, "a spec's file name ends in .yaml", f"rename it to {path.stem}.yaml")
        for path in folder.rglob("*.yml")
    ]
    return catalog_of_files([read_spec_file(path) for path in paths], folder, misnamed)


def catalog_of_files(files: list[SpecFile], folder: Path, more: Iterable[SpecProblem] = ()) -> Catalog:
    """Check specs that were read from `folder`; `more` are problems of other files there."""
    checks = [_check_within_limits(file, folder) for file in files if file.document]
    checked = {file.path: file for file, _, _ in checks}
    files = [checked.get(file.path, file) for file in files]
    file_of_table = _file_of_table(files, folder)
    problems = [*more, *(problem for file in files for problem in file.problems)]
    problems += [problem for _, _, of_file in checks for problem in of_file]
    problems += _check_between_files(files, file_of_table)
    invalid = invalid_specs(problems, file_of_table, folder) if problems else {}
    wrong_files = {problem.file for problem in problems}
    sound = [
        (spec, file.path)
        for file, spec, _ in checks
        if spec and file.path not in wrong_files and spec.table not in invalid
    ]
    return Catalog(
        {spec.table: spec for spec in in_build_order(spec for spec, _ in sound)},
        {spec.table: path for spec, path in sound},
        invalid,
        {file.path: spec for file, spec, _ in checks if spec},
    )


def _check_within_limits(file: SpecFile, folder: Path) -> tuple[SpecFile, AnySpec | None, list[SpecProblem]]:
    """Return what `_check_file` does; one problem if a value, such as a type or SQL, is too deep to be parsed."""
    try:
        return _check_file(file, folder)
    except RecursionError:
        key, _ = max(file.document.items(), key=lambda item: len(re.findall(r"[(\[{<]", str(item[1]))))
        defect = Defect((key,), "a value in it is too deep to be parsed", None, "write it with fewer brackets")
        kept = {"table": file.document["table"]} if "table" in file.document else {}
        return replace(file, document=kept), None, [file.problem(defect)]


def _check_file(file: SpecFile, folder: Path) -> tuple[SpecFile, AnySpec | None, list[SpecProblem]]:
    """Return the file with its sound parts, its spec if it has the right shape, and the problems within it.

    The model of the layer checks the shape first. Each further check sees only the parts that are sound so far.
    """
    place = PurePosixPath(file.path.relative_to(folder).as_posix())
    domain = place.parts[1] if len(place.parts) == 3 else ""
    model = model_of(_layer(file.document, place), file.document)
    spec, defects = validate_shape({**file.document, "domain": domain}, model)
    sound = without_defects(file.document, defects)
    defects += check_place(sound, place)
    for check in _CHECKS:
        of_check = list(check(sound))
        sound = without_defects(sound, of_check)
        defects += of_check
    return replace(file, sound=sound), spec, [file.problem(defect) for defect in defects]


def _layer(document: Mapping[str, Any], place: PurePosixPath) -> str:
    """Return the layer that the document states, or else that of its folder."""
    candidates = (str(document.get("table", "")).partition(".")[0], place.parts[0])
    return next((layer for layer in candidates if layer in LAYERS), LAYERS[0])


def _file_of_table(files: list[SpecFile], folder: Path) -> dict[str, SpecFile]:
    """Return table -> the file that creates it; if two files do, the file in the table's place."""
    entries = []
    for file in files:
        placed = table_of_place(PurePosixPath(file.path.relative_to(folder).as_posix()))
        stated = str(file.document.get("table") or placed)
        entries.append((stated != placed, stated, file))
    first: dict[str, SpecFile] = {}
    for _, table, file in sorted(entries, key=lambda entry: entry[0]):
        first.setdefault(table, file)
    return first


def _check_between_files(files: list[SpecFile], file_of_table: Mapping[str, SpecFile]) -> Iterator[SpecProblem]:
    """Find problems between files: tables created twice, missing sources, cycles."""
    sound = {table: file.sound for table, file in file_of_table.items()}
    for file in files:
        table = str(file.document.get("table"))
        if file_of_table.get(table, file) is not file:
            message = f"{file_of_table[table].path} creates this table already"
            fix = "give it another name, or remove one of the files"
            yield file.problem(Defect(("table",), message, table, fix))
        yield from map(file.problem, check_links(file.sound, sound))
    graph = {
        table: {name: path for path, name in (*_stated_other_tables(file.document), *stated_sources(file.document))}
        for table, file in file_of_table.items()
    }
    while tables := TableGraph(graph).cycle():
        *_, source, reader = tables
        message = f"the tables read one another: {' -> '.join(tables)}"
        fix = f"let {reader} read only tables that are built without it"
        yield file_of_table[reader].problem(Defect(graph[reader][source], message, source, fix))
        del graph[reader]


def _stated_other_tables(document: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the tables that the references of a document look into, each with its key path."""
    for path, arguments in stated_references(document):
        if isinstance(table := arguments.get("other_table"), str):
            yield (*path, "other_table"), table


def in_build_order(specs: Iterable[_Spec]) -> list[_Spec]:
    """Return the specs, sources first: by layer, each table after those that it needs, then by domain and name."""
    listed = list(specs)
    steps = TableGraph.of(listed).build_steps()
    return sorted(listed, key=lambda spec: (LAYERS.index(spec.layer), steps[spec.table], spec.domain, spec.name))
