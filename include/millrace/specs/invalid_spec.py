"""Tables whose spec is wrong: what can be read of the spec, to skip the table and to inform its owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from millrace.contracts.spec.table_spec import AnySpec
from millrace.contracts.spec.values import LAYERS, TABLE
from millrace.specs.document import stated_sources
from millrace.specs.files import SpecFile
from millrace.specs.problem import SpecProblem
from millrace.specs.table_graph import TableGraph


@dataclass(frozen=True)
class InvalidSpec:
    """A wrong spec. Its table is neither written nor maintained until the spec is fixed.

    Attributes:
        table: `<layer>.<name>`; the file's place if neither place nor text names a table.
        domain: the folder's domain; empty if the file is in none.
        problems: all problems of the spec, in the order of lines.
        source_tables: the tables that it names as sources, as far as it can be read; none of a higher layer, no
            bronze table of bronze, and none that reads this table.
        owner: the owner that it states; empty for none.
    """

    table: str
    domain: str
    problems: tuple[SpecProblem, ...]
    source_tables: tuple[str, ...] = ()
    owner: str = ""

    @property
    def layer(self) -> str:
        """`bronze`, `silver` or `gold`."""
        return self.table.partition(".")[0]

    @property
    def name(self) -> str:
        """The table's name without its layer."""
        return self.table.partition(".")[2]

    @property
    def upstream_tables(self) -> tuple[str, ...]:
        """The tables that must be built before it, as far as they are known."""
        return self.source_tables

    @property
    def cause(self) -> SpecProblem:
        """The problem to fix first: one with a likely fix, because a missing key may only be misspelt elsewhere."""
        return next((problem for problem in self.problems if problem.fix), self.problems[0])

    @property
    def warning(self) -> str:
        """The warning to the owner, with one problem."""
        more = f" (and {len(self.problems) - 1} more: `lakehouse check`)" if self.problems[1:] else ""
        return (
            f"warning: {self.table} and the tables that read it are not run, its spec is wrong:\n  {self.cause}{more}"
        )


MaybeInvalidSpec = AnySpec | InvalidSpec
"""The spec of a table, sound or wrong."""


def invalid_specs(
    problems: Iterable[SpecProblem], files: Mapping[str, SpecFile], folder: Path
) -> dict[str, InvalidSpec]:
    """Return table -> its wrong spec; `files` has the file that creates each table, also if the file is wrong."""
    by_file: dict[Path, list[SpecProblem]] = {}
    for problem in sorted(problems, key=lambda problem: (problem.file, problem.line, problem.key)):
        by_file.setdefault(problem.file, []).append(problem)
    table_of_file = {file.path: table for table, file in files.items()}
    stated = TableGraph({table: [name for _, name in stated_sources(file.document)] for table, file in files.items()})
    invalid: dict[str, InvalidSpec] = {}
    for path, own in by_file.items():
        # Neither the table of the file's place nor the table that the file creates is run.
        placed, created = table_of_place(PurePosixPath(path.relative_to(folder).as_posix())), table_of_file.get(path)
        for table in dict.fromkeys([placed, created] if created and TABLE.fullmatch(created) else [placed]):
            earlier = invalid[table].problems if table in invalid else ()
            file = files.get(table, SpecFile(path, "", {}))
            owner, sources = file.document.get("owner"), dict.fromkeys(stated.sources.get(table, ()))
            parts = file.path.relative_to(folder).parts
            invalid[table] = InvalidSpec(
                table=table,
                domain=parts[1] if len(parts) == 3 and TABLE.fullmatch(table) else "",
                problems=(*earlier, *own),
                source_tables=tuple(source for source in sources if _may_read(table, source, stated)),
                owner=owner if isinstance(owner, str) else "",
            )
    return invalid


def table_of_place(place: PurePosixPath) -> str:
    """Return the table of a spec file at this place; the place itself if a spec must not be there.

    >>> table_of_place(PurePosixPath("silver/shop/orders.yaml")), table_of_place(PurePosixPath("orders.yaml"))
    ('silver.orders', 'orders.yaml')
    """
    table = f"{place.parts[0]}.{place.stem}"
    return table if len(place.parts) == 3 and TABLE.fullmatch(table) else str(place)


def _may_read(table: str, source: str, stated: TableGraph) -> bool:
    """Whether the source is in a lower layer; above bronze also in the same one, unless it reads the table itself."""
    of_source, of_table = (name.partition(".")[0] for name in (source, table))
    if of_source not in LAYERS or of_table not in LAYERS:
        return False
    is_lower = LAYERS.index(of_source) < LAYERS.index(of_table)
    is_beside = of_source == of_table != LAYERS[0]
    return is_lower or (is_beside and table not in stated.upstream(source))
