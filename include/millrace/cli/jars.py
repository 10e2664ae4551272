"""`lakehouse jars`: what Spark sessions need beside PySpark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def jars(
    into: Annotated[Path | None, typer.Option(help="The folder; default LAKEHOUSE_JARS.")] = None,
) -> None:
    """Fetch the jars of Spark sessions, once, and archive Spark's classes, so that drivers start sooner.

    Each jar has the checksum that this version of Millrace knows. DEFAULT_ARTIFACT_REPOSITORY names a mirror of
    Maven Central. Without a network, copy the folder from a machine that has one.
    """
    from millrace.jars.class_archive import build
    from millrace.jars.java_jar import OWN_JARS, own_jar
    from millrace.jars.maven_jars import DRIVER_GROUPS, install, locked_jars
    from millrace.settings import Settings

    folder = (into or Settings().jars).absolute()
    install(locked_jars(*DRIVER_GROUPS), folder)
    for name in OWN_JARS:
        own_jar(name, folder).build()
    if build(folder) is None:
        typer.echo("This JDK makes no class archive: everything works, but drivers start more slowly.")
