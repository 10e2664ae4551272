"""A table built anew beside the one in use, switched, and undone.

Which rebuilds are under way is written in the ledger.
"""
