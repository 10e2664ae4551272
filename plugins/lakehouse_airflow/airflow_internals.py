"""What this package uses of Airflow and its providers beyond what they promise to keep.

Airflow promises `airflow.sdk`, `airflow.listeners`, `airflow.plugins_manager`, `airflow.triggers.base`, and the public
names of its providers. Whoever changes the version of Airflow reads here what may break;
`tests/unit/plugins/lakehouse_airflow/test_airflow_internals.py` fails if one of these names has changed, or if this
package uses another one.
"""

from __future__ import annotations

INTERNALS: dict[str, tuple[str, ...]] = {
    "airflow.providers.apache.spark.hooks.spark_submit:SparkSubmitHook": (
        "_resolve_connection",
        "_build_spark_submit_command",
        "_process_spark_submit_log",
        "_submit_sp",
    ),
    "airflow.sdk.execution_time.context:InletEventsAccessor": ("ascending", "limit"),
    "airflow.api_fastapi.auth.managers.models.resource_details:DagAccessEntity": ("TASK_LOGS", "RUN"),
    "airflow.api_fastapi.common.db.common:SessionDep": (),
    "airflow.api_fastapi.core_api.security:requires_access_dag": (),
    "airflow.api_fastapi.core_api.security:requires_access_asset": (),
    "airflow.api_fastapi.core_api.security:GetUserDep": (),
    "airflow.models.dag:DagModel": (
        "get_dagmodel",
        "is_stale",
        "is_paused",
        "next_dagrun_create_after",
        "dag_display_name",
        "timetable_summary",
        "timetable_periodic",
        "asset_expression",
    ),
    "airflow.models.asset:AssetModel": ("id", "name"),
    "airflow.models.asset:TaskOutletAssetReference": ("asset_id", "dag_id"),
    "airflow.models.pool:Pool": ("get_pool", "create_or_update_pool"),
    "airflow.utils.session:create_session": (),
    "airflow.models.dagrun:DagRun": (
        *("conf", "note", "consumed_asset_events", "created_at", "logical_date", "run_type", "state"),
    ),
    "airflow.models.taskinstance:TaskInstance": (
        *("operator", "state", "end_date", "map_index", "start_date", "scheduled_dttm", "queued_dttm", "try_number"),
    ),
    "airflow.models.taskinstancehistory:TaskInstanceHistory": ("start_date", "end_date"),
    "airflow.models.renderedtifields:RenderedTaskInstanceFields": ("rendered_fields",),
    "airflow.models.xcom:XComModel": ("get_many", "deserialize_value", "key", "value"),
}
"""Module and name -> the members that are used.

- The hook overrides three methods of the provider's hook: it refuses a connection that does not exist, starts a client
  of a Spark Connect server without spark-submit, and keeps the driver's output. It ends the process that the provider
  started.
- The gate reads earlier events of an asset that is none of its inlets.
- A listener creates the pool when Airflow starts: there is no other place that has the database. Another one
  writes the day into the note of a run.
- The web pages check rights, and read a run with its tasks, their earlier tries and XComs, tasks that failed, the runs
  of a DAG, its next run, and the DAGs that publish an asset or wait for it, as Airflow's own pages do.
"""
