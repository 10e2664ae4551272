"""`lakehouse gate`: how versions were judged, and how a refused one is let pass.

The rules of certification live in `include.control.gates.gates`.
"""
