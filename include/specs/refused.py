"""What is known of a table whose spec is wrong: enough to leave it alone, and to tell its owner."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from include.contracts.spec.table_spec import AnySpec
from include.contracts.spec.values import NAME
from include.specs.files import SpecFile
from include.specs.links import LAYERS, stated_sources
from include.specs.problem import SpecProblem

_TABLE = re.compile(rf"(?:{'|'.join(LAYERS)})\.{NAME}")


@dataclass(frozen=True)
class RefusedSpec:
    """A wrong spec. Its table is neither written nor maintained until the spec is fixed.

    Attributes:
        table: `<layer>.<name>`; the file's place where neither place nor text says which table it is for.
        domain: the folder's domain; empty where the file lies in none.
        problems: all that is wrong with it, in the order of lines.
        source_tables: the tables of lower layers that it says it reads, as far as it can be read.
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
    def cause(self) -> SpecProblem:
        """The problem to fix first: one with a likely fix, for a key that is missing may only be misspelt."""
        return next((problem for problem in self.problems if problem.fix), self.problems[0])

    @property
    def warning(self) -> str:
        """What an owner must know, one problem named in full."""
        more = f" (and {len(self.problems) - 1} more: `lakehouse check`)" if self.problems[1:] else ""
        return f"warning: {self.table} and what reads it are not run, its spec is wrong:\n  {self.cause}{more}"


StatedSpec = AnySpec | RefusedSpec
"""The spec of a table, whether or not it is sound."""


def refused_specs(
    problems: Iterable[SpecProblem], files: Mapping[str, SpecFile], folder: Path
) -> dict[str, RefusedSpec]:
    """table -> what is known of its wrong spec.

    Args:
        problems: of all files.
        files: table -> the file that creates it, the wrong ones too.
        folder: the folder of all specs.
    """
    by_file: dict[Path, list[SpecProblem]] = {}
    for problem in sorted(problems, key=lambda problem: (problem.file, problem.line, problem.key)):
        by_file.setdefault(problem.file, []).append(problem)
    creating = {file.path: table for table, file in files.items()}
    refused: dict[str, RefusedSpec] = {}
    for path, own in by_file.items():
        for table in dict.fromkeys(_tables(path.relative_to(folder), creating.get(path))):
            earlier = refused[table].problems if table in refused else ()
            file = files.get(table, SpecFile(path, "", {}))
            owner, sources = file.document.get("owner"), (name for _, name in stated_sources(file.document))
            refused[table] = RefusedSpec(
                table=table,
                domain=_domain(file.path.relative_to(folder)) if _TABLE.fullmatch(table) else "",
                problems=(*earlier, *own),
                source_tables=tuple(dict.fromkeys(source for source in sources if _is_below(source, table))),
                owner=owner if isinstance(owner, str) else "",
            )
    return refused


def placed_table(place: PurePosixPath) -> str:
    """The table that a file at this place is for; the place itself where it is none for a spec.

    >>> placed_table(PurePosixPath("silver/shop/orders.yaml")), placed_table(PurePosixPath("orders.yaml"))
    ('silver.orders', 'orders.yaml')
    """
    table = f"{place.parts[0]}.{place.stem}"
    return table if len(place.parts) == 3 and _TABLE.fullmatch(table) else str(place)


def _is_below(source: str, table: str) -> bool:
    layers = [name.partition(".")[0] for name in (source, table)]
    return set(layers) <= set(LAYERS) and LAYERS.index(layers[0]) < LAYERS.index(layers[1])


def _domain(place: Path) -> str:
    return place.parts[1] if len(place.parts) == 3 else ""


def _tables(place: Path, created: str | None) -> Iterator[str]:
    """The tables that must stand still for one wrong file: that of its place, and the one that it creates."""
    yield placed_table(PurePosixPath(place.as_posix()))
    if created and _TABLE.fullmatch(created):
        yield created
