"""`lakehouse quarantine`: the commands that list, fix, replay and discard refused rows.

`millrace.control.quarantine` determines the status of a row.
"""
