"""Find what a lakehouse stores of subjects: every file below its folders is opened, whatever version needs it."""

from __future__ import annotations

import platform
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from stat import S_ISREG
from tempfile import TemporaryFile
from typing import BinaryIO, cast
from urllib.parse import unquote

from deltalake.exceptions import TableNotFoundError

from millrace.catalog import Catalog
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.contracts.spec.values import LAYERS
from millrace.control.landing.formats.compression import UNPACKING_ERRORS
from millrace.control.landing.landing import Landing, LandingFile, landing_of, plain_folder
from millrace.control.landing.on_disk import TOP, LocalLanding
from millrace.control.ledger.holds import Holds
from millrace.control.log.batch import FileFact
from millrace.control.log.stored_tables import logged_files, open_table
from millrace.control.maintenance.old_files import old_files
from millrace.control.maintenance.retention import retention_of
from millrace.control.repair.dropped import dropped_tables
from millrace.control.storage.arrow_files import open_for_arrow
from millrace.control.storage.stored_files import StoredFile, empty_folders, files_below, is_file
from millrace.erase.feeds import Feeds
from millrace.erase.reach import Reach, limits_of, reach_of
from millrace.erase.search import FileSearch, Found, Keys, UnreadFileError
from millrace.erase.stripping import Stripping, key_fields
from millrace.erase.subjects import Subjects
from millrace.errors import MillraceError
from millrace.paths import OWN, LakehousePaths
from millrace.settings import Settings

DROPPED = ", dropped"
"""How the place of a dropped table ends, after its name."""

OF_LANDING = "landing files of "
"""The begin of the name of a place with landing files: the tables that load them follow, or that none does."""

UNLOADED = "no table"

_MOST_FOLDERS = 20


class Part(StrEnum):
    """Which files of a place."""

    NEWEST = "newest version"
    OLDER = "older versions"
    LOG = "log"
    FILES = "files"


@dataclass(frozen=True)
class Place:
    """A place that has something of the subjects.

    Attributes:
        name: the table, with `quarantine` or `tombstones`; or what else the files are.
        part: which of its files.
        rows: the rows whose key is that of a subject.
        mentions: other rows, or files without rows, with a text that names one.
        files: the number of these files.
        size: their bytes.
        due: when VACUUM may delete the last of them; None of files that it does not delete.
    """

    name: str
    part: Part
    rows: int = 0
    mentions: int = 0
    files: int = 0
    size: int = 0
    due: datetime | None = None

    def plus(self, found: Found, file: StoredFile, due: datetime | None) -> Place:
        """Return the place with a further file."""
        return replace(
            self,
            rows=self.rows + found.rows,
            mentions=self.mentions + found.mentions,
            files=self.files + 1,
            size=self.size + file.size,
            due=max(filter(None, (self.due, due)), default=None),
        )


@dataclass(frozen=True)
class Findings:
    """What a lakehouse stores of subjects.

    Attributes:
        kind: their kind.
        subjects: how many were looked for.
        searched_at: when the search began.
        places: the places that have something of them.
        versions: table, or what is beside it -> its newest version then.
        files: the number of files that were searched.
        size: their bytes.
        not_covered: what cannot be found by a key, or is in none of these files.
        unread: what should have been searched, and could not be.
        reached: the tables that hold keys, or are computed from such, by their specs.
        folders: where was searched: the lakehouse, the landing root, and the folder of runs on this host.
    """

    kind: str
    subjects: int
    searched_at: datetime
    places: tuple[Place, ...]
    versions: dict[str, int]
    files: int
    size: int
    not_covered: tuple[str, ...]
    unread: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class FoundFile:
    """A file that no table needs, with something of the subjects; its path may have a key.

    Attributes:
        place: the name of its place.
        path: its path.
    """

    place: str
    path: LakePath


@dataclass
class _Search:
    """A search in progress."""

    subjects: Subjects
    found: list[FoundFile]
    places: dict[tuple[str, Part], Place] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    files: int = 0
    size: int = 0
    unread: list[str] = field(default_factory=list)

    def add(
        self, name: str, part: Part, file: StoredFile, found: Found, due: datetime | None, path: LakePath | None = None
    ) -> None:
        """Count a file that was searched; `path` is where it is, if it is no landing file."""
        self.files += 1
        self.size += file.size
        if found:
            if part is Part.FILES and path:
                self.found.append(FoundFile(name, path))
            place = self.places.get((name, part)) or Place(name, part)
            self.places[name, part] = place.plus(found, file, due)

    def miss(self, name: str, path: str, why: object) -> None:
        """Note a file that could not be searched."""
        printable = path.encode("utf-8", "backslashreplace").decode()
        self.unread.append(self.subjects.hide(f"{name}: {printable} could not be searched: {why}"))


