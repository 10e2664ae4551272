"""The only file of this folder that Airflow loads: it registers Millrace's pages with Airflow's web server."""

from lakehouse_airflow.ui.plugin import MillracePlugin as MillracePlugin
