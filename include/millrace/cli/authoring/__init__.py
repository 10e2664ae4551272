"""The commands that write a new project, and first specs from the files that a source has delivered.

What the files say is guessed by `millrace.inference`.
"""
