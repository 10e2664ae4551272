"""`lakehouse jars`: what Spark sessions need beside PySpark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millrace.cli.output import show
from millrace.contracts.counted import counted


def jars(
    into: Annotated[Path | None, typer.Option(help="The folder; default LAKEHOUSE_JARS.")] = None,
) -> None:
    """Fetch the jars of Spark sessions, once, and archive Spark's classes, so that drivers start sooner.

    Each jar has the checksum that this version of Millrace knows. DEFAULT_ARTIFACT_REPOSITORY names a mirror of
    Maven Central. Without a network, copy the folder from a machine that has one.
    """
    from millrace.jars.class_archive import build, is_current
    from millrace.jars.java_jar import OWN_JARS, own_jar
    from millrace.jars.maven_jars import DRIVER_GROUPS, install, locked_jars, missing_jars, repository_name
    from millrace.settings import Settings

    folder, wanted = (into or Settings().jars).absolute(), locked_jars(*DRIVER_GROUPS)
    if missing := missing_jars(wanted, folder):
        show(f"Fetching {len(missing)} of {counted(len(wanted), 'jar')} from {repository_name()} ...")
    install(wanted, folder)
    for name in OWN_JARS:
        own_jar(name, folder).build()
    if not is_current(folder):
        show("Archiving Spark's classes: half a minute ...")
    archived = "and an archive of Spark's classes"
    if build(folder) is None:
        archived = "and no archive of Spark's classes, which this JDK does not make: drivers start more slowly"
    there = len(wanted) - len(missing)
    show(f"{folder} has {len(wanted) + len(OWN_JARS)} jars ({len(missing)} fetched, {there} were there), {archived}.")