@dataclass(frozen=True)
class _Folder:
    """A folder whose files are searched alike.

    Attributes:
        path: the folder.
        name: what people call it.
        files: what searches a file of it.
    """

    path: LakePath
    name: str
    files: FileSearch

    def search(self, file: StoredFile, part: Part, search: _Search, due: datetime | None = None) -> None:
        """Search a file."""
        try:
            if isinstance(self.path, Path) and not S_ISREG((self.path / file.path).stat().st_mode):
                search.miss(self.name, file.path, "it is no file")
                return
            with open_for_arrow(self.path / file.path) as content:
                found = self.files.search(file.path, content)
        except FileNotFoundError:
            return  # VACUUM, or a run, has deleted it since the listing
        except (UnreadFileError, OSError, ValueError) as error:
            search.miss(self.name, file.path, error if isinstance(error, UnreadFileError) else "it cannot be opened")
            return
        search.add(self.name, part, file, found, due, self.path / file.path)


def find(
    subjects: Subjects, catalog: Catalog, settings: Settings, now: datetime, found: list[FoundFile] | None = None
) -> Findings:
    """Search every file of a lakehouse, its landing files, and the files that runs write for people.

    Args:
        subjects: the subjects.
        catalog: the specs, which say where their keys go.
        settings: the places.
        now: the time.
        found: gets the files that no table needs, and that have something of them; without landing files.

    Raises:
        NotReadyError: the store does not answer.
        StorageError: the store refuses a request.
    """
    reach, holds = reach_of(subjects.kind, catalog.specs), Holds(settings.paths)
    search = _Search(subjects, [] if found is None else found)
    every = Keys(
        {key for each in reach.values() for key in each.keys},
        {name for each in reach.values() for name in each.computed},
        numbers={name for each in reach.values() for name in each.numbers},
        records={"received": {name for each in reach.values() for name in each.received}},
    )
    root, places = settings.paths.root, defaultdict[str, list[StoredFile]](list)
    for file in files_below(root):
        places[_folder_of(file.path)].append(file)
    for folder, files in sorted(places.items()):
        table, name = _named(folder)
        if folder == f"{OWN}/{settings.paths.dropped.name}":
            _search_dropped(files, settings.paths, FileSearch(subjects, every), holds, search)
            continue
        keys = every
        if table in reach:
            keys = Keys.of_quarantine(reach[table]) if "quarantine" in name else Keys.of_table(reach[table])
        of_folder = _Folder(root, name or subjects.hide(_name_of_own(folder)), FileSearch(subjects, keys))
        if name:
            least = retention_of(catalog.specs[table]) if table in catalog.specs else timedelta()
            is_held = bool(holds.on(table))
            _search_table(replace(of_folder, path=root / folder), files, folder, search, now, least, is_held=is_held)
            continue
        for file in files:
            of_folder.search(file, Part.FILES, search)
    for path in empty_folders(root):
        if of_name := FileSearch(subjects, every).search(path, BytesIO()):
            folder = _folder_of(f"{path}/")
            name = _named(folder)[1] or _name_of_own(folder)
            search.add(name, Part.FILES, StoredFile(path, 0, now.timestamp()), of_name, None)
    runs = settings.run_paths.folder
    is_elsewhere = not (isinstance(root, Path) and runs.is_relative_to(root))
    if is_elsewhere:
        for file in files_below(runs):
            name = subjects.hide(_name_of_own(f"{OWN}/{file.path.split('/')[0]}"))
            _Folder(runs, name, FileSearch(subjects, every)).search(file, Part.FILES, search)
    _search_landing(catalog, reach, settings.landing, search)
    search.unread += [
        subjects.hide(f"{table}: its spec is wrong, so that nobody knows what it has of them ({invalid.cause})")
        for table, invalid in catalog.invalid.items()
    ]
    of_hosts = ["reports, driver logs and Data Docs of other hosts were not searched"] if is_elsewhere else []
    limits = (*_limits(subjects, catalog, reach), *_unsearched_landing(catalog, reach, settings), *of_hosts)
    return Findings(
        kind=subjects.kind,
        subjects=len(subjects.values),
        searched_at=now,
        places=tuple(search.places.values()),
        versions=search.versions,
        files=search.files,
        size=search.size,
        not_covered=tuple(map(subjects.hide, limits)),
        unread=tuple(search.unread),
        reached=tuple(reach),
        folders=tuple(map(subjects.hide, (str(root), settings.landing, f"{platform.node()}:{runs}"))),
    )


