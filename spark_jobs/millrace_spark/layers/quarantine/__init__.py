"""Fixes and replays of refused rows.

The state of each row is in `millrace.control.quarantine`.
"""
