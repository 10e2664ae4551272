"""The data plane: what runs in the Spark driver. Never imports Airflow."""
