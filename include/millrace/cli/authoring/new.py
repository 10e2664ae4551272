"""`lakehouse new`: write the folder of a project, with a small example that runs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from millrace.errors import ProjectError
from millrace.paths import SCHEMA_FILE
from millrace.settings import Settings
from millrace.specs.schema import schema_text

_HIDDEN = "dot."
"""How the names of hidden files begin within the package."""


def write_project(folder: Path, settings: Settings) -> list[str]:
    """Write a project into a folder, and return the commands with which a person goes on.

    Args:
        folder: the folder; it does not exist, or is empty but for `.git`.
        settings: the settings here; if they name a folder with Spark's jars, the project uses these.

    Raises:
        ProjectError: the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or {file.name for file in folder.iterdir()} - {".git"}):
        raise ProjectError(f"{folder} is not an empty folder", "Nothing was written. Name a new folder.")
    for name, content in [*_templates(files("millrace") / "new_project"), (SCHEMA_FILE, schema_text().encode())]:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    jars: Path | None = dict(settings).get("jars")
    if jars and not any(jars.glob("*.jar")):
        jars = None
    if jars:
        with (folder / ".env").open("a", encoding="utf-8") as stream:
            stream.write(f"LAKEHOUSE_JARS={jars.resolve()}\n")
    return [
        f"cd {folder}",
        *([] if jars else ["lakehouse jars"]),
        "lakehouse check",
        "lakehouse plan --interval 2025-07-01 --to 2025-07-03",
        "lakehouse run --interval 2025-07-01 --to 2025-07-03",
    ]


def _templates(folder: Traversable) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file of a new project."""
    for item in folder.iterdir():
        name = f".{item.name.removeprefix(_HIDDEN)}" if item.name.startswith(_HIDDEN) else item.name
        if item.is_file():
            yield name, item.read_bytes()
        elif name != "__pycache__":  # of an installation that compiled the DAG file
            yield from ((f"{name}/{below}", content) for below, content in _templates(item))
