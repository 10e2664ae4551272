"""Which landing files a bronze batch loads: those of the interval that no winning attempt has loaded yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from include.contracts.interval import Interval
from include.contracts.table_spec import BronzeSpec
from include.control.batch import FileFact
from include.control.landing import inspect, list_files, same_listing
from include.control.ledger import Ledger
from include.errors import BadInputError


@dataclass(frozen=True)
class FilePlan:
    """The interval's files by what is to be done with them.

    Attributes:
        new: sound files to load.
        broken: files that cannot be loaded, each with its defect.
        loaded: files that were loaded before.
    """

    new: tuple[FileFact, ...]
    broken: tuple[FileFact, ...]
    loaded: tuple[FileFact, ...]


def plan_files(spec: BronzeSpec, landing: Path, interval: Interval, ledger: Ledger, table_id: str) -> FilePlan:
    """Match the interval's landing files with the ledger; files it does not know are read through once.

    Raises:
        NotReadyError: the interval's folder does not exist.
        BadInputError: a file that was loaded before has other content now.
    """
    known = ledger.loaded_files(spec.table, table_id)
    listed = list_files(spec, landing, interval)
    unread = [file for file in listed if not same_listing(file, known)]
    looked_at = [inspect(file, landing, spec) for file in unread]
    changed = [file for file in looked_at if file.path in known and file.checksum != known[file.path].checksum]
    if changed:
        raise BadInputError(_changed_message(spec, changed, known))
    fresh = [file for file in looked_at if file.path not in known]
    return FilePlan(
        new=tuple(file for file in fresh if not file.defect),
        broken=tuple(file for file in fresh if file.defect),
        loaded=tuple(known[file.path] for file in listed if file.path in known),
    )


def _changed_message(spec: BronzeSpec, changed: list[FileFact], known: dict[str, FileFact]) -> str:
    file = changed[0]
    before = known[file.path]
    more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
    return (
        f"{spec.table}: {file.path}{more} was loaded before with other content: {before.size} bytes, "
        f"sha256 {before.checksum[:12]}; now {file.size} bytes, sha256 {file.checksum[:12]}. Nothing was loaded. "
        "Have the source deliver corrections under a new name, or put the old content back."
    )
