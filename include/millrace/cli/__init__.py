"""The command line: a module for each command, and what several commands share.

`millrace.control` makes the decisions; the commands here call it and print the results.
"""
