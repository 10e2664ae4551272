"""Shows the problems of table specs among Airflow's import errors; it has no DAG that the error would remove."""

from millrace.settings import Settings
from millrace.specs.checks.sql import checked_catalog

checked_catalog(Settings().tables)
