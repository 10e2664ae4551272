"""`lakehouse quarantine`: the commands that list, fix, replay and discard refused rows.

Where a row stands is worked out in `include.control.quarantine`.
"""
