"""Millrace: the language of all sides, the control plane and the command line.

All of it is plain Python: neither Airflow nor Spark is imported here. Who reads a lakehouse writes
`from millrace import certified`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millrace.reading.certified import CertifiedTable, certified
    from millrace.reading.connection import connect

__all__ = ["CertifiedTable", "certified", "connect"]

_MODULES = {
    "CertifiedTable": "millrace.reading.certified",
    "certified": "millrace.reading.certified",
    "connect": "millrace.reading.connection",
}


def __getattr__(name: str) -> Any:
    # What readers import is loaded when they ask for it: every other module of the package is imported without it.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