def _search_table(
    table: _Folder,
    files: list[StoredFile],
    folder: str,
    search: _Search,
    now: datetime,
    least: timedelta,
    *,
    is_held: bool,
) -> None:
    """Search the files of a Delta table: the newest version, all others, and the log.

    A file is one of an older version only if VACUUM will delete it: else it counts as a file of its own.
    """
    own = [replace(file, path=file.path.removeprefix(f"{folder}/")) for file in files]
    live, due = set[str](), dict[str, datetime]()
    try:
        delta = open_table(table.path)
        search.versions[table.name] = delta.version()
        live = {unquote(each) for each in logged_files(delta)["path"].to_pylist()}
        old = old_files(table.path, delta, own, now, least)
        due = {file.path: file.due for file in (*old.kept, *old.due)}
    except (MillraceError, TableNotFoundError):
        search.miss(table.name, "_delta_log", "which files its newest version needs is not known")
    for file in own:
        if file.path.startswith("_delta_log/"):
            table.search(file, Part.LOG, search)
        elif file.path in live:
            table.search(file, Part.NEWEST, search)
        else:
            part = Part.OLDER if file.path in due else Part.FILES
            table.search(file, part, search, None if is_held else due.get(file.path))
    for path in live - {file.path for file in own}:  # written since the listing
        if is_file(table.path / path):
            table.search(StoredFile(path, 0, now.timestamp()), Part.NEWEST, search)
        else:
            search.miss(table.name, path, "the newest version needs it, and it is gone")


def _search_dropped(
    files: list[StoredFile], paths: LakehousePaths, of_file: FileSearch, holds: Holds, search: _Search
) -> None:
    """Search the files of dropped tables: all of them go when maintenance deletes the table."""
    known = {each.record.table_id: each for each in dropped_tables(paths)}
    for file in files:
        name, due = "dropped", None
        if dropped := known.get(file.path.split("/")[2]):
            name = f"{dropped.record.table}{DROPPED}"
            due = None if holds.on(dropped.record.table) else dropped.until
        _Folder(paths.root, name, of_file).search(file, Part.FILES, search, due)


def _search_landing(catalog: Catalog, reach: Mapping[str, Reach], root: str, search: _Search) -> None:
    """Search all files in the folders of sources with keys, also those that no run has loaded, or ever loads."""
    feeds, seen = Feeds(catalog.specs, root), set[str]()
    for spec in map(catalog.spec, reach):
        if not isinstance(spec, BronzeSpec) or spec.reads_kafka:
            continue
        landing, folder = landing_of(spec.landing_source.landing, root), plain_folder(spec.landing_source.landing)
        if (files := landing.files(folder, lambda _: True)) is None and isinstance(landing, LocalLanding):
            search.miss(f"{OF_LANDING}{spec.table}", folder, "there is no such folder; if nothing ever came, make it")
        for listed in files or ():
            location = landing.location(listed.path)
            loaders = feeds.loaders(location)
            readers = [each for each in loaders if each.table in reach] or [spec]
            if spec.table == readers[0].table and location not in seen:
                seen.add(location)
                name = OF_LANDING + (" and ".join(each.table for each in loaders) or UNLOADED)
                _search_landing_file(listed, name, landing, readers, reach, search)


def _search_landing_file(
    listed: FileFact,
    name: str,
    landing: Landing,
    readers: Sequence[BronzeSpec],
    reach: Mapping[str, Reach],
    search: _Search,
) -> None:
    """Search a landing file for the keys of the tables that load it."""
    sources = [spec.landing_source for spec in readers]
    reaches = [reach[spec.table] for spec in readers]
    fields = (key_fields(spec, search.subjects.kind) for spec in readers)
    keys = Keys(
        {key for each in reaches for key in each.keys}.union(*fields),
        anywhere=any(source.format == "csv" for source in sources),
        numbers={name for each in reaches for name in each.numbers},
    )
    files = FileSearch(search.subjects, keys)
    found = Found()
    try:
        for encoding in {source.encoding for source in sources}:
            with landing.open(listed.path) as content:
                found = found or files.search(listed.path, content, encoding)
    except (UnreadFileError, OSError, ValueError) as error:
        search.miss(name, listed.path, error if isinstance(error, UnreadFileError) else "it cannot be opened")
        return
    texts = [spec for spec in readers if spec.landing_source.format in ("json", "csv")]
    if texts and found and not found.rows:
        try:
            rows = max(_records_in(listed, landing, spec, search.subjects) for spec in texts)
            found = Found(rows) if rows else found
        except (ValueError, *UNPACKING_ERRORS):
            search.miss(name, listed.path, "it names a subject, and nobody can tell whose its records are")
    search.add(name, Part.FILES, StoredFile(listed.path, listed.size, listed.mtime_ns / 1e9), found, None)


