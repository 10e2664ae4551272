"""Find the errors of a spec; each module checks one subject.

The models in `millrace.contracts.spec` check the shape of a spec.
"""
