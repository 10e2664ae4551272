"""What the process of a task needs, for a process that forks such processes: it imports this module before it forks.

Airflow's setting `mp_forkserver_preload` names this module (`docs/guides/settings.md`). A task then begins with these
modules in memory. Nothing here starts a thread or opens a connection: neither would work in a fork.
"""

# ruff: noqa: F401
import lakehouse_airflow.factory
import millrace.control.gates.gates
import millrace.control.ledger.new_columns
import millrace.control.planning.planner
