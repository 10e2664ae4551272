"""Kafka brokers and the offsets that a batch reads.

The messages themselves are read by Spark.
"""
