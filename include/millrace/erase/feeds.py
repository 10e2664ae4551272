"""Which tables load a landing file: the most careful of them decides what an erasure does with it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec
from millrace.control.landing.deliveries import loaded_file_filter
from millrace.control.landing.landing import landing_of, plain_folder
from millrace.control.landing.on_disk import TOP

_MOST_CAREFUL_FIRST = ("keep", "rewrite", "delete")


@dataclass(frozen=True)
class _Feed:
    """The landing files of a table.

    Attributes:
        spec: its spec.
        root: what the location of each file begins with, before its path in the ledger.
        folder: the location of the folder of the source, with a slash at its end.
        is_loaded: tests whether the table loads a file, by its path in the ledger.
    """

    spec: BronzeSpec
    root: str
    folder: str
    is_loaded: Callable[[str], bool]


class Feeds:
    """The landing files of all bronze tables.

    Args:
        specs: table -> spec.
        root: the landing root.
    """

    def __init__(self, specs: Mapping[str, AnySpec], root: str) -> None:
        self._feeds = list[_Feed]()
        for _, spec in sorted(specs.items()):
            if isinstance(spec, BronzeSpec) and not spec.reads_kafka:
                source = spec.landing_source
                below, folder = landing_of(source.landing, root).location(""), plain_folder(source.landing)
                place = below if folder == TOP else f"{below}{folder}/"
                self._feeds.append(_Feed(spec, below, place, loaded_file_filter(source)))

    def loaders(self, location: str) -> list[BronzeSpec]:
        """Return the specs of the tables that load a file, by its full path or URL, in the order of their names."""
        return [
            feed.spec
            for feed in self._feeds
            if location.startswith(feed.folder) and feed.is_loaded(location.removeprefix(feed.root))
        ]

    def folders(self, tables: Container[str] | None = None) -> tuple[str, ...]:
        """Return the location of the folder of each source, with a slash at its end; of all tables, or of some."""
        return tuple(feed.folder for feed in self._feeds if tables is None or feed.spec.table in tables)

    def beside(self, spec: BronzeSpec) -> list[str]:
        """Return the tables with files in the folder of a source, in the order in which everybody leases them."""
        [own] = self.folders([spec.table])
        return [feed.spec.table for feed in self._feeds if feed.folder.startswith(own) or own.startswith(feed.folder)]


def most_careful(specs: Iterable[BronzeSpec]) -> BronzeSpec:
    """Return the spec that decides about a file which all of their tables load."""
    return min(specs, key=lambda spec: _MOST_CAREFUL_FIRST.index(spec.erase.landing_files))
