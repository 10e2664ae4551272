"""Links from tasks in Airflow's UI to the pages that Millrace serves there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlparse

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

URL_PREFIX = "/lakehouse"
CHECKED_KEY = "judged"
"""Key of the XCom in which a gate's task names the version that it decided about."""

OVERRIDE_DAG_ID = "gate_override"


class DataDocsLink(BaseOperatorLink):
    """From a gate's task to the Data Docs of its run, opened at its table."""

    name = "Data Docs"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Return the path of the Data Docs; empty if the task decided about no version.

        A path works under every host name by which a person reaches Airflow.
        """
        if operator.checked is None:
            return ""
        return _path(f"{URL_PREFIX}/data-docs", ti_key.dag_id, ti_key.run_id, operator.checked.table)


class OverrideLink(BaseOperatorLink):
    """From the task of a gate that refused a version to the DAG that lets it pass."""

    name = "Gate override"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Return the path of the DAG; empty if nothing was refused."""
        return _path("/dags", OVERRIDE_DAG_ID) if operator.has_refused else ""


def glossary_path() -> str:
    """Return the path of the glossary's page."""
    return _path(f"{URL_PREFIX}/docs/glossary.md")


def _path(page: str, *names: str) -> str:
    root = urlparse(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return "/".join((f"{root}{page}", *(quote(name, safe="") for name in names)))
