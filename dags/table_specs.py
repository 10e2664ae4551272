"""Shows all that is wrong with table specs among Airflow's import errors; it has no DAG, so that none goes with it."""

from include.checked_catalog import checked_catalog
from include.settings import Settings

checked_catalog(Settings().tables)
