"""The commands that write first specs from the files that a source has delivered.

What the files say is guessed by `millrace.inference`.
"""
