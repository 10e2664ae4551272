"""The language all sides speak, and the control plane: plain Python, never Airflow, never Spark."""
