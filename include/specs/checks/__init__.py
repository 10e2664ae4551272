"""What can be wrong with a spec, one subject a module.

The shape of a spec is checked by its model, in `include.contracts.spec`.
"""
