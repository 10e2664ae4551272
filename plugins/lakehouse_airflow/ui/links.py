"""Links of tasks in Airflow's UI, to the pages that Millrace serves there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlparse

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey

URL_PREFIX = "/lakehouse"
JUDGED = "judged"
"""The XCom in which a gate's task says which version it decided about."""


class DataDocsLink(BaseOperatorLink):
    """From a gate's task to the Data Docs of its run, opened at its table."""

    name = "Data Docs"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Where they are; empty where the task decided about no version.

        It is a path, so that it holds under whatever name a person reaches Airflow.
        """
        if operator.judged is None:
            return ""
        below = urlparse(conf.get("api", "base_url", fallback="")).path.rstrip("/")
        names = (quote(name, safe="") for name in (ti_key.dag_id, ti_key.run_id, operator.judged.table))
        return f"{below}{URL_PREFIX}/data-docs/{'/'.join(names)}"
