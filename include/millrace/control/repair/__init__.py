"""Restores of earlier rows, with everything that is known of them, and what follows for the tables that read them.

What a restore would do, and the decision of a person, are in `millrace.repair`.
"""
