"""What a bronze batch plans, writes and closes, from landing files and from Kafka.

The protocol around it lives in `spark_jobs.protocol`.
"""