def _records_in(listed: FileFact, landing: Landing, spec: BronzeSpec, subjects: Subjects) -> int:
    """Return how many records of a landing file have the key of a subject."""
    with landing.open(listed.path) as stored, TemporaryFile() as rest:
        return Stripping(spec, subjects).strip(LandingFile(landing, listed.path).name, stored, cast(BinaryIO, rest))


def _unsearched_landing(catalog: Catalog, reach: Mapping[str, Reach], settings: Settings) -> Iterator[str]:
    """Yield the tables whose landing files have no keys by their specs, and the landing folders that no table reads."""
    feeds = Feeds(catalog.specs, settings.landing)
    searched, known = feeds.folders(reach), (*feeds.folders(), f"{settings.paths.root}/")
    others = [table for table in catalog.specs if not all(map(_is_within(searched), feeds.folders([table])))]
    if others:
        yield f"landing files of {' and '.join(others)} were not searched: by their specs they have no such keys"
    landing, unknown = landing_of(TOP, settings.landing), set[str]()
    below, is_known = landing.location(""), _is_within(known)

    def note(path: str) -> bool:
        if not is_known(f"{below}{path}"):
            folders = [path[: sign.start()] for sign in re.finditer("/", path)]
            apart = (each for each in folders if not any(one.startswith(f"{below}{each}/") for one in known))
            unknown.add(next(apart, folders[-1] if folders else TOP))
        return False

    deque(landing.files(TOP, note) or (), maxlen=0)
    if unknown:
        more = f" and {len(unknown) - _MOST_FOLDERS:,} more" if len(unknown) > _MOST_FOLDERS else ""
        names = ", ".join(sorted(unknown)[:_MOST_FOLDERS])
        yield f"landing folders that no table reads were not searched: {names}{more}"


def _is_within(folders: tuple[str, ...]) -> Callable[[str], bool]:
    return lambda location: location.startswith(folders)


def _limits(subjects: Subjects, catalog: Catalog, reach: Mapping[str, Reach]) -> Iterator[str]:
    """Yield what this search cannot find."""
    if short := len(subjects.short):
        yield (
            f"{short:,} of {len(subjects.values):,} keys are short numbers, which any text may hold: they were looked "
            "for in columns and fields, not in free text"
        )
    for table, of_table in reach.items():
        yield from limits_of(table, of_table)
        spec = catalog.specs[table]
        if isinstance(spec, BronzeSpec) and spec.reads_kafka:
            yield f"{table}: the messages in its topics were not searched"


def _folder_of(path: str) -> str:
    """Return the folder whose files belong together: that of a Delta table, of a ledger table, or of own files.

    >>> [_folder_of(path) for path in ("silver/orders/day=1/a.parquet", "silver_tombstones/orders/5b/a", "ops/f/a")]
    ['silver/orders', 'silver_tombstones/orders/5b', 'ops/f']
    """
    parts = path.split("/")
    depth = 3 if parts[0].endswith("_tombstones") else 2
    return "/".join(parts[: min(depth, len(parts) - 1)])


def _named(folder: str) -> tuple[str, str]:
    """Return (the table, what people call the folder); two empty texts for the folder of no Delta table.

    >>> _named("silver_quarantine/orders"), _named("ops/files")
    (('silver.orders', 'silver.orders, quarantine'), ('', ''))
    """
    first, *rest = folder.split("/")
    layer, _, beside = first.partition("_")
    if layer not in LAYERS or not rest or beside not in ("", "quarantine", "tombstones"):
        return "", ""
    table = f"{layer}.{rest[0]}"
    return table, f"{table}, {beside}" if beside else table


def _name_of_own(folder: str) -> str:
    """Return what people call a folder of Millrace's own files."""
    first, _, rest = folder.partition("/")
    if first == "ops":
        return f"ledger: {folder.replace('/', '.')}"
    return rest.replace("_", " ") if first == OWN and rest else folder or "other files"
