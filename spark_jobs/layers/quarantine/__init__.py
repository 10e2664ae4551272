"""Fixes and replays of refused rows.

Where a row stands is known by `include.control.quarantine`.
"""
