"""Set properties of a Delta table by one commit that changes nothing else.

delta-rs 1.6.6 cannot do that: it raises the reader version of every table with writer features, which all tables of
Spark have, to 2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from millrace.clock import utc_now
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.table_features import RESTORABLE
from millrace.control.log.delta_log import COMMIT, Action
from millrace.control.log.stored_tables import open_table
from millrace.control.storage.objects_on_s3 import object_store
from millrace.control.storage.read_cache import uncached_reads
from millrace.errors import ConflictError, MillraceError


def foreign_features(table: LakePath) -> list[str]:
    """Return the features of a table with which no commit can be made without Spark."""
    features = open_table(table, without_files=True).protocol().writer_features or ()
    return sorted(set(features) - set(RESTORABLE))


# A batch of another stream of the table may commit in between.
@retry(
    retry=retry_if_exception_type(ConflictError),
    stop=stop_after_attempt(8),
    wait=wait_random_exponential(multiplier=0.05, max=1),
    reraise=True,
)
def set_properties(table: LakePath, properties: Mapping[str, str], user_metadata: str) -> None:
    """Set properties of a table, whatever other writers commit meanwhile.

    Raises:
        MillraceError: the table has features that ask more of a commit.
        ConflictError: other writers were faster every time.
    """
    if foreign := foreign_features(table):
        cause = f"{table}: its properties cannot be set, since it has features: {', '.join(foreign)}"
        given = ", ".join(f"{key} = {value}" for key, value in properties.items())
        raise MillraceError(cause, f"Set them with Spark (ALTER TABLE ... SET TBLPROPERTIES): {given}")
    with uncached_reads():
        delta = open_table(table, without_files=True)
    stored, version = delta.metadata(), delta.version() + 1
    now_ms = int(utc_now().timestamp() * 1000)
    actions: list[Action] = [
        {
            "commitInfo": {
                "timestamp": now_ms,
                "operation": "SET TBLPROPERTIES",
                "operationParameters": {"properties": json.dumps(properties)},
                "engineInfo": "Millrace",
                "userMetadata": user_metadata,
            }
        },
        {
            "metaData": {
                "id": str(stored.id),
                "name": stored.name,
                "description": stored.description,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": delta.schema().to_json(),
                "partitionColumns": stored.partition_columns,
                "createdTime": stored.created_time,
                "configuration": {**stored.configuration, **properties},
            }
        },
    ]
    body = "".join(f"{json.dumps(action)}\n" for action in actions).encode()
    if not object_store(table / "_delta_log").put_if_absent(f"{version:020d}{COMMIT}", body):
        raise ConflictError(f"{table}: another writer has committed version {version}")
