"""`lakehouse metrics`: the lakehouse as numbers, for Prometheus without the web server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def metrics(
    write_to: Annotated[
        Path | None, typer.Option("--write-to", help="Write them to this file, whole or not at all, for node_exporter.")
    ] = None,
) -> None:
    """Print the metrics of the lakehouse for Prometheus.

    Airflow's web server answers with the same metrics at /lakehouse/metrics.

    Without it, let cron or a systemd timer run `lakehouse metrics --write-to FILE.prom` every minute.

    The file belongs into the folder that node_exporter reads (`--collector.textfile.directory`).
    """
    from prometheus_client import generate_latest, write_to_textfile

    from millrace.metrics.collector import LakehouseCollector
    from millrace.overview.lakehouse import LakehouseReader
    from millrace.settings import Settings

    if write_to and not write_to.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {write_to.parent}")
    settings = Settings()
    collector = LakehouseCollector(LakehouseReader(settings.paths, settings.tables))
    if write_to:
        write_to_textfile(str(write_to), collector)
    else:
        typer.echo(generate_latest(collector), nl=False)
