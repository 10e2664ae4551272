"""Shows the problems of table specs among Airflow's import errors; it has no DAG that the error would remove."""

from include.checked_catalog import checked_catalog
from include.settings import Settings

checked_catalog(Settings().tables)
