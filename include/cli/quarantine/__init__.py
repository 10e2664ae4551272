"""`lakehouse quarantine`: the commands that list, fix, replay and discard refused rows.

`include.control.quarantine` determines the status of a row.
"""
