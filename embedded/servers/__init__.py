"""Servers of the local stack and the tests: PostgreSQL, Kafka, S3.

Each listens on this machine only.
"""
