"""`lakehouse gate`: show the results of gates, and override a refusal.

The rules of certification are in `include.control.gates.gates`.
"""
