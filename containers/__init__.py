"""What the services of docker-compose.yaml run beside Airflow's and Spark's own commands.

They only start, prepare and ask: what a service works on is in the other folders.
"""
