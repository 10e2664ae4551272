"""The tab Files of a bronze table: which landing file was loaded when, and what became of its rows?"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from lakehouse_airflow.pages.tab import ShownTable, Tab
from lakehouse_airflow.ui.links import quarantine_form_path
from millrace.contracts.job.requests import FormAction
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.contracts.time_format import ISO_MICROSECOND
from millrace.overview.landing_files import FileFilter, LandingFiles, landing_files
from millrace.overview.tables.table_overview import TableOverview

_FILES, _FAILURES = 50, 20
_EPOCH = "1970"


def _values(shown: ShownTable) -> Mapping[str, Any]:
    table, query = shown.overview, shown.query
    wanted = FileFilter(_day(query.get("day", "")), query.get("begins", ""), _moment(query.get("before", "")))
    part = LandingFiles()
    if table.table_id:
        with shown.reader.ledger() as ops:
            part = landing_files(ops.ledger, table.table, table.table_id, wanted, _FILES)
    failures = sorted(part.failures.values(), key=lambda failure: (failure.given_up, failure.file.path))
    return {
        "answer": part.answer,
        "files": part.files,
        "failures": [
            (failure, shlex.quote(path), quarantine_form_path(table.table, FormAction.GIVE_UP, file=path))
            for failure in failures[:_FAILURES]
            for path in [failure.file.path]
        ],
        "more_failures": max(len(failures) - _FAILURES, 0),
        "query": {"day": wanted.day.isoformat() if wanted.day else "", "begins": wanted.prefix},
        "is_first": wanted.before is None,
        "next": f"{part.next_before:{ISO_MICROSECOND}}" if part.next_before else "",
    }


def _day(text: str) -> date | None:
    """Return the day that an address states; None for any other text."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _moment(text: str) -> datetime | None:
    """Return the moment that the link to older files states; None for any other text."""
    try:
        return datetime.strptime(text, ISO_MICROSECOND).replace(tzinfo=UTC) if text > _EPOCH else None
    except ValueError:
        return None


def _loads_files(table: TableOverview) -> bool:
    return isinstance(table.spec, BronzeSpec) and not table.spec.reads_kafka


TAB = Tab("files", "Files", _values, _loads_files)
