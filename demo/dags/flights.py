"""The flights of New York's airports in 2013: when they are loaded, and who looks after them."""

from datetime import UTC, date, datetime

from lakehouse_airflow.factory import build_domain_dag

dag = build_domain_dag(
    "flights",
    schedule="0 0 * * *",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    first_day=date(2013, 1, 1),
    last_day=date(2013, 12, 31),
    owner="flight-data",
)
