"""Shows every wrong table spec among Airflow's import errors; the file has no DAG, so that none goes with it."""

from include.catalog import load_catalog
from include.settings import Settings

load_catalog(Settings().tables).require_sound()
