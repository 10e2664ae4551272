"""Refused rows, and the decisions about each of them.

`spark_jobs.layers.quarantine` fixes and replays them.
"""
