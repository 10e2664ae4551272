"""Refused rows, and the decisions about each of them.

`millrace_spark.layers.quarantine` fixes and replays them.
"""
