"""Servers that the local stack and the tests need: PostgreSQL, Kafka, S3.

Each listens on this machine alone.
"""
