"""The routes of the pages about tables and runs; each needs the right to view assets."""

from __future__ import annotations

from fastapi import APIRouter

from lakehouse_airflow.pages.backfill_plan import backfill_plan_page
from lakehouse_airflow.pages.lakehouse_page import lakehouse_page
from lakehouse_airflow.pages.lineage.page import lineage_page
from lakehouse_airflow.pages.rendering import style_sheet
from lakehouse_airflow.pages.run.run_page import run_page
from lakehouse_airflow.pages.table_page import tab_page, table_page
from lakehouse_airflow.ui.rights import MAY_READ_DAG, MAY_READ_RUN, MAY_VIEW

router = APIRouter(dependencies=[MAY_VIEW])
router.add_api_route("/tables", lakehouse_page, methods=["GET"])
router.add_api_route("/tables/{table}", table_page, methods=["GET"])
router.add_api_route("/tables/{table:path}/{tab}", tab_page, methods=["GET"])
router.add_api_route("/backfill-plan/{dag_id}", backfill_plan_page, methods=["GET"], dependencies=[MAY_READ_DAG])
router.add_api_route("/runs/{dag_id}/{run_id}", run_page, methods=["GET"], dependencies=[MAY_READ_RUN])
router.add_api_route("/lineage", lineage_page, methods=["GET"])
router.add_api_route("/pages.css", style_sheet, methods=["GET"])
