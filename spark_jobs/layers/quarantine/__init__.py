"""Fixes and replays of refused rows.

The state of each row is in `include.control.quarantine`.
"""
